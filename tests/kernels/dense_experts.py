"""Mixtures of experts the slow way, in float64: a token and an expert at a time. The oracle of the fused ones."""

from __future__ import annotations

import torch

from atom.model_ops.float8 import quantize


def rounded(x: torch.Tensor, group: int | None, float8: torch.dtype) -> torch.Tensor:
    """x [K] in float64, as fp8 holds it by groups; as it is without."""
    if group is None:
        return x.double()
    parts = x.split(group)
    return torch.cat([v.double() * s.double() for v, s in (quantize(p, float8) for p in parts)])


def dense_experts(
    x: torch.Tensor,
    gate_up: torch.Tensor,
    down: torch.Tensor,
    weights: torch.Tensor,
    experts: torch.Tensor,
    group: int | None = None,
    float8: torch.dtype = torch.float8_e4m3fn,
) -> torch.Tensor:
    """gate_up and down in float64. group: inputs that share a scale where they are rounded to fp8."""
    out = torch.zeros(x.shape, dtype=torch.float64)
    for token, slot in torch.cartesian_prod(torch.arange(len(x)), torch.arange(experts.shape[1])).tolist():
        expert = int(experts[token, slot])
        gate, up = (gate_up[expert] @ rounded(x[token], group, float8)).chunk(2)
        inner = gate / (1 + torch.exp(-gate)) * up
        out[token] += weights[token, slot].double() * (down[expert] @ rounded(inner.to(x.dtype), group, float8))
    return out
