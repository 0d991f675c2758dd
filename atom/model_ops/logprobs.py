"""Log probabilities of chosen tokens and of the most likely ones. Shapes: B positions, V vocabulary, N alternatives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import torch


@dataclass(frozen=True, slots=True)
class Logprobs:
    """token_ids [B]; logprobs [B] float32; ranks [B], 1 for the most likely; top_ids and top_logprobs [B, N]."""

    token_ids: torch.Tensor
    logprobs: torch.Tensor
    ranks: torch.Tensor
    top_ids: torch.Tensor
    top_logprobs: torch.Tensor

    def map(self, function: Callable[[torch.Tensor], torch.Tensor]) -> Logprobs:
        """The same with every tensor replaced."""
        return Logprobs(*(function(getattr(self, name.name)) for name in fields(self)))


def token_logprobs(logits: torch.Tensor, token_ids: torch.Tensor, num_top: int) -> Logprobs:
    """Of the distribution that raw logits [B, V] give, for token_ids [B] int64 and the `num_top` most likely tokens."""
    values = torch.log_softmax(logits.to(torch.float32), dim=-1)
    chosen = values.gather(1, token_ids.unsqueeze(1))
    ranks = (values > chosen).sum(dim=-1) + 1
    top = values.topk(min(num_top, values.shape[1]), dim=-1)
    return Logprobs(token_ids, chosen.squeeze(1), ranks, top.indices, top.values)
