"""RMSNorm in Triton, a program a row. Rounds once, what it stores: 16 bits lose most by what they round on the way."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from atom.model_ops.kernels.triton.early import early_launch, starts_early, take_turn
from atom.model_ops.kernels.triton.sizes import next_power_of_2


@triton.jit
def _norm_row(x, weight, eps, H: tl.constexpr, dtype: tl.constexpr):
    """x [BLOCK] float32, zeros beyond H; weight [BLOCK]."""
    inverse = tl.rsqrt(tl.sum(x * x, axis=0) / H + eps)
    return (x * inverse * weight.to(tl.float32)).to(dtype)


@triton.jit
def _rms_norm(x, x_stride, weight, out, eps, H: tl.constexpr, BLOCK: tl.constexpr, EARLY: tl.constexpr):
    take_turn(EARLY)
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < H
    values = tl.load(x + row * x_stride + columns, mask=inside, other=0.0).to(tl.float32)
    scale = tl.load(weight + columns, mask=inside, other=0.0)
    tl.store(out + row * H + columns, _norm_row(values, scale, eps, H, out.dtype.element_ty), mask=inside)


@triton.jit
def _add_rms_norm(
    x,
    x_stride,
    residual,
    residual_stride,
    weight,
    out,
    eps,
    H: tl.constexpr,
    BLOCK: tl.constexpr,
    EARLY: tl.constexpr,
):
    take_turn(EARLY)
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < H
    values = tl.load(x + row * x_stride + columns, mask=inside, other=0.0).to(tl.float32)
    carried = tl.load(residual + row * residual_stride + columns, mask=inside, other=0.0).to(tl.float32)
    total = values + carried
    tl.store(residual + row * residual_stride + columns, total.to(residual.dtype.element_ty), mask=inside)
    scale = tl.load(weight + columns, mask=inside, other=0.0)
    normed = _norm_row(total, scale, eps, H, out.dtype.element_ty)
    tl.store(out + row * H + columns, normed, mask=inside)


def _num_warps(block: int) -> int:
    """A warp for 512 values: 16 bytes a thread and load, two loads in flight."""
    return min(16, max(1, block // 512))


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """x [T, H] normed over H, times weight [H]."""
    num_rows, width = x.shape
    out = torch.empty((num_rows, width), dtype=x.dtype, device=x.device)
    block = next_power_of_2(width)
    if num_rows:
        _rms_norm[(num_rows,)](
            x, x.stride(0), weight, out, eps, width, block, starts_early(num_rows),
            num_warps=_num_warps(block), **early_launch(),
        )  # fmt: skip
    return out


def add_rms_norm(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """residual [T, H] += x in place; returns the sum normed, which is rounded in the residual only."""
    num_rows, width = x.shape
    out = torch.empty((num_rows, width), dtype=x.dtype, device=x.device)
    block = next_power_of_2(width)
    if num_rows:
        _add_rms_norm[(num_rows,)](
            x, x.stride(0), residual, residual.stride(0), weight, out, eps, width, block, starts_early(num_rows),
            num_warps=_num_warps(block), **early_launch(),
        )  # fmt: skip
    return out
