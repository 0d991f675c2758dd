"""Which experts a token goes to, by AITER.

Its two kernels for groups have gaps that give wrong numbers and no error; what falls into one is refused here.
Shapes: T tokens, E experts, G groups.
"""

from __future__ import annotations

import torch

from atom.model_ops.kernels.aiter.library import load
from atom.model_ops.kernels.aiter.limits import AiterUnsupported

_softmax = load("aiter.topk_softmax")
_grouped = load("aiter.grouped_topk")
_biased = load("aiter.biased_grouped_topk")

# A step of more than 212 tokens for each compute unit goes to a kernel that leaves the scale out. No GPU that AITER is
# made for has fewer than 64 units.
_TOKENS = 8192
_GROUPS = (1, 2, 4, 8)
# The lanes that share a group add up their best two only where there are eight groups.
_BIASED_GROUPS = (1, 8)
# A lane holds one of a token's experts.
_MAX_TOP_K = 64


def route_softmax(logits: torch.Tensor, top_k: int, renormalize: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """logits [T, E] to weights [T, top_k] float32 and experts [T, top_k] int32."""
    weights, experts = _outputs(logits, top_k)
    # Where each pair would lie if they were sorted by expert; nobody reads it.
    places = torch.empty_like(experts)
    _softmax(weights, experts, places, logits.contiguous(), renormalize)
    return weights, experts


def route_grouped(
    logits: torch.Tensor,
    bias: torch.Tensor | None,
    num_groups: int,
    top_groups: int,
    top_k: int,
    sigmoid: bool,
    renormalize: bool,
    scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """logits [T, E] and bias [E] float32 to weights [T, top_k] float32 and experts [T, top_k] int32."""
    _check(logits.shape[1], bias is not None, num_groups, top_k, sigmoid)
    weights, experts = _outputs(logits, top_k)
    if bias is None:
        _grouped(
            logits.contiguous(), weights, experts, num_groups, top_groups, renormalize,
            is_softmax=not sigmoid, routed_scaling_factor=scale,
        )  # fmt: skip
        return weights, experts
    # Logits and bias have one type there; a bias of 16 bits would choose others.
    wide = logits.float().contiguous()
    for first in range(0, len(wide), _TOKENS):
        part = slice(first, first + _TOKENS)
        _biased(wide[part], bias, weights[part], experts[part], num_groups, top_groups, renormalize, scale)
    return weights, experts


def _outputs(logits: torch.Tensor, top_k: int) -> tuple[torch.Tensor, torch.Tensor]:
    shape, device = (logits.shape[0], top_k), logits.device
    return torch.empty(shape, dtype=torch.float32, device=device), torch.empty(shape, dtype=torch.int32, device=device)


def _check(num_experts: int, is_biased: bool, num_groups: int, top_k: int, sigmoid: bool) -> None:
    # Experts are read in runs of this many, and a run may not lie in two groups.
    run = next(size for size in (4, 2, 1) if num_experts % size == 0)
    lacking = ""
    if is_biased and not sigmoid:
        lacking = "a bias on a softmax"
    elif num_groups not in (_BIASED_GROUPS if is_biased else _GROUPS):
        lacking = f"{num_groups} groups" + (" with a bias" if is_biased else "")
    elif num_experts // num_groups % run:
        lacking = f"{num_experts} experts in {num_groups} groups"
    elif top_k > _MAX_TOP_K:
        lacking = f"{top_k} experts a token"
    if lacking:
        raise AiterUnsupported(f"AITER has no routing for {lacking}: give ATOM_KERNELS=route_grouped=reference")
