"""Gated activations by AITER."""

from __future__ import annotations

import torch

from atom.model_ops.kernels.aiter.library import load
from atom.model_ops.kernels.aiter.limits import AiterUnsupported, require_16_bits

_silu_and_mul = load("aiter.silu_and_mul")

# Most values that the kernel writes at once; a row that ends within them would go on into the next one.
_RUN = 8


def silu_and_mul(x: torch.Tensor) -> torch.Tensor:
    """x [T, 2I], gate then up, to silu(gate) * up [T, I]."""
    require_16_bits(x, "silu_and_mul")
    width = x.shape[1] // 2
    if width % _RUN:
        raise AiterUnsupported(f"AITER has no silu_and_mul of {width} values: give ATOM_KERNELS=silu_and_mul=triton")
    out = torch.empty((x.shape[0], width), dtype=x.dtype, device=x.device)
    # The kernel knows no strides.
    _silu_and_mul(out, x.contiguous())
    return out


def fp8_silu_and_mul(x: torch.Tensor, packed: object) -> torch.Tensor:
    """x [T, 2K], gate then up, to silu(gate) * up [T, K]; the linear rounds it."""
    return silu_and_mul(x)
