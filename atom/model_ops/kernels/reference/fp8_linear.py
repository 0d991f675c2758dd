"""Projections with fp8 weights in plain torch: the weight dequantised once, the input rounded to fp8 and back.

Both are in the model's dtype then, and a projection of the reference does the rest: as fast as that, and no smaller in
memory. In float32 the result differs from the exact one by the order of sums alone; bfloat16 rounds the dequantised
numbers once more, by 2 ** -9 of a value where fp8 itself rounds by 2 ** -4.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from atom.model_ops.float8 import float8_dtype, quantize
from atom.model_ops.kernels.reference.activation import silu_and_mul
from atom.model_ops.kernels.reference.float8 import from_float8
from atom.model_ops.kernels.reference.linear import PackedLinear, linear, linear_pack
from atom.model_ops.kernels.reference.norm import add_rms_norm, rms_norm

_GROUP = 128


@dataclass(frozen=True, slots=True)
class PackedFloat8Linear:
    """A dequantised weight. has_groups: the input gets a scale for 128 values, else one a token."""

    linear: PackedLinear
    has_groups: bool


def fp8_linear_pack(
    weight: torch.Tensor, scales: torch.Tensor, block_rows: int, bias: torch.Tensor | None, dtype: torch.dtype
) -> PackedFloat8Linear:
    """weight [N, K] and scales [ceil(N/block_rows), 1 or ceil(K/128)] as one weight in `dtype`."""
    num_outputs, num_inputs = weight.shape
    whole = weight.new_empty((num_outputs, num_inputs), dtype=dtype)
    # A band at a time, so that no second copy is ever there, least of all in float32.
    for first in range(0, num_outputs, _GROUP):
        band = slice(first, min(first + _GROUP, num_outputs))
        rows = scales[first // block_rows : -(-band.stop // block_rows)].float()
        if scales.shape[1] > 1:
            rows = rows.repeat_interleave(_GROUP, 1)[:, :num_inputs]
        whole[band] = from_float8(weight[band], torch.float32) * rows
    return PackedFloat8Linear(linear_pack(whole, bias), has_groups=scales.shape[1] > 1)


def fp8_linear(x: torch.Tensor, packed: PackedFloat8Linear) -> torch.Tensor:
    """x [T, K] to [T, N]."""
    num_tokens, width = x.shape
    if not packed.has_groups:
        return linear(_rounded(x), packed.linear)
    short = -width % _GROUP
    groups = (F.pad(x, (0, short)) if short else x).reshape(-1, _GROUP)
    return linear(_rounded(groups).view(num_tokens, width + short)[:, :width].contiguous(), packed.linear)


def fp8_rms_norm(
    x: torch.Tensor, residual: torch.Tensor | None, weight: torch.Tensor, eps: float, packed: PackedFloat8Linear
) -> torch.Tensor:
    """x [T, K] normed, with the residual [T, K] added in place first; the linear rounds it."""
    return rms_norm(x, weight, eps) if residual is None else add_rms_norm(x, residual, weight, eps)


def fp8_silu_and_mul(x: torch.Tensor, packed: PackedFloat8Linear) -> torch.Tensor:
    """x [T, 2K], gate then up, to silu(gate) * up [T, K]; the linear rounds it."""
    return silu_and_mul(x)


def _rounded(x: torch.Tensor) -> torch.Tensor:
    """x as fp8 holds it, each row with its own scale."""
    values, scales = quantize(x, float8_dtype(x.device))
    return (from_float8(values, torch.float32) * scales).to(x.dtype)
