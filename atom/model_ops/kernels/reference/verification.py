"""Draft tokens against the model's own greedy choices, in plain torch."""

from __future__ import annotations

import torch


def verify_greedy(
    drafts: torch.Tensor, num_drafts: torch.Tensor, targets: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """drafts [B, S], num_drafts [B] and the model's choices [B, S + 1] to tokens [B, S + 1] and lengths [B] int32.

    A row's tokens are its accepted drafts and the model's own next token; -1 fills the rest.
    """
    places = torch.arange(targets.shape[1], device=targets.device)
    agrees = (drafts == targets[:, :-1]) & (places[:-1] < num_drafts.unsqueeze(1))
    lengths = agrees.cumprod(dim=1).sum(dim=1) + 1
    return targets.masked_fill(places >= lengths.unsqueeze(1), -1), lengths.to(torch.int32)
