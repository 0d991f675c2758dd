"""Products of few tokens in fp8 with an fp8 weight that is read once: a decode step's time is the reading.

As linear_few has them for 16 bits: by threads, which multiply the 16 values that they load of a row of the weight in
float32, up to two tokens; and by tensor cores, up to 32, a product of 128 inputs a warp and step. Nothing is split
over programs, so sums have one order, and a token's bits do not depend on the values of those beside it. Scales by row,
or by 128 inputs where the outputs of a tile share theirs. Shapes: T tokens, N outputs, K inputs.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from atom.model_ops.float8 import SMALLEST_AMAX
from atom.model_ops.kernels.triton.early import (
    early_launch,
    fetch_early,
    let_next_start,
    starts_early,
    wait_for_previous,
)
from atom.model_ops.kernels.triton.fp8_quantize import GROUP, Rounded, round_to_float8, to_float8
from atom.model_ops.kernels.triton.sizes import cdiv, next_power_of_2

MAX_TOKENS, MAX_TOKENS_BY_THREADS = 32, 2
# Tokens of a product by tensor cores, at least.
_FEWEST = 16
# Values of 16 bytes, which a thread loads at a time.
_LOAD = tl.constexpr(16)
# The inputs that have one scale, and that a warp multiplies in a step by tensor cores: 128 bytes of a weight's row.
_GROUP = tl.constexpr(GROUP)
# Lines of 128 bytes of the weight that a program that starts early asks for: 32 KB.
_EARLY_LINES = tl.constexpr(256)
# What gfx942 has shared memory for, 64 KB a program.
_STAGES_ON_AMD = 2


@dataclass(frozen=True, slots=True)
class Tile:
    """What a program does: `outputs` rows of the weight, `inputs` of them at a time, with so many warps.

    stages: 0 is by threads, whose loads are in flight in registers; else by tensor cores, with so many steps of inputs
    in shared memory, where inputs are 128 a warp.
    """

    outputs: int
    inputs: int
    num_warps: int
    stages: int = 0


def by_threads(outputs: int, inputs: int, num_warps: int) -> Tile:
    """A tile for MAX_TOKENS_BY_THREADS tokens at most."""
    return Tile(outputs, inputs, num_warps)


def by_tensor_cores(outputs: int, num_warps: int, stages: int) -> Tile:
    """A tile for MAX_TOKENS tokens at most."""
    return Tile(outputs, num_warps * GROUP, num_warps, stages)


def fits(tile: Tile, width: int, block_rows: int, has_groups: bool) -> bool:
    """Whether the tile multiplies by a weight of so many inputs and such scales."""
    return width % _LOAD.value == 0 and (not has_groups or block_rows % tile.outputs == 0)


@triton.jit
def _token_scale(
    x, x_stride, x_scales, x_scale_row, token, T, K,
    BK: tl.constexpr, STEPS: tl.constexpr, LARGEST: tl.constexpr, SMALLEST: tl.constexpr,
    HAS_GROUPS: tl.constexpr, IS_ROUNDED: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """The scale of all inputs of a token, made here where they are still to be rounded; with groups there is none."""
    token = tl.minimum(token, T - 1)
    if HAS_GROUPS:
        return 1.0
    if IS_ROUNDED:
        return tl.load(x_scales + token * x_scale_row)
    largest = tl.full((), SMALLEST, tl.float32)
    for step in tl.static_range(STEPS):
        k = step * BK + tl.arange(0, BK)
        at = x + token * x_stride + k
        inputs = tl.load(at) if EVEN else tl.load(at, mask=k < K, other=0.0)
        largest = tl.maximum(largest, tl.max(tl.abs(inputs.to(tl.float32)), axis=0))
    return tl.div_rn(largest, LARGEST)


@triton.jit
def _inputs(
    x, x_stride, x_scales, x_scale_row, x_scale_group, weight_scales, token_scale, token, T, K, start,
    float8: tl.constexpr, BK: tl.constexpr, LARGEST: tl.constexpr, SMALLEST: tl.constexpr,
    HAS_GROUPS: tl.constexpr, IS_ROUNDED: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """A token's inputs of a step [BK] as the 8-bit type holds them; with groups, times both scales of each group."""
    token = tl.minimum(token, T - 1)
    k = start + tl.arange(0, BK)
    at = x + token * x_stride + k
    inputs = (tl.load(at) if EVEN else tl.load(at, mask=k < K, other=0.0)).to(tl.float32)
    if not HAS_GROUPS:
        return inputs if IS_ROUNDED else round_to_float8(inputs, token_scale, LARGEST).to(float8).to(tl.float32)
    inputs = tl.reshape(inputs, (BK // _GROUP, _GROUP))
    if IS_ROUNDED:
        group = start // _GROUP + tl.arange(0, BK // _GROUP)
        at = x_scales + token * x_scale_row + group * x_scale_group
        scales = tl.load(at) if EVEN else tl.load(at, mask=group * _GROUP < K, other=0.0)
    else:
        inputs, scales = to_float8(inputs, LARGEST, SMALLEST)
        inputs = inputs.to(float8).to(tl.float32)
    return tl.reshape(inputs * (scales * weight_scales)[:, None], (BK,))


@triton.jit
def _add(sums, loaded, inputs, BN: tl.constexpr, BK: tl.constexpr):
    """sums [BN, BK / 16] and the weight's values [BN, BK] times inputs [BK]."""
    values = loaded.to(tl.float32)
    # Sixteen neighbours are one thread's: they are summed without another's help.
    return sums + tl.sum(tl.reshape(values * inputs[None, :], (BN, BK // _LOAD, _LOAD)), axis=2)


@triton.jit
def _store_token(sums, scales, bias, out, token, T, N, outputs, HAS_BIAS: tl.constexpr):
    total = tl.sum(sums, axis=1) * scales
    if HAS_BIAS:
        total += tl.load(bias + outputs, mask=outputs < N, other=0.0).to(tl.float32)
    tl.store(out + token * N + outputs, total.to(out.dtype.element_ty), mask=outputs < tl.where(token < T, N, 0))


# One kernel for as many tokens as it has sums: a compilation while requests wait costs more than a known size saves.
@triton.jit(do_not_specialize=["T", "x_scale_group"])
def _fp8_by_threads(
    x, x_stride, w, x_scales, x_scale_row, x_scale_group, w_scales, w_scale_row, bias, out, T, N, K, block_rows,
    TP: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STEPS: tl.constexpr, LARGEST: tl.constexpr,
    SMALLEST: tl.constexpr, IS_ROUNDED: tl.constexpr, HAS_GROUPS: tl.constexpr, HAS_BIAS: tl.constexpr,
    EVEN: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """BN outputs of TP = 1 or 2 tokens. EVEN: BK divides K. Each token's sums have a name: an axis for tokens would
    have the compiler move the weight between threads.
    """
    let_next_start(EARLY)
    outputs = tl.program_id(0) * BN + tl.arange(0, BN)
    # Rows beyond the end read the last one; they are not stored.
    rows = tl.minimum(outputs, N - 1)
    k = tl.arange(0, BK)
    w_at = w + rows.to(tl.int64)[:, None] * K + k[None, :]
    w_scale_at = w_scales + (tl.program_id(0) * BN // block_rows) * w_scale_row
    row_scales = 1.0 if HAS_GROUPS else tl.load(w_scales + rows // block_rows * w_scale_row)
    sums0 = tl.zeros((BN, BK // _LOAD), tl.float32)
    sums1 = sums0
    for step in tl.static_range(STEPS):
        start = step * BK
        if EVEN:
            loaded = tl.load(w_at + start, eviction_policy="evict_first")
        else:
            loaded = tl.load(w_at + start, mask=(start + k < K)[None, :], other=0.0, eviction_policy="evict_first")
        group_scales = 1.0
        if HAS_GROUPS:
            group = start // _GROUP + tl.arange(0, BK // _GROUP)
            group_scales = tl.load(w_scale_at + group, mask=group * _GROUP < K, other=0.0)
        if step == 0:
            # The weight is on its way; x is what the kernel before this one writes.
            wait_for_previous(EARLY)
            scale0 = _token_scale(
                x, x_stride, x_scales, x_scale_row, 0, T, K, BK, STEPS, LARGEST, SMALLEST, HAS_GROUPS,
                IS_ROUNDED, EVEN,
            )  # fmt: skip
            if TP > 1:
                scale1 = _token_scale(
                    x, x_stride, x_scales, x_scale_row, 1, T, K, BK, STEPS, LARGEST, SMALLEST, HAS_GROUPS,
                    IS_ROUNDED, EVEN,
                )  # fmt: skip
        inputs = _inputs(
            x, x_stride, x_scales, x_scale_row, x_scale_group, group_scales, scale0, 0, T, K, start,
            w.dtype.element_ty, BK, LARGEST, SMALLEST, HAS_GROUPS, IS_ROUNDED, EVEN,
        )  # fmt: skip
        sums0 = _add(sums0, loaded, inputs, BN, BK)
        if TP > 1:
            inputs = _inputs(
                x, x_stride, x_scales, x_scale_row, x_scale_group, group_scales, scale1, 1, T, K, start,
                w.dtype.element_ty, BK, LARGEST, SMALLEST, HAS_GROUPS, IS_ROUNDED, EVEN,
            )  # fmt: skip
            sums1 = _add(sums1, loaded, inputs, BN, BK)
    _store_token(sums0, row_scales * scale0, bias, out, 0, T, N, outputs, HAS_BIAS)
    if TP > 1:
        _store_token(sums1, row_scales * scale1, bias, out, 1, T, N, outputs, HAS_BIAS)


@triton.jit(do_not_specialize=["T", "x_scale_group"])
def _fp8_by_tensor_cores(
    x, x_stride, w, x_scales, x_scale_row, x_scale_group, w_scales, w_scale_row, bias, out, T, N, K, block_rows,
    TP: tl.constexpr, BN: tl.constexpr, WARPS: tl.constexpr, STAGES: tl.constexpr, HAS_GROUPS: tl.constexpr,
    HAS_BIAS: tl.constexpr, EVEN: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """BN outputs of TP tokens: a batch of products, one a warp, each of a group of a step. EVEN: a step divides K."""
    let_next_start(EARLY)
    outputs = tl.program_id(0) * BN + tl.arange(0, BN)
    rows = tl.minimum(outputs, N - 1)
    tokens = tl.arange(0, TP)
    is_token = (tokens < T)[None, :, None]
    # Scales of tokens that are none are the last one's.
    read = tl.minimum(tokens, T - 1)
    group = tl.arange(0, WARPS)
    k = group[:, None] * _GROUP + tl.arange(0, _GROUP)[None, :]
    w_at = w + rows.to(tl.int64)[None, None, :] * K + k[:, :, None]
    x_at = x + tokens[None, :, None] * x_stride + k[:, None, :]
    x_scale_at = x_scales + read[None, :] * x_scale_row + group[:, None] * x_scale_group
    w_scale_at = w_scales + (tl.program_id(0) * BN // block_rows) * w_scale_row + group
    sums = tl.zeros((WARPS, TP, BN), tl.float32)
    lines = tl.minimum(tl.arange(0, _EARLY_LINES // BN) * _GROUP, K - 1)
    fetch_early(w + rows.to(tl.int64)[:, None] * K + lines[None, :], EARLY)
    wait_for_previous(EARLY)
    for base in tl.range(0, K, WARPS * _GROUP, num_stages=STAGES):
        first = base // _GROUP
        if EVEN:
            values = tl.load(w_at + base)
            inputs = tl.load(x_at + base, mask=is_token, other=0.0)
        else:
            inside = k < K - base
            values = tl.load(w_at + base, mask=inside[:, :, None], other=0.0)
            inputs = tl.load(x_at + base, mask=is_token & inside[:, None, :], other=0.0)
        if HAS_GROUPS:
            if EVEN:
                scales = tl.load(x_scale_at + first * x_scale_group) * tl.load(w_scale_at + first)[:, None]
            else:
                is_group = base + group * _GROUP < K
                by_token = tl.load(x_scale_at + first * x_scale_group, mask=is_group[:, None], other=0.0)
                scales = by_token * tl.load(w_scale_at + first, mask=is_group, other=0.0)[:, None]
            sums += tl.dot(inputs, values) * scales[:, :, None]
        else:
            sums += tl.dot(inputs, values)
    total = tl.sum(sums, axis=0)
    if not HAS_GROUPS:
        by_row = tl.load(w_scales + rows // block_rows * w_scale_row)
        total *= tl.load(x_scales + read * x_scale_row)[:, None] * by_row[None, :]
    if HAS_BIAS:
        total += tl.load(bias + outputs, mask=outputs < N, other=0.0).to(tl.float32)[None, :]
    at = out + tokens[:, None] * N + outputs[None, :]
    tl.store(at, total.to(out.dtype.element_ty), mask=(tokens < T)[:, None] & (outputs < N)[None, :])


@functools.cache
def most_stages() -> int:
    """Steps of inputs that a program has shared memory for; none is in flight in the interpreter."""
    if triton.knobs.runtime.interpret:
        return 1
    backend: str = triton.runtime.driver.active.get_current_target().backend
    return _STAGES_ON_AMD if backend == "hip" else 8


def fp8_few(
    x: Rounded | torch.Tensor,
    weight: torch.Tensor,
    w_scales: torch.Tensor,
    block_rows: int,
    bias: torch.Tensor | None,
    tile: Tile,
) -> torch.Tensor:
    """fp8_product of as many tokens, 1 at least, as the tile is for, where it `fits`; the weight has no gaps.

    By threads, x [T, K] may still have to be rounded: every program does that, which takes less than a kernel for it.
    """
    is_rounded = isinstance(x, Rounded)
    if isinstance(x, Rounded):
        values, x_scales, num_tokens, dtype = x
        scale_strides = x_scales.stride()
    else:
        values, x_scales, num_tokens, dtype, scale_strides = x, None, x.shape[0], x.dtype, (0, 0)
    num_outputs, width = weight.shape
    out = torch.empty((num_tokens, num_outputs), dtype=dtype, device=weight.device)
    grid = (cdiv(num_outputs, tile.outputs),)
    given = (
        values, values.stride(0), weight, x_scales, *scale_strides, w_scales, w_scales.stride(0), bias, out,
        num_tokens, num_outputs, width, block_rows,
    )  # fmt: skip
    forms = {
        "HAS_GROUPS": w_scales.shape[1] > 1,
        "HAS_BIAS": bias is not None,
        "EVEN": width % tile.inputs == 0,
        "EARLY": starts_early(num_tokens),
        "num_warps": tile.num_warps,
        **early_launch(),
    }
    if tile.stages:
        assert is_rounded
        assert num_tokens <= MAX_TOKENS
        _fp8_by_tensor_cores[grid](
            *given, TP=max(_FEWEST, next_power_of_2(num_tokens)), BN=tile.outputs, WARPS=tile.num_warps,
            STAGES=min(tile.stages, most_stages()), **forms,
        )  # fmt: skip
    else:
        assert num_tokens <= MAX_TOKENS_BY_THREADS
        _fp8_by_threads[grid](
            *given, TP=next_power_of_2(num_tokens), BN=tile.outputs, BK=tile.inputs,
            STEPS=cdiv(width, tile.inputs), LARGEST=torch.finfo(weight.dtype).max, SMALLEST=SMALLEST_AMAX,
            IS_ROUNDED=is_rounded, **forms,
        )  # fmt: skip
    return out
