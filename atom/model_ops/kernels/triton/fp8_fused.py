"""What comes before a linear with 8-bit weights, in Triton, in the form that it reads: RMSNorm, SiLU and product.

A program a row, so that nothing is written in 16 bits and read again. Rounds to the model's type where the kernels that
are not fused do, before it rounds to fp8: the same numbers, to the bit but for the order of the norm's sum.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from atom.model_ops.float8 import SMALLEST_AMAX
from atom.model_ops.kernels.triton.early import early_launch, starts_early, take_turn
from atom.model_ops.kernels.triton.fp8_linear import PackedFloat8Linear
from atom.model_ops.kernels.triton.fp8_quantize import GROUP, InputForm, Rounded, empty_rounded, num_warps, to_float8
from atom.model_ops.kernels.triton.sizes import next_power_of_2


@triton.jit
def _tile(GROUPS: tl.constexpr, SIZE: tl.constexpr):
    """Columns [GROUPS, SIZE] of a row."""
    return tl.arange(0, GROUPS)[:, None] * SIZE + tl.arange(0, SIZE)[None, :]


@triton.jit
def _store(
    values, columns, width, out, scales, scale_row, scale_group, row,
    GROUPS: tl.constexpr, SIZE: tl.constexpr, LARGEST: tl.constexpr, SMALLEST: tl.constexpr,
):  # fmt: skip
    kept, scale = to_float8(values, LARGEST, SMALLEST)
    tl.store(out + row * width + columns, kept.to(out.dtype.element_ty), mask=columns < width)
    group = tl.arange(0, GROUPS)
    tl.store(scales + row * scale_row + group * scale_group, scale, mask=group * SIZE < width)


@triton.jit(do_not_specialize=["scale_group"])  # the number of tokens
def _fp8_rms_norm(
    x, x_stride, residual, residual_stride, weight, out, scales, scale_row, scale_group, eps, H: tl.constexpr,
    GROUPS: tl.constexpr, SIZE: tl.constexpr, LARGEST: tl.constexpr, SMALLEST: tl.constexpr, HAS_RESIDUAL: tl.constexpr,
    EARLY: tl.constexpr,
):  # fmt: skip
    columns = _tile(GROUPS, SIZE)
    inside = columns < H
    # On its way while the kernel before this one ends, and while the squares are summed.
    scale = tl.load(weight + columns, mask=inside, other=0.0).to(tl.float32)
    take_turn(EARLY)
    row = tl.program_id(0).to(tl.int64)
    values = tl.load(x + row * x_stride + columns, mask=inside, other=0.0).to(tl.float32)
    if HAS_RESIDUAL:
        carried = tl.load(residual + row * residual_stride + columns, mask=inside, other=0.0).to(tl.float32)
        values += carried
        tl.store(residual + row * residual_stride + columns, values.to(residual.dtype.element_ty), mask=inside)
    inverse = tl.rsqrt(tl.sum(tl.sum(values * values, axis=1), axis=0) / H + eps)
    normed = (values * inverse * scale).to(x.dtype.element_ty).to(tl.float32)
    _store(normed, columns, H, out, scales, scale_row, scale_group, row, GROUPS, SIZE, LARGEST, SMALLEST)


@triton.jit(do_not_specialize=["scale_group"])  # the number of tokens
def _fp8_silu_and_mul(
    x, x_stride, out, scales, scale_row, scale_group, size,
    GROUPS: tl.constexpr, SIZE: tl.constexpr, LARGEST: tl.constexpr, SMALLEST: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    take_turn(EARLY)
    row = tl.program_id(0).to(tl.int64)
    columns = _tile(GROUPS, SIZE)
    inside = columns < size
    dtype = x.dtype.element_ty
    gate = tl.load(x + row * x_stride + columns, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(x + row * x_stride + size + columns, mask=inside, other=0.0).to(tl.float32)
    active = gate / (1.0 + tl.exp(-gate))
    values = (active * up).to(dtype).to(tl.float32)
    _store(values, columns, size, out, scales, scale_row, scale_group, row, GROUPS, SIZE, LARGEST, SMALLEST)


def _row_tile(width: int, form: InputForm) -> tuple[int, int]:
    """GROUPS and SIZE that hold a row."""
    whole = next_power_of_2(width)
    return (max(1, whole // GROUP), GROUP) if form.has_groups else (1, whole)


def fp8_rms_norm(
    x: torch.Tensor, residual: torch.Tensor | None, weight: torch.Tensor, eps: float, packed: PackedFloat8Linear
) -> Rounded:
    """x [T, H] normed; with a residual [T, H], x is added to it in place first and the sum is normed."""
    num_tokens, width = x.shape
    form = packed.input_form
    made = empty_rounded(num_tokens, width, x, form)
    groups, size = _row_tile(width, form)
    carried = x if residual is None else residual
    if num_tokens:
        _fp8_rms_norm[(num_tokens,)](
            x, x.stride(0), carried, carried.stride(0), weight, made.values, made.scales, *made.scales.stride(), eps,
            width, groups, size, torch.finfo(form.float8).max, SMALLEST_AMAX, residual is not None,
            starts_early(num_tokens), num_warps=num_warps(groups * size), **early_launch(),
        )  # fmt: skip
    return made


def fp8_silu_and_mul(x: torch.Tensor, packed: PackedFloat8Linear) -> Rounded:
    """x [T, 2I], gate then up, to silu(gate) * up [T, I]."""
    num_tokens, width = x.shape[0], x.shape[1] // 2
    form = packed.input_form
    made = empty_rounded(num_tokens, width, x, form)
    groups, size = _row_tile(width, form)
    if num_tokens:
        _fp8_silu_and_mul[(num_tokens,)](
            x, x.stride(0), made.values, made.scales, *made.scales.stride(), width,
            groups, size, torch.finfo(form.float8).max, SMALLEST_AMAX, starts_early(num_tokens),
            num_warps=num_warps(groups * size), **early_launch(),
        )  # fmt: skip
    return made
