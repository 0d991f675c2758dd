"""Mixtures of experts by AITER: weights shuffled once, then one call a step.

The compiled products take whole tiles of inputs only, so the intermediate size is filled up: experts get gates and ups
of zeros, and zeros to multiply what these make. With scales by block it is whole already.
Shapes: T tokens, E experts, H hidden, I intermediate.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from atom.model_ops.float8 import fn_to_fnuz, scale_factor
from atom.model_ops.kernels.aiter.architecture import fp8_dtype
from atom.model_ops.kernels.aiter.library import load
from atom.model_ops.kernels.aiter.limits import AiterUnsupported, require_16_bits

_fused_moe = load("aiter.fused_moe.fused_moe")
_shuffle = load("aiter.ops.shuffle.shuffle_weight")

# The kinds of scales are an enumeration that only the package has; the default of the parameter is one of them.
_KIND: Any = type(inspect.signature(_fused_moe).parameters["quant_type"].default)

_TILE = (16, 16)
# Inputs that the largest tile of a product takes at a time, in bytes.
_TILE_BYTES = 256
# Of block scales; and the hidden size is a multiple of it.
_BLOCK = 128


@dataclass(frozen=True, slots=True)
class PackedExperts:
    """gate_up [E, 2I, H] and down [E, H, I], shuffled; scales and their kind where the weights are fp8."""

    gate_up: torch.Tensor
    down: torch.Tensor
    gate_up_scales: torch.Tensor | None = None
    down_scales: torch.Tensor | None = None
    kind: Any = None


def experts_pack(gate_up: torch.Tensor, down: torch.Tensor) -> PackedExperts:
    """The weights, shuffled. AiterUnsupported for a hidden size that no kernel takes."""
    _check_hidden(down)
    gate_up, down = _filled(gate_up, down)
    return PackedExperts(_shuffle(gate_up, layout=_TILE), _shuffle(down, layout=_TILE))


def fp8_experts_pack(
    gate_up: torch.Tensor,
    gate_up_scales: torch.Tensor,
    down: torch.Tensor,
    down_scales: torch.Tensor,
    block_rows: int,
    dtype: torch.dtype,
) -> PackedExperts:
    """The weights, shuffled, in the GPU's float8. AiterUnsupported for scales or sizes that no kernel takes."""
    _check_hidden(down)
    by_block = block_rows == _BLOCK
    for weights, scales in ((gate_up, gate_up_scales), (down, down_scales)):
        _check_scales(weights, scales, by_block)
    float8 = fp8_dtype()
    if float8 == torch.float8_e4m3fnuz:
        gate_up, down = fn_to_fnuz(gate_up), fn_to_fnuz(down)
    gate_up_scales, down_scales = (scales * scale_factor(float8) for scales in (gate_up_scales, down_scales))
    if not by_block:
        missing = down.shape[2]
        gate_up, down = _filled(gate_up, down)
        gate_up_scales = _filled_rows(gate_up_scales, down.shape[2] - missing)
    return PackedExperts(
        _shuffle(gate_up, layout=_TILE),
        _shuffle(down, layout=_TILE),
        gate_up_scales.contiguous(),
        down_scales.contiguous(),
        _KIND.per_128x128 if by_block else _KIND.per_Token,
    )


def fused_experts(x: torch.Tensor, packed: PackedExperts, weights: torch.Tensor, experts: torch.Tensor) -> torch.Tensor:
    """x [T, H], weights [T, k] float32, experts [T, k] int32; [T, H]."""
    require_16_bits(x, "fused_experts")
    x = x.contiguous()
    if packed.kind is None:
        return _fused_moe(x, packed.gate_up, packed.down, weights, experts)
    out = _fused_moe(
        x, packed.gate_up, packed.down, weights, experts,
        quant_type=packed.kind, w1_scale=packed.gate_up_scales, w2_scale=packed.down_scales,
    )  # fmt: skip
    if packed.kind == _KIND.per_Token:
        # The scale of a token of zeros is 0 there, and what is divided by it no number.
        out.masked_fill_((x == 0).all(-1, keepdim=True), 0)
    return out


def _filled(gate_up: torch.Tensor, down: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Both with an intermediate size of whole tiles."""
    missing = -down.shape[2] % (_TILE_BYTES // down.itemsize)
    return (_filled_rows(gate_up, missing), _with_zeros(down, (0, missing))) if missing else (gate_up, down)


def _filled_rows(x: torch.Tensor, missing: int) -> torch.Tensor:
    """x [E, 2I, ...] with as many rows of zeros behind the gates, and behind the ups."""
    halves = x.unflatten(1, (2, x.shape[1] // 2))
    return _with_zeros(halves, (0, 0, 0, missing)).flatten(1, 2)


def _with_zeros(x: torch.Tensor, sides: tuple[int, ...]) -> torch.Tensor:
    # Filling has no float8 kernels; the bytes have, and 0 is 0 in both types.
    return F.pad(x.view(torch.uint8), sides).view(x.dtype) if x.itemsize == 1 else F.pad(x, sides)


def _check_hidden(down: torch.Tensor) -> None:
    if down.shape[1] % _BLOCK:
        raise _unsupported(f"of a hidden size of {down.shape[1]}")


def _check_scales(weights: torch.Tensor, scales: torch.Tensor, by_block: bool) -> None:
    num_experts, num_outputs, num_inputs = weights.shape
    by_channel = (num_experts, num_outputs, 1)
    blocks = (num_experts, num_outputs / _BLOCK, num_inputs / _BLOCK)
    if scales.shape != (blocks if by_block else by_channel):
        raise _unsupported(f"with scales of {tuple(scales.shape)} for weights of {tuple(weights.shape)}")


def _unsupported(what: str) -> AiterUnsupported:
    return AiterUnsupported(
        f"AITER has no experts {what}: give ATOM_KERNELS=fused_experts=reference, which takes the group with it"
    )
