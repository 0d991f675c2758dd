"""Which experts a token goes to, and by what weights, in plain torch.

Scores are float32. Of equal scores the lowest index comes first, so that a token's experts do not depend on the batch.
Shapes: T tokens, E experts, G groups of experts.
"""

from __future__ import annotations

import torch

# What a sum of weights is kept above 0 by, as in the models that this comes from.
_SMALLEST_SUM = 1e-20


def route_softmax(logits: torch.Tensor, top_k: int, renormalize: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """logits [T, E]: softmax over the experts, the largest top_k of it. Weights [T, top_k] float32, experts int32."""
    scores = logits.float().softmax(-1)
    experts = _largest(scores, top_k)
    return _weights(scores, experts, renormalize, 1.0), experts.to(torch.int32)


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
    """As route_softmax, among the top_groups best of G equal groups; logits [T, E], bias [E] float32.

    The bias helps to choose and is in no weight. ValueError for sizes that do not fit together.
    """
    num_tokens, num_experts = logits.shape
    check_groups(num_experts, num_groups, top_groups, top_k)
    scores = logits.float().sigmoid() if sigmoid else logits.float().softmax(-1)
    choice = scores if bias is None else scores + bias
    groups = choice.view(num_tokens, num_groups, num_experts // num_groups)
    if bias is None:
        by_group = groups.amax(-1)
    else:
        by_group = groups.topk(min(2, groups.shape[2]), dim=-1).values.sum(-1)
    kept = torch.zeros_like(by_group, dtype=torch.bool).scatter_(1, _largest(by_group, top_groups), True)
    experts = _largest(groups.masked_fill(~kept.unsqueeze(-1), float("-inf")).view_as(choice), top_k)
    return _weights(scores, experts, renormalize, scale), experts.to(torch.int32)


def check_groups(num_experts: int, num_groups: int, top_groups: int, top_k: int) -> None:
    """ValueError where E is no multiple of G, or the groups taken hold fewer than top_k experts."""
    if num_experts % num_groups:
        raise ValueError(f"{num_experts} experts are not {num_groups} equal groups")
    if not 0 < top_groups <= num_groups or not 0 < top_k <= top_groups * (num_experts // num_groups):
        raise ValueError(
            f"{top_k} experts of {top_groups} groups can not be had from {num_experts} experts in {num_groups} groups"
        )


def _largest(x: torch.Tensor, count: int) -> torch.Tensor:
    """[T, count] int64: where the largest values of each row are, largest first."""
    return x.sort(dim=-1, descending=True, stable=True).indices[:, :count]


def _weights(scores: torch.Tensor, experts: torch.Tensor, renormalize: bool, scale: float) -> torch.Tensor:
    weights = scores.gather(1, experts)
    if renormalize:
        weights = weights / (weights.sum(-1, keepdim=True) + _SMALLEST_SUM)
    return weights * scale
