"""From a step's logits to its tokens: argmax for greedy rows, one seeded draw for the others.

A row's draw uses one uniform from (seed, number of tokens generated before), so it depends neither on the other rows
nor on how the prompt was cut, nor on a preemption. Shapes: B rows, N random rows among them, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from atom.model_ops.kernels.select import Kernels


@dataclass(frozen=True, slots=True)
class RandomRows:
    """The rows that are drawn. rows [N]: which, None when it is all; the others [N] as in spec/kernels.yaml.

    offsets [N] int64: tokens that the row's sequence generated before this one.
    """

    rows: torch.Tensor | None
    temperature: torch.Tensor
    top_k: torch.Tensor
    top_p: torch.Tensor
    min_p: torch.Tensor
    seeds: torch.Tensor
    offsets: torch.Tensor


class Sampler:
    """Binds the sampling kernels."""

    def __init__(self, kernels: Kernels) -> None:
        self._greedy = kernels["greedy_sample"]
        self._uniform = kernels["philox_uniform"]
        self._sample = kernels["sample"]

    def __call__(self, logits: torch.Tensor, random: RandomRows | None) -> torch.Tensor:
        """logits [B, V] to token ids [B] int64. `random` None: every row is greedy."""
        if random is None:
            return self._greedy(logits)
        if random.rows is None:
            return self._draw(logits, random)
        tokens = self._greedy(logits)
        tokens[random.rows] = self._draw(logits[random.rows], random)
        return tokens

    def _draw(self, logits: torch.Tensor, random: RandomRows) -> torch.Tensor:
        uniform = self._uniform(random.seeds, random.offsets)
        return self._sample(logits, random.temperature, random.top_k, random.top_p, random.min_p, uniform)
