"""RMSNorm by AITER."""

from __future__ import annotations

import torch

from atom.model_ops.kernels.aiter.library import load
from atom.model_ops.kernels.aiter.limits import require_16_bits

_rms_norm = load("aiter.rms_norm")
_add_rms_norm = load("aiter.rmsnorm2d_fwd_with_add")


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """x [T, H] normed over H, times weight [H]."""
    require_16_bits(x, "rms_norm")
    return _rms_norm(x, weight, eps)


def add_rms_norm(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """residual += x in place; returns rms_norm(residual)."""
    require_16_bits(x, "add_rms_norm")
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    # The kernel reads each value of the residual before it writes it, so one tensor can be both.
    _add_rms_norm(out, x, residual, residual, weight, eps)
    return out


def fp8_rms_norm(
    x: torch.Tensor, residual: torch.Tensor | None, weight: torch.Tensor, eps: float, packed: object
) -> torch.Tensor:
    """x [T, K] normed, with the residual [T, K] added in place first; the linear rounds it."""
    return rms_norm(x, weight, eps) if residual is None else add_rms_norm(x, residual, weight, eps)
