"""The token embedding and the head that turns hidden states into logits.

Shapes: T tokens, S positions to score, H hidden, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F

from atom.model_ops.context import BuildContext
from atom.model_ops.layer import Layer
from atom.model_ops.weights import WeightSlot


class TokenEmbedding(Layer):
    """Rows of a table [V, H], whole on every rank: a look-up is cheaper than a sum over the group."""

    def __init__(self, vocab_size: int, hidden_size: int, build: BuildContext) -> None:
        super().__init__()
        self.weight = build.empty(vocab_size, hidden_size)

    def weight_slots(self) -> Iterator[WeightSlot]:
        """The table."""
        yield WeightSlot("weight", self.weight.data)

    def forward(self, token_ids: torch.Tensor) -> torch.Tensor:
        """token_ids [T] to [T, H]."""
        return F.embedding(token_ids, self.weight)


class LMHead(Layer):
    """hidden [S, H] to logits [S, V]. `tied_to`: the embedding whose table it shares instead of having its own."""

    def __init__(self, vocab_size: int, hidden_size: int, tied_to: TokenEmbedding | None, build: BuildContext) -> None:
        super().__init__()
        self.weight = None if tied_to is not None else build.empty(vocab_size, hidden_size)
        self.build = build
        # In a tuple, so that the module tree does not list the table twice.
        self._tied_to = (tied_to,)
        self._logits = build.kernels["logits"]
        self._packed: Any = None

    def weight_slots(self) -> Iterator[WeightSlot]:
        """The head's own table, if it has one."""
        if self.weight is not None:
            yield WeightSlot("weight", self.weight.data)

    def finish_loading(self) -> None:
        """Hand the table to the kernel's own form; a tied one stays with the embedding too."""
        (tied_to,) = self._tied_to
        table = self.weight if tied_to is None else tied_to.weight
        self._packed = self.build.kernels["linear_pack"](table, None)
        self.weight = None

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """[S, H] to [S, V], in float32 on a GPU."""
        return self._logits(hidden, self._packed)
