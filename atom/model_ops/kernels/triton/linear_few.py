"""Products of few tokens with a weight that is read once: a decode step's time is the reading.

By threads: a thread multiplies the 16 bytes that it loads of a row of the weight, up to four tokens. By tensor cores:
up to sixteen tokens, the weight streamed through shared memory; the warps of a program share the inputs out, so that
programs of few outputs are possible, or the outputs, so that nothing has to be added up at the end. No product is split
over programs. So nothing is joined afterwards, sums have one order, and a token's bits do not depend on the tokens
beside it. Shapes: T tokens, N outputs, K inputs.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl

from atom.model_ops.kernels.triton.early import (
    early_launch,
    fetch_early,
    let_next_start,
    starts_early,
    wait_for_previous,
)
from atom.model_ops.kernels.triton.paged import precision
from atom.model_ops.kernels.triton.sizes import cdiv, next_power_of_2
from atom.model_ops.kernels.triton.steps import product

MAX_TOKENS = 16
MAX_TOKENS_BY_THREADS = 4
# Inputs that a warp multiplies in a step by tensor cores: 128 bytes of a row of the weight.
_WARP_INPUTS = 64
# Values of a line of 128 bytes, and the lines of the weight that a program asks for before its turn: 32 KB.
_LINE, _EARLY_LINES = tl.constexpr(64), 256
# Columns of the narrowest product by tensor cores, on NVIDIA's GPUs; AMD's are of MAX_TOKENS.
_FEW_COLUMNS = 8
# What gfx942 has shared memory for, 64 KB a program.
_STAGES_ON_AMD = 2


@dataclass(frozen=True, slots=True)
class Tile:
    """What a program does: `outputs` rows of the weight, `inputs` of them at a time, with so many warps.

    stages: 0 is by threads, whose loads are in flight in registers; else by tensor cores, with so many steps of inputs
    in shared memory. shares_inputs: each warp has 64 inputs of a step of its own, not outputs of its own. lines: of 128
    bytes of the weight, asked for to be in the second-level cache before the kernel's turn; a power of two, or 0.
    """

    outputs: int
    inputs: int
    num_warps: int
    stages: int = 0
    shares_inputs: bool = False
    lines: int = 0


def by_threads(outputs: int, inputs: int, num_warps: int) -> Tile:
    """A tile for MAX_TOKENS_BY_THREADS tokens at most."""
    return Tile(outputs, inputs, num_warps)


def by_tensor_cores(outputs: int, num_warps: int, stages: int) -> Tile:
    """A tile for MAX_TOKENS tokens at most, whose warps share the inputs out."""
    return Tile(outputs, num_warps * _WARP_INPUTS, num_warps, stages, True, _EARLY_LINES)


def by_rows(outputs: int, inputs: int, num_warps: int, stages: int) -> Tile:
    """A tile for MAX_TOKENS tokens at most, by tensor cores, whose warps share the outputs out, 16 and more each."""
    return Tile(outputs, inputs, num_warps, stages, lines=_EARLY_LINES)


@triton.jit
def _add_token(
    sums, values, x, x_stride, token, T, k, left, BN: tl.constexpr, BK: tl.constexpr, EVEN: tl.constexpr
):  # fmt: skip
    """sums [BN, BK / 8] and values [BN, BK] times one token's inputs; a token that is none is the last again."""
    at = x + tl.minimum(token, T - 1) * x_stride + k
    inputs = tl.load(at) if EVEN else tl.load(at, mask=k < left, other=0.0)
    products = values * inputs.to(tl.float32)[None, :]
    # Eight neighbours are one thread's: they are summed without another's help.
    return sums + tl.sum(tl.reshape(products, (BN, BK // 8, 8)), axis=2)


@triton.jit
def _store_token(sums, bias, out, token, T, N, outputs, HAS_BIAS: tl.constexpr):
    total = tl.sum(sums, axis=1)
    if HAS_BIAS:
        total += tl.load(bias + outputs, mask=outputs < N, other=0.0).to(tl.float32)
    tl.store(out + token * N + outputs, total.to(out.dtype.element_ty), mask=outputs < tl.where(token < T, N, 0))


# One kernel for as many tokens as it has sums: a compilation while requests wait costs more than a known size saves.
@triton.jit(do_not_specialize=["T"])
def _linear_by_threads(
    x, x_stride, w, bias, out, T, N, K,
    TP: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STEPS: tl.constexpr, HAS_BIAS: tl.constexpr,
    EVEN: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """BN outputs of TP = 1, 2 or 4 tokens. EVEN: BK divides K. Each token's sums have a name: an axis for tokens would
    have the compiler move the weight between threads.
    """
    let_next_start(EARLY)
    outputs = tl.program_id(0) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    # Rows beyond the end read the last one; they are not stored.
    w_at = w + tl.minimum(outputs, N - 1).to(tl.int64)[:, None] * K + k[None, :]
    sums0 = tl.zeros((BN, BK // 8), tl.float32)
    sums1, sums2, sums3 = sums0, sums0, sums0
    for step in tl.static_range(STEPS):
        left = K - step * BK
        if EVEN:
            rows = tl.load(w_at + step * BK, eviction_policy="evict_first")
        else:
            rows = tl.load(w_at + step * BK, mask=(k < left)[None, :], other=0.0, eviction_policy="evict_first")
        if step == 0:
            # The weight is on its way; x is what the kernel before this one writes.
            wait_for_previous(EARLY)
        values = rows.to(tl.float32)
        x_at = x + step * BK
        sums0 = _add_token(sums0, values, x_at, x_stride, 0, T, k, left, BN, BK, EVEN)
        if TP > 1:
            sums1 = _add_token(sums1, values, x_at, x_stride, 1, T, k, left, BN, BK, EVEN)
        if TP > 2:
            sums2 = _add_token(sums2, values, x_at, x_stride, 2, T, k, left, BN, BK, EVEN)
            sums3 = _add_token(sums3, values, x_at, x_stride, 3, T, k, left, BN, BK, EVEN)
    _store_token(sums0, bias, out, 0, T, N, outputs, HAS_BIAS)
    if TP > 1:
        _store_token(sums1, bias, out, 1, T, N, outputs, HAS_BIAS)
    if TP > 2:
        _store_token(sums2, bias, out, 2, T, N, outputs, HAS_BIAS)
        _store_token(sums3, bias, out, 3, T, N, outputs, HAS_BIAS)


@triton.jit
def _fetch(rows_at, K, LINES: tl.constexpr, EARLY: tl.constexpr):
    """The first LINES lines of each row, whose beginnings are given, into the second-level cache."""
    if LINES:
        fetch_early(rows_at[:, None] + tl.minimum(tl.arange(0, LINES) * _LINE, K - 1)[None, :], EARLY)


@triton.jit(do_not_specialize=["T"])
def _linear_by_tensor_cores(
    x, x_stride, w, bias, out, T, N, K,
    TP: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, WARPS: tl.constexpr, STAGES: tl.constexpr,
    LINES: tl.constexpr, HAS_BIAS: tl.constexpr, EVEN: tl.constexpr, PRECISION: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """BN outputs of TP tokens: a batch of products, one a warp, each of BK inputs of a step. EVEN: a step divides K."""
    let_next_start(EARLY)
    outputs = tl.program_id(0) * BN + tl.arange(0, BN)
    tokens = tl.arange(0, TP)
    is_token = (tokens < T)[None, :, None]
    k = tl.arange(0, WARPS)[:, None] * BK + tl.arange(0, BK)[None, :]
    w_at = w + tl.minimum(outputs, N - 1).to(tl.int64)[None, None, :] * K + k[:, :, None]
    x_at = x + tokens[None, :, None] * x_stride + k[:, None, :]
    sums = tl.zeros((WARPS, TP, BN), tl.float32)
    _fetch(w + tl.minimum(outputs, N - 1).to(tl.int64) * K, K, LINES // BN, EARLY)
    wait_for_previous(EARLY)
    for base in tl.range(0, K, WARPS * BK, num_stages=STAGES):
        if EVEN:
            rows = tl.load(w_at + base)
            inputs = tl.load(x_at + base, mask=is_token, other=0.0)
        else:
            inside = k < K - base
            rows = tl.load(w_at + base, mask=inside[:, :, None], other=0.0)
            inputs = tl.load(x_at + base, mask=is_token & inside[:, None, :], other=0.0)
        sums += product(inputs, rows, PRECISION)
    total = tl.sum(sums, axis=0)
    if HAS_BIAS:
        total += tl.load(bias + outputs, mask=outputs < N, other=0.0).to(tl.float32)[None, :]
    at = out + tokens[:, None] * N + outputs[None, :]
    tl.store(at, total.to(out.dtype.element_ty), mask=(tokens < T)[:, None] & (outputs < N)[None, :])


@triton.jit(do_not_specialize=["T"])
def _linear_by_rows(
    x, x_stride, w, bias, out, T, N, K,
    TP: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr, LINES: tl.constexpr,
    HAS_BIAS: tl.constexpr, EVEN: tl.constexpr, PRECISION: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """BN outputs of TP tokens; tokens that are none are the last again. EVEN: BK divides K."""
    let_next_start(EARLY)
    outputs = tl.program_id(0) * BN + tl.arange(0, BN)
    tokens = tl.arange(0, TP)
    k = tl.arange(0, BK)
    rows_at = w + tl.minimum(outputs, N - 1).to(tl.int64) * K
    w_at = rows_at[:, None] + k[None, :]
    x_at = x + tl.minimum(tokens, T - 1)[None, :] * x_stride + k[:, None]
    sums = tl.zeros((BN, TP), tl.float32)
    _fetch(rows_at, K, LINES // BN, EARLY)
    wait_for_previous(EARLY)
    for base in tl.range(0, K, BK, num_stages=STAGES):
        if EVEN:
            rows = tl.load(w_at + base)
            inputs = tl.load(x_at + base)
        else:
            inside = k < K - base
            rows = tl.load(w_at + base, mask=inside[None, :], other=0.0)
            inputs = tl.load(x_at + base, mask=inside[:, None], other=0.0)
        sums += product(rows, inputs, PRECISION)
    if HAS_BIAS:
        sums += tl.load(bias + outputs, mask=outputs < N, other=0.0).to(tl.float32)[:, None]
    at = out + tokens[None, :] * N + outputs[:, None]
    tl.store(at, sums.to(out.dtype.element_ty), mask=(tokens < T)[None, :] & (outputs < N)[:, None])


@functools.cache
def is_amd() -> bool:
    """Whether this process compiles for AMD's GPUs."""
    if triton.knobs.runtime.interpret:
        return False
    is_amd: bool = triton.runtime.driver.active.get_current_target().backend == "hip"
    return is_amd


def few_linear(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, tile: Tile, dtype: torch.dtype
) -> torch.Tensor:
    """x [T, K] @ weight [N, K].T + bias [N] as `dtype`, T from 1 to what the tile is for; inner axes without gaps."""
    num_tokens, (num_outputs, width) = x.shape[0], weight.shape
    out = torch.empty((num_tokens, num_outputs), dtype=dtype, device=x.device)
    grid = (cdiv(num_outputs, tile.outputs),)
    given = (x, x.stride(0), weight, bias, out, num_tokens, num_outputs, width)
    is_even = width % tile.inputs == 0
    common: dict[str, Any] = {"HAS_BIAS": bias is not None, "EVEN": is_even, "num_warps": tile.num_warps}
    common |= {"EARLY": starts_early(num_tokens), **early_launch()}
    if not tile.stages:
        _linear_by_threads[grid](
            *given, TP=next_power_of_2(num_tokens), BN=tile.outputs, BK=tile.inputs,
            STEPS=cdiv(width, tile.inputs), **common,
        )  # fmt: skip
        return out
    stages = min(tile.stages, _STAGES_ON_AMD) if is_amd() else tile.stages
    common |= {"STAGES": stages, "LINES": tile.lines, "PRECISION": precision(x.dtype)}
    if tile.shares_inputs:
        _linear_by_tensor_cores[grid](
            *given, TP=MAX_TOKENS, BN=tile.outputs, BK=_WARP_INPUTS, WARPS=tile.num_warps, **common
        )
    else:
        columns = MAX_TOKENS if num_tokens > _FEW_COLUMNS or is_amd() else _FEW_COLUMNS
        _linear_by_rows[grid](*given, TP=columns, BN=tile.outputs, BK=tile.inputs, **common)
    return out
