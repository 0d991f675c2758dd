"""Changes to logits before sampling: penalties, bias, forbidden tokens. Shapes: B rows, V vocabulary."""

from __future__ import annotations

import torch


def apply_penalties(
    logits: torch.Tensor, rows: torch.Tensor, counts: torch.Tensor, in_prompt: torch.Tensor, weights: torch.Tensor
) -> None:
    """Penalise in place. rows [N]: which rows of logits [B, V] float32; counts [N, V]: how often a token was generated;
    in_prompt [N, V]; weights [N, 3]: repetition, presence, frequency.

    Repetition (prompt and output) divides a positive logit and multiplies a negative one; presence and frequency
    (output) are subtracted, once and once an occurrence.
    """
    chosen = logits[rows]
    repetition, presence, frequency = weights.unsqueeze(2).unbind(1)
    was_generated = counts > 0
    scaled = torch.where(chosen > 0, chosen / repetition, chosen * repetition)
    chosen = torch.where(was_generated | in_prompt, scaled, chosen)
    chosen -= presence * was_generated + frequency * counts
    logits[rows] = chosen


def add_bias(logits: torch.Tensor, row: int, token_ids: torch.Tensor, values: torch.Tensor) -> None:
    """Add to some tokens' logits of one row, in place."""
    logits[row].index_add_(0, token_ids, values.to(logits.dtype))


def forbid(logits: torch.Tensor, row: int, token_ids: torch.Tensor) -> None:
    """Make some tokens of one row impossible, in place."""
    logits[row].index_fill_(0, token_ids, float("-inf"))
