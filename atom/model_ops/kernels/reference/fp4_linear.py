"""Projections with MXFP4 weights in plain torch: the weight dequantised once, four times the memory; x not rounded."""

from __future__ import annotations

import torch

from atom.model_ops.kernels.reference.float4 import GROUP, from_float4
from atom.model_ops.kernels.reference.linear import PackedLinear, linear, linear_pack

# Rows dequantised at once, so that little of a weight is ever there in float32.
_BAND = 128


def fp4_linear_pack(
    weight: torch.Tensor, scales: torch.Tensor, bias: torch.Tensor | None, dtype: torch.dtype
) -> PackedLinear:
    """weight [N, K/2] and scales [N, K/32], both uint8, as one weight in `dtype`. ValueError for wrong shapes."""
    num_outputs, num_pairs = weight.shape
    if scales.shape != (num_outputs, 2 * num_pairs // GROUP) or 2 * num_pairs % GROUP:
        raise ValueError(f"scales of {tuple(scales.shape)} do not fit pairs of {tuple(weight.shape)}")
    whole = weight.new_empty((num_outputs, 2 * num_pairs), dtype=dtype)
    for first in range(0, num_outputs, _BAND):
        band = slice(first, first + _BAND)
        whole[band] = from_float4(weight[band], scales[band], dtype)
    return linear_pack(whole, bias)


def fp4_linear(x: torch.Tensor, packed: PackedLinear) -> torch.Tensor:
    """x [T, K] to [T, N]."""
    return linear(x, packed)
