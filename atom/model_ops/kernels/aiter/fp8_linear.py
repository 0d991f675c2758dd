"""Projections with fp8 weights by AITER: a scale for each output, or for 128 x 128 weights.

Shapes: T tokens, N outputs, K inputs, G groups of 128 inputs.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from atom.model_ops.float8 import fn_to_fnuz, scale_factor
from atom.model_ops.kernels.aiter.architecture import fp8_dtype
from atom.model_ops.kernels.aiter.library import load
from atom.model_ops.kernels.aiter.limits import AiterUnsupported, require_16_bits

_quantize_tokens = load("aiter.per_token_quant_hip")
_quantize_groups = load("aiter.per_group_quant_hip")
_product = load("aiter.gemm_a8w8")
_block_product = load("aiter.gemm_a8w8_blockscale")

_GROUP = 128
# The kernels read and write 16 bytes at a time.
_MULTIPLE = 16


@dataclass(frozen=True, slots=True)
class PackedFloat8Linear:
    """weight [N, K] in the GPU's float8, scales [N, 1] or, by blocks, [ceil(N/128), G] float32."""

    weight: torch.Tensor
    scales: torch.Tensor
    bias: torch.Tensor | None
    has_blocks: bool


def fp8_linear_pack(
    weight: torch.Tensor, scales: torch.Tensor, block_rows: int, bias: torch.Tensor | None, dtype: torch.dtype
) -> PackedFloat8Linear:
    """The weight itself, in e4m3fnuz where the GPU has that. AiterUnsupported for scales that no kernel takes."""
    has_blocks = scales.shape[1] > 1
    _check(weight, block_rows, has_blocks)
    float8 = fp8_dtype()
    if float8 == torch.float8_e4m3fnuz:
        weight = fn_to_fnuz(weight)
    scales = scales * scale_factor(float8)
    if not has_blocks:
        scales = scales.repeat_interleave(block_rows, 0)[: weight.shape[0]]
    return PackedFloat8Linear(weight.contiguous(), scales.contiguous(), bias, has_blocks)


def fp8_linear(x: torch.Tensor, packed: PackedFloat8Linear) -> torch.Tensor:
    """x [T, K] to [T, N]."""
    require_16_bits(x, "fp8_linear")
    weight, scales, bias = packed.weight, packed.scales, packed.bias
    # The kernels know no strides.
    x = x.contiguous()
    if not packed.has_blocks:
        values, by_token = _quantize_tokens(x, quant_dtype=weight.dtype)
        # The scale of zeros is 0 there, and what is divided by it no number.
        values.view(torch.uint8).masked_fill_(by_token == 0, 0)
        return _product(values, weight, by_token, scales, bias=bias, dtype=x.dtype)
    values, by_group = _quantize_groups(x, quant_dtype=weight.dtype, group_size=_GROUP, transpose_scale=False)
    out = _block_product(values, weight, by_group, scales, dtype=x.dtype)
    return out if bias is None else out.add_(bias)


def _check(weight: torch.Tensor, block_rows: int, has_blocks: bool) -> None:
    num_outputs, num_inputs = weight.shape
    lacking = ""
    if num_outputs % _MULTIPLE or num_inputs % _MULTIPLE:
        lacking = f"for {num_outputs} outputs of {num_inputs} inputs"
    elif has_blocks and (block_rows != _GROUP or num_inputs % _GROUP):
        lacking = f"with scales by {block_rows} x {_GROUP} for {num_inputs} inputs"
    if lacking:
        raise AiterUnsupported(
            f"AITER has no fp8 product {lacking}: give ATOM_KERNELS=fp8_linear_pack=triton,fp8_linear=triton"
        )
