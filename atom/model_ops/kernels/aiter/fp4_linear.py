"""Projections with MXFP4 weights by AITER, on the GPUs that multiply fp4 by fp4; x is rounded to fp4 too.

Scales lie in an order of the product's own, in whole tiles of 256 rows by 8 scales. Outputs are filled up to the
smallest tile, and what is computed for them dropped. Shapes: T tokens, N outputs, K inputs.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from atom.model_ops.kernels.aiter.architecture import gfx_name
from atom.model_ops.kernels.aiter.library import AiterUnavailable, load
from atom.model_ops.kernels.aiter.limits import AiterUnsupported

_quantize = load("aiter.per_1x32_f4_quant_hip")
_product = load("aiter.gemm_a4w4")
_shuffle = load("aiter.ops.shuffle.shuffle_weight")
_shuffle_scales = load("aiter.utility.fp4_utils.e8m0_shuffle")

_GPU = "gfx950"
if gfx_name() != _GPU:
    raise AiterUnavailable(f"AITER has fp4 products on {_GPU}, and this GPU is {gfx_name()}")

# What the quantising kernel gets right: with scales that are no multiple of 8 it writes its values elsewhere.
_INPUTS = 256
# The smallest tile of the product.
_TOKENS, _OUTPUTS = 32, 128
_GROUP = 32


@dataclass(frozen=True, slots=True)
class PackedFloat4Linear:
    """weight [N', K/2] in pairs, shuffled, scales [N'', K/32] e8m0, shuffled; N' and N'' are N filled up."""

    weight: torch.Tensor
    scales: torch.Tensor
    bias: torch.Tensor | None
    num_outputs: int


def fp4_linear_pack(
    weight: torch.Tensor, scales: torch.Tensor, bias: torch.Tensor | None, dtype: torch.dtype
) -> PackedFloat4Linear:
    """The weight and its scales, shuffled. AiterUnsupported for what no kernel takes, ValueError for a wrong shape."""
    num_outputs, num_pairs = weight.shape
    if scales.shape != (num_outputs, 2 * num_pairs // _GROUP):
        raise ValueError(f"scales of {tuple(scales.shape)} do not fit pairs of {tuple(weight.shape)}")
    if dtype != torch.bfloat16 or 2 * num_pairs % _INPUTS:
        raise AiterUnsupported(
            f"AITER has no fp4 product of {2 * num_pairs} inputs in {str(dtype).removeprefix('torch.')}: give "
            "--dtype bfloat16, or ATOM_KERNELS=fp4_linear=reference, which takes the group with it"
        )
    missing = -num_outputs % _OUTPUTS
    if missing:
        weight, scales = (F.pad(x, (0, 0, 0, missing)) for x in (weight, scales))
    return PackedFloat4Linear(
        _shuffle(weight.contiguous(), layout=(16, 16)).view(torch.float4_e2m1fn_x2),
        _shuffle_scales(scales).view(torch.float8_e8m0fnu),
        bias,
        num_outputs,
    )


def fp4_linear(x: torch.Tensor, packed: PackedFloat4Linear) -> torch.Tensor:
    """x [T, K] bfloat16 to [T, N]."""
    num_tokens = x.shape[0]
    values, scales = _quantize(x.contiguous(), quant_dtype=packed.weight.dtype, shuffle=True)
    shape = (num_tokens + -num_tokens % _TOKENS, packed.weight.shape[0])
    out = torch.empty(shape, dtype=x.dtype, device=x.device)
    # One of its kernels leaves a bias out.
    _product(values, packed.weight, scales, packed.scales, out, bpreshuffle=True)
    out = out[:num_tokens, : packed.num_outputs].contiguous()
    return out if packed.bias is None else out.add_(packed.bias)
