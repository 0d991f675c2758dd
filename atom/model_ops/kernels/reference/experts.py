"""A token's experts in plain torch: an expert at a time, with the projections of the reference.

Shapes: T tokens, E experts, H hidden, I intermediate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from atom.model_ops.kernels.reference.activation import silu_and_mul
from atom.model_ops.kernels.reference.fp8_linear import fp8_linear, fp8_linear_pack
from atom.model_ops.kernels.reference.linear import linear, linear_pack


@dataclass(frozen=True, slots=True)
class PackedExperts:
    """gate_up and down: a packed weight for each expert. product: what multiplies by them."""

    gate_up: list[Any]
    down: list[Any]
    product: Callable[[torch.Tensor, Any], torch.Tensor]


def experts_pack(gate_up: torch.Tensor, down: torch.Tensor) -> PackedExperts:
    """gate_up [E, 2I, H], gates first, and down [E, H, I]."""
    check_shapes(gate_up, down)
    return PackedExperts([linear_pack(w, None) for w in gate_up], [linear_pack(w, None) for w in down], linear)


def fp8_experts_pack(
    gate_up: torch.Tensor,
    gate_up_scales: torch.Tensor,
    down: torch.Tensor,
    down_scales: torch.Tensor,
    block_rows: int,
    dtype: torch.dtype,
) -> PackedExperts:
    """As experts_pack, of weights in fp8 with scales as fp8_linear_pack has them, for each expert."""
    check_shapes(gate_up, down, block_rows)

    def pack(weights: torch.Tensor, scales: torch.Tensor) -> list[Any]:
        return [fp8_linear_pack(w, s, block_rows, None, dtype) for w, s in zip(weights, scales, strict=True)]

    return PackedExperts(pack(gate_up, gate_up_scales), pack(down, down_scales), fp8_linear)


def fused_experts(x: torch.Tensor, packed: PackedExperts, weights: torch.Tensor, experts: torch.Tensor) -> torch.Tensor:
    """x [T, H] through each token's experts [T, k] int32, summed by weights [T, k] float32; [T, H]."""
    top_k = experts.shape[1]
    order = experts.flatten().sort(stable=True).indices
    counts = experts.flatten().long().bincount(minlength=len(packed.down)).tolist()
    out = torch.zeros(x.shape, dtype=torch.float32, device=x.device)
    for expert, places in enumerate(order.split(counts)):
        if len(places):
            tokens = places // top_k
            inner = silu_and_mul(packed.product(x[tokens], packed.gate_up[expert]))
            part = packed.product(inner, packed.down[expert])
            out.index_add_(0, tokens, part.float() * weights.flatten()[places].unsqueeze(1))
    return out.to(x.dtype)


def check_shapes(gate_up: torch.Tensor, down: torch.Tensor, block_rows: int = 1) -> None:
    """ValueError for weights that are not [E, 2I, H] and [E, H, I], or a block of rows that has gates and ups."""
    num_experts, hidden, intermediate = down.shape
    if gate_up.shape != (num_experts, 2 * intermediate, hidden):
        raise ValueError(f"experts of {tuple(gate_up.shape)} and {tuple(down.shape)} do not fit together")
    if intermediate % block_rows:
        raise ValueError(f"an intermediate size of {intermediate} is no multiple of the scales' {block_rows} rows")
