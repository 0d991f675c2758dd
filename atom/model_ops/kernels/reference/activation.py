"""Gated activations in plain torch."""

from __future__ import annotations

import torch
import torch.nn.functional as F


def silu_and_mul(x: torch.Tensor) -> torch.Tensor:
    """x [T, 2I], gate then up, to silu(gate) * up [T, I]."""
    size = x.shape[-1] // 2
    return F.silu(x[..., :size]).mul_(x[..., size:])
