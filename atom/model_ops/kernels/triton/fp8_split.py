"""Products of some dozens of tokens in fp8, the inputs split among programs: tiles alone are too few to keep reading.

Each program multiplies a part of the inputs; a second kernel adds the parts up in their order, so sums have one order,
and a token's bits do not depend on the values of those beside it. Where tiles are programs enough there is one part,
and no second kernel. Outputs are the rows of a product by tensor cores, which has at least 64, and tokens its columns.
Owns the tiles and parts: by formula. Shapes: T tokens, N outputs, K inputs.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from atom.model_ops.kernels.triton.early import (
    early_launch,
    fetch_early,
    let_next_start,
    starts_early,
    take_turn,
    wait_for_previous,
)
from atom.model_ops.kernels.triton.fp8_few import most_stages
from atom.model_ops.kernels.triton.fp8_quantize import GROUP, Rounded
from atom.model_ops.kernels.triton.sizes import cdiv, next_power_of_2

# The inputs of a step, which have one scale: 128 bytes of a weight's row.
_GROUP = tl.constexpr(GROUP)
# Values of a program that adds parts up: 16 bytes a thread and load.
_ADDED, _ADDING_WARPS = 512, 4
# Multiprocessors of an H200.
_PROCESSORS = 132
# Steps of a part, at least: fewer are mostly beginning and end.
_FEWEST_STEPS = 8


@dataclass(frozen=True, slots=True)
class Split:
    """A program's tokens and outputs, into how many parts the inputs go, warps, and steps of 128 inputs in flight."""

    tokens: int
    outputs: int
    parts: int
    num_warps: int
    stages: int


@triton.jit(do_not_specialize=["T", "x_scale_group", "steps"])
def _fp8_part(
    x, x_stride, w, x_scales, x_scale_row, x_scale_group, w_scales, w_scale_row, bias, out, T, N, K, block_rows, steps,
    BT: tl.constexpr, BN: tl.constexpr, STAGES: tl.constexpr, IS_WHOLE: tl.constexpr, HAS_GROUPS: tl.constexpr,
    HAS_BIAS: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """BN outputs of BT tokens from `steps` groups of the inputs, to out [T, N]; of a part to out [parts, T, N], which
    has the scales of groups in it and none by row.
    """
    let_next_start(EARLY)
    tokens = tl.program_id(0) * BT + tl.arange(0, BT)
    outputs = tl.program_id(1) * BN + tl.arange(0, BN)
    part = tl.program_id(2)
    # Rows beyond the end read the last one; they are not stored.
    rows_x = tl.minimum(tokens, T - 1)
    rows_w = tl.minimum(outputs, N - 1)
    k = tl.arange(0, _GROUP)
    first = part * steps
    w_row = w + rows_w.to(tl.int64) * K + first * _GROUP
    w_at = w_row[:, None] + k[None, :]
    x_at = x + rows_x.to(tl.int64)[None, :] * x_stride + (first * _GROUP + k)[:, None]
    x_scale_at = x_scales + rows_x * x_scale_row
    w_scale_at = w_scales + (tl.program_id(1) * BN // block_rows) * w_scale_row
    total = tl.zeros((BN, BT), tl.float32)
    last = tl.minimum(first + steps, K // _GROUP)
    # A last part may be of one group.
    fetch_early(w_row[:, None] + (tl.minimum(tl.arange(0, 2), last - first - 1) * _GROUP)[None, :], EARLY)
    wait_for_previous(EARLY)
    for group in tl.range(first, last, num_stages=STAGES):
        rows, inputs = tl.load(w_at), tl.load(x_at)
        if HAS_GROUPS:
            scales = tl.load(x_scale_at + group * x_scale_group) * tl.load(w_scale_at + group)
            total += tl.dot(rows, inputs) * scales[None, :]
        else:
            total = tl.dot(rows, inputs, total)
        w_at += _GROUP
        x_at += _GROUP
    if IS_WHOLE:
        if not HAS_GROUPS:
            total *= tl.load(w_scales + rows_w // block_rows * w_scale_row)[:, None] * tl.load(x_scale_at)[None, :]
        if HAS_BIAS:
            total += tl.load(bias + rows_w).to(tl.float32)[:, None]
    at = out + (part * T + tokens).to(tl.int64)[None, :] * N + outputs[:, None]
    tl.store(at, total.to(out.dtype.element_ty), mask=(tokens < T)[None, :] & (outputs < N)[:, None])


@triton.jit(do_not_specialize=["T"])
def _fp8_add_parts(
    parts, x_scales, x_scale_row, w_scales, w_scale_row, bias, out, T, N, block_rows,
    PARTS: tl.constexpr, BLOCK: tl.constexpr, HAS_GROUPS: tl.constexpr, HAS_BIAS: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """A token's outputs, BLOCK of them, from parts [PARTS, T, N]."""
    take_turn(EARLY)
    token = tl.program_id(0)
    outputs = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = outputs < N
    total = tl.zeros((BLOCK,), tl.float32)
    for part in tl.static_range(PARTS):
        at = parts + (part * T + token).to(tl.int64) * N + outputs
        total += tl.load(at, mask=inside, other=0.0)
    if not HAS_GROUPS:
        by_row = tl.load(w_scales + outputs // block_rows * w_scale_row, mask=inside, other=0.0)
        total *= by_row * tl.load(x_scales + token * x_scale_row)
    if HAS_BIAS:
        total += tl.load(bias + outputs, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + token.to(tl.int64) * N + outputs, total.to(out.dtype.element_ty), mask=inside)


@functools.cache
def choose_split(num_tokens: int, num_outputs: int, width: int) -> Split:
    """Parts enough for three programs a multiprocessor, or one with more tokens: each reads them again, so its tile is
    larger.
    """
    if num_tokens > 64:
        return _in_parts(Split(128, 128, 1, 8, 5), _PROCESSORS, num_tokens, num_outputs, width)
    columns = max(32, next_power_of_2(num_tokens))
    return _in_parts(Split(columns, 64, 1, 4, 4), 3 * _PROCESSORS, num_tokens, num_outputs, width)


def _in_parts(split: Split, programs: int, num_tokens: int, num_outputs: int, width: int) -> Split:
    tiles = cdiv(num_tokens, split.tokens) * cdiv(num_outputs, split.outputs)
    parts = max(1, min(programs // tiles, width // (GROUP * _FEWEST_STEPS)))
    return Split(split.tokens, split.outputs, parts, split.num_warps, split.stages)


def can_split(split: Split, width: int, block_rows: int, has_groups: bool) -> bool:
    """Whether the product is by a weight of so many inputs and such scales."""
    return width % GROUP == 0 and (not has_groups or block_rows % split.outputs == 0)


def fp8_split(
    x: Rounded,
    weight: torch.Tensor,
    w_scales: torch.Tensor,
    block_rows: int,
    bias: torch.Tensor | None,
    split: Split,
) -> torch.Tensor:
    """fp8_product of 1 token at least where the split is one that `can_split`; the weight has no gaps."""
    (values, x_scales, num_tokens, dtype), (num_outputs, width) = x, weight.shape
    out = torch.empty((num_tokens, num_outputs), dtype=dtype, device=weight.device)
    steps = cdiv(width // GROUP, split.parts)
    parts = cdiv(width // GROUP, steps)
    is_whole = parts == 1
    to = out if is_whole else torch.empty((parts, *out.shape), dtype=torch.float32, device=weight.device)
    grid = (cdiv(num_tokens, split.tokens), cdiv(num_outputs, split.outputs), parts)
    forms = {"HAS_GROUPS": w_scales.shape[1] > 1, "HAS_BIAS": bias is not None, "EARLY": starts_early(num_tokens)}
    forms |= early_launch()
    _fp8_part[grid](
        values, values.stride(0), weight, x_scales, *x_scales.stride(), w_scales, w_scales.stride(0), bias, to,
        num_tokens, num_outputs, width, block_rows, steps, BT=split.tokens, BN=split.outputs,
        STAGES=min(split.stages, most_stages()), IS_WHOLE=is_whole, num_warps=split.num_warps, **forms,
    )  # fmt: skip
    if not is_whole:
        _fp8_add_parts[num_tokens, cdiv(num_outputs, _ADDED)](
            to, x_scales, x_scales.stride(0), w_scales, w_scales.stride(0), bias, out, num_tokens, num_outputs,
            block_rows, PARTS=parts, BLOCK=_ADDED, num_warps=_ADDING_WARPS, **forms,
        )  # fmt: skip
    return out
