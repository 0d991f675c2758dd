"""RMSNorm in plain torch: the sum of squares in float32, few operations."""

from __future__ import annotations

import torch


def inverse_rms(x: torch.Tensor, eps: float) -> torch.Tensor:
    """1 / sqrt(mean(x^2) + eps) over the last axis, kept, in float32."""
    # vector_norm reads x once and accumulates in float32; the rest is a scalar a row.
    norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=torch.float32)
    return norm.square_().mul_(1.0 / x.shape[-1]).add_(eps).rsqrt_()


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """x [..., H] normed over H, times weight, which broadcasts against x."""
    normed = x * inverse_rms(x, eps)
    return normed.mul_(weight) if normed.dtype == weight.dtype else normed.to(weight.dtype).mul_(weight)


def add_rms_norm(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """residual += x in place; returns rms_norm(residual)."""
    return rms_norm(residual.add_(x), weight, eps)
