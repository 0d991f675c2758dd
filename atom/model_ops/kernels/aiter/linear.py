"""Projections by AITER: its table of tuned shapes chooses the product, torch's own where it has none."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from atom.model_ops.kernels.aiter.library import load
from atom.model_ops.kernels.unrounded import unrounded_linear

_mm = load("aiter.tuned_gemm.tgemm.mm")


@dataclass(frozen=True, slots=True)
class PackedLinear:
    """A weight [N, K] as it was loaded, and its bias [N] or None."""

    weight: torch.Tensor
    bias: torch.Tensor | None


def linear_pack(weight: torch.Tensor, bias: torch.Tensor | None) -> PackedLinear:
    """The weight itself: the products of 16 bits read it as it lies."""
    return PackedLinear(weight, bias)


def linear(x: torch.Tensor, packed: PackedLinear) -> torch.Tensor:
    """x [T, K] to [T, N]."""
    return _mm(x, packed.weight, bias=packed.bias)


def logits(x: torch.Tensor, packed: PackedLinear) -> torch.Tensor:
    """As `linear`, in float32 and so by torch: AITER's default rounds before it widens (`otype`)."""
    return unrounded_linear(x, packed.weight, packed.bias)
