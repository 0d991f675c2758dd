"""Weights without a checkpoint, to measure speed (`--load_dummy`)."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn

from atom.model_ops.float8 import is_float8, to_float8
from atom.model_ops.quantized_linear import QuantizingSlot, ScaleSlot
from atom.model_ops.weights import WeightSlot

KINDS = ("empty", "zero", "xavier")
# Of 8-bit weights: Xavier's range, some hundredths for a large matrix, is well inside theirs then.
_SCALE = 2.0**-8


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
        if isinstance(slot, ScaleSlot):
            slot.target.fill_(_SCALE)
        elif slot.target.dim() < 2:
            slot.target.fill_(0.0 if kind == "zero" or slot.parameter == "bias" else 1.0)
        else:
            _fill_matrix(slot, None if kind == "zero" else index)


def _fill_matrix(slot: WeightSlot, seed: int | None) -> None:
    """Zeros for None. What is not kept in the type that it is drawn in goes through a tensor of its own."""
    is_quantised = is_float8(slot.target.dtype)
    values = torch.empty_like(slot.target, dtype=torch.bfloat16) if is_quantised else slot.target
    if seed is None:
        values.zero_()
    else:
        generator = torch.Generator(device=values.device).manual_seed(seed)
        nn.init.xavier_uniform_(values, generator=generator)
    if isinstance(slot, QuantizingSlot):
        slot.take(values)
    elif is_quantised:
        slot.take(to_float8(values / _SCALE, slot.target.dtype))
