"""Activations in fp8, in Triton: what a linear with 8-bit weights reads, and rounding to it.

Owns the form and the rounding that the fused norms and activations share. Shapes: T tokens, K values of a token.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
import triton
import triton.language as tl

from atom.model_ops.float8 import SMALLEST_AMAX
from atom.model_ops.kernels.triton.early import early_launch, starts_early, take_turn
from atom.model_ops.kernels.triton.sizes import cdiv, next_power_of_2

GROUP = 128
# Of a row with groups, what a program takes: enough for 16 bytes a thread and load.
_GROUPS_A_PROGRAM = 16


@dataclass(frozen=True, slots=True)
class InputForm:
    """How a linear wants its input: 8-bit type, a scale for 128 values or one a token, rows filled to a multiple."""

    float8: torch.dtype
    has_groups: bool = False
    row_multiple: int = 1


class Rounded(NamedTuple):
    """Activations in fp8: values [M, K], scales [M, 1 or ceil(K/128)], by group with strides (1, M).

    The first num_tokens of the M rows are of tokens, which had `dtype`; the others hold anything.
    """

    values: torch.Tensor
    scales: torch.Tensor
    num_tokens: int
    dtype: torch.dtype


def empty_rounded(num_tokens: int, width: int, like: torch.Tensor, form: InputForm) -> Rounded:
    """Uninitialised, for tokens of the type and on the device of `like`."""
    num_rows = cdiv(num_tokens, form.row_multiple) * form.row_multiple
    num_groups = cdiv(width, GROUP) if form.has_groups else 1
    values = torch.empty((num_rows, width), dtype=form.float8, device=like.device)
    scales = torch.empty((num_groups, num_rows), dtype=torch.float32, device=like.device).t()
    return Rounded(values, scales, num_tokens, like.dtype)


@triton.jit
def round_to_float8(values, scale, LARGEST: tl.constexpr):
    """values as they are stored with this scale, which has an axis for each of theirs or none; still float32.

    Their quotients are rounded as a division rounds them, but for the sign of -0. A division has a branch for extreme
    numbers, so that one after the other is computed, and calls a function there, which takes registers.
    """
    inverse = tl.div_rn(1.0, scale)
    quotient = values * inverse
    quotient = tl.fma(tl.fma(-quotient, scale, values), inverse, quotient)
    # min and max would make a number of NaN.
    return tl.where(quotient > LARGEST, LARGEST, tl.where(quotient < -LARGEST, -LARGEST, quotient))


@triton.jit
def to_float8(values, LARGEST: tl.constexpr, SMALLEST: tl.constexpr):
    """values [G, S] as they are stored, still float32, and the scale of each row [G]. Divisions round as torch's do."""
    scale = tl.div_rn(tl.maximum(tl.max(tl.abs(values), axis=1), SMALLEST), LARGEST)
    return round_to_float8(values, scale[:, None], LARGEST), scale


@triton.jit(do_not_specialize=["scale_group"])  # the number of tokens
def _quantize(
    x, x_stride, out, scales, scale_row, scale_group, width, length,
    GROUPS: tl.constexpr, SIZE: tl.constexpr, LARGEST: tl.constexpr, SMALLEST: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """A program: GROUPS runs of `length` values of a row, SIZE >= length."""
    take_turn(EARLY)
    row = tl.program_id(0).to(tl.int64)
    group = tl.program_id(1) * GROUPS + tl.arange(0, GROUPS)
    within = tl.arange(0, SIZE)
    columns = group[:, None] * length + within[None, :]
    inside = (within[None, :] < length) & (columns < width)
    values = tl.load(x + row * x_stride + columns, mask=inside, other=0.0).to(tl.float32)
    kept, scale = to_float8(values, LARGEST, SMALLEST)
    tl.store(out + row * width + columns, kept.to(out.dtype.element_ty), mask=inside)
    tl.store(scales + row * scale_row + group * scale_group, scale, mask=group * length < width)


def num_warps(values: int) -> int:
    """A warp for 512 values of a program."""
    return min(16, max(1, values // 512))


def quantize(x: torch.Tensor, form: InputForm) -> Rounded:
    """x [T, K] in the form."""
    num_tokens, width = x.shape
    made = empty_rounded(num_tokens, width, x, form)
    length, groups, size = width, 1, next_power_of_2(width)
    if form.has_groups:
        length, groups, size = GROUP, _GROUPS_A_PROGRAM, GROUP
    if num_tokens:
        _quantize[(num_tokens, cdiv(width, groups * length))](
            x, x.stride(0), made.values, made.scales, *made.scales.stride(), width, length,
            groups, size, torch.finfo(form.float8).max, SMALLEST_AMAX, starts_early(num_tokens),
            num_warps=num_warps(groups * size), **early_launch(),
        )  # fmt: skip
    return made
