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


def add_bias(logits: torch.Tensor, rows: torch.Tensor, token_ids: torch.Tensor, values: torch.Tensor) -> None:
    """Add values [N] to the logits of token_ids [N] in rows [N], in place; no token twice in a row."""
    where = (rows, token_ids)
    logits[where] += values.to(logits.dtype)


def forbid(logits: torch.Tensor, rows: torch.Tensor, token_ids: torch.Tensor) -> None:
    """Make token_ids [N] of rows [N] impossible, in place."""
    logits[rows, token_ids] = float("-inf")
