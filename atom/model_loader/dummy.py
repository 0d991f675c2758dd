"""Weights without a checkpoint, to measure speed (`--load_dummy`)."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn

from atom.model_ops.weights import WeightSlot

KINDS = ("empty", "zero", "xavier")


def fill_dummy(slots: Mapping[str, WeightSlot], kind: str) -> None:
    """Fill every slot; ValueError for another kind than these.

    empty: whatever is in memory. zero: zeros. xavier: matrices from Xavier's uniform range, norms 1, biases 0, the same
    numbers every time.
    """
    if kind not in KINDS:
        raise ValueError(f"--load-dummy {kind!r} is none of {', '.join(KINDS)}")
    if kind == "empty":
        return
    for index, slot in enumerate(slots.values()):
        if kind == "zero" or slot.parameter == "bias":
            slot.target.zero_()
        elif slot.target.dim() < 2:
            slot.target.fill_(1.0)
        else:
            generator = torch.Generator(device=slot.target.device).manual_seed(index)
            nn.init.xavier_uniform_(slot.target, generator=generator)
