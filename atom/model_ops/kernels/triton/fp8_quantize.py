"""Rounding activations to fp8 in Triton: a scale a row, or a scale for each 128 values of a row."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from atom.model_ops.float8 import SMALLEST_AMAX

GROUP = 128
# Of a row with groups, what a program takes: enough for 16 bytes a thread and load.
_GROUPS_A_PROGRAM = 16


@triton.jit
def _quantize(
    x, x_stride, out, out_stride, scales, scale_row, scale_group, width, length,
    GROUPS: tl.constexpr, SIZE: tl.constexpr, LARGEST: tl.constexpr, SMALLEST: tl.constexpr,
):  # fmt: skip
    """A program: GROUPS runs of `length` values of a row, SIZE >= length."""
    row = tl.program_id(0).to(tl.int64)
    group = tl.program_id(1) * GROUPS + tl.arange(0, GROUPS)
    within = tl.arange(0, SIZE)
    columns = group[:, None] * length + within[None, :]
    inside = (within[None, :] < length) & (columns < width)
    values = tl.load(x + row * x_stride + columns, mask=inside, other=0.0).to(tl.float32)
    # Divisions round as the reference's do.
    scale = tl.div_rn(tl.maximum(tl.max(tl.abs(values), axis=1), SMALLEST), LARGEST)
    quotient = tl.div_rn(values, tl.broadcast_to(scale[:, None], values.shape))
    # min and max would make a number of NaN.
    quotient = tl.where(quotient > LARGEST, LARGEST, tl.where(quotient < -LARGEST, -LARGEST, quotient))
    tl.store(out + row * out_stride + columns, quotient.to(out.dtype.element_ty), mask=inside)
    tl.store(scales + row * scale_row + group * scale_group, scale, mask=group * length < width)


def quantize_tokens(x: torch.Tensor, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """x [T, K] as values [T, K] of an 8-bit type and scales [T, 1] float32."""
    num_tokens, width = x.shape
    values = torch.empty((num_tokens, width), dtype=dtype, device=x.device)
    scales = torch.empty((num_tokens, 1), dtype=torch.float32, device=x.device)
    size = triton.next_power_of_2(width)
    if num_tokens:
        _quantize[(num_tokens, 1)](
            x, x.stride(0), values, width, scales, 1, 1, width, width,
            1, size, torch.finfo(dtype).max, SMALLEST_AMAX, num_warps=min(16, max(1, size // 512)),
        )  # fmt: skip
    return values, scales


def quantize_groups(x: torch.Tensor, dtype: torch.dtype, row_multiple: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    """x [T, K] as values [M, K] and scales [M, ceil(K/128)] float32 with strides (1, M).

    M is T rounded up to a multiple; what the rows beyond T hold is anything.
    """
    num_tokens, width = x.shape
    num_rows, num_groups = triton.cdiv(num_tokens, row_multiple) * row_multiple, triton.cdiv(width, GROUP)
    values = torch.empty((num_rows, width), dtype=dtype, device=x.device)
    scales = torch.empty((num_groups, num_rows), dtype=torch.float32, device=x.device).t()
    if num_tokens:
        _quantize[(num_tokens, triton.cdiv(num_groups, _GROUPS_A_PROGRAM))](
            x, x.stride(0), values, width, scales, scales.stride(0), scales.stride(1), width, GROUP,
            _GROUPS_A_PROGRAM, GROUP, torch.finfo(dtype).max, SMALLEST_AMAX, num_warps=4,
        )  # fmt: skip
    return values, scales
