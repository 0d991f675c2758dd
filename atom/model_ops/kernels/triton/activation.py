"""Gated activations in Triton."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from atom.model_ops.kernels.triton.early import early_launch, starts_early, take_turn
from atom.model_ops.kernels.triton.sizes import cdiv, next_power_of_2

_BLOCK = 1024


@triton.jit
def _silu_and_mul(x, x_stride, out, size, BLOCK: tl.constexpr, EARLY: tl.constexpr):
    take_turn(EARLY)
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < size
    gate = tl.load(x + row * x_stride + columns, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(x + row * x_stride + size + columns, mask=inside, other=0.0).to(tl.float32)
    active = gate / (1.0 + tl.exp(-gate))
    tl.store(out + row * size + columns, (active * up).to(out.dtype.element_ty), mask=inside)


def silu_and_mul(x: torch.Tensor) -> torch.Tensor:
    """x [T, 2I], gate then up, to silu(gate) * up [T, I]."""
    num_rows, size = x.shape[0], x.shape[1] // 2
    out = torch.empty((num_rows, size), dtype=x.dtype, device=x.device)
    if num_rows:
        block = min(_BLOCK, next_power_of_2(size))
        grid = (num_rows, cdiv(size, block))
        _silu_and_mul[grid](x, x.stride(0), out, size, block, starts_early(num_rows), num_warps=4, **early_launch())
    return out
