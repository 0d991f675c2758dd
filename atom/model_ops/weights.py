"""How a layer tells the loader where the tensors of a checkpoint go.

A layer that owns weights has `weight_slots()`, and may have `finish_loading()`, called once when all are filled.
Knows no file and no checkpoint's names: those are `model_loader`'s.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch

# Types that convert into each other.
_WIDE = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


@dataclass(frozen=True, slots=True)
class WeightSlot:
    """A place for one tensor of the checkpoint.

    parameter: its last name, weight or bias. part: its index among the tensors packed into one, None when it is alone.
    target: the view to fill. split_dim, tp_rank and tp_size: which piece of the checkpoint's tensor belongs here; with
    split_dim None all of it.
    """

    parameter: str
    target: torch.Tensor
    part: int | None = None
    split_dim: int | None = None
    tp_rank: int = 0
    tp_size: int = 1

    @property
    def checkpoint_shape(self) -> tuple[int, ...]:
        """Shape that the checkpoint's tensor must have."""
        shape = list(self.target.shape)
        if self.split_dim is not None:
            shape[self.split_dim] *= self.tp_size
        return tuple(shape)

    def piece(self, tensor: torch.Tensor) -> torch.Tensor:
        """This rank's piece of the checkpoint's tensor, as a view."""
        if self.split_dim is None or self.tp_size == 1:
            return tensor
        size = self.target.shape[self.split_dim]
        return tensor.narrow(self.split_dim, self.tp_rank * size, size)

    def problem(self, tensor: torch.Tensor) -> str | None:
        """Why the checkpoint's tensor does not fit, to be read behind its name; None when it does."""
        wide = self.target.dtype in _WIDE
        if tensor.dtype not in _WIDE if wide else tensor.dtype != self.target.dtype:
            wanted = "not quantised" if wide else self.target.dtype
            return f"is {tensor.dtype}, by config.json it is {wanted}"
        return self.shape_problem(tensor)

    def shape_problem(self, tensor: torch.Tensor) -> str | None:
        """As `problem`, of the shape alone."""
        if tuple(tensor.shape) == self.checkpoint_shape:
            return None
        return f"has shape {list(tensor.shape)}, by config.json it is {list(self.checkpoint_shape)}"

    def fill(self, tensor: torch.Tensor) -> None:
        """Take this rank's piece of the checkpoint's tensor."""
        self.take(self.piece(tensor))

    def take(self, values: torch.Tensor) -> None:
        """Fill the target with values of its shape."""
        self.target.copy_(values)


@runtime_checkable
class HasWeights(Protocol):
    """A layer with tensors of its own."""

    def weight_slots(self) -> Iterable[WeightSlot]:
        """Every tensor that the layer needs, once."""


@runtime_checkable
class FinishesLoading(Protocol):
    """A layer that wants to rearrange its weights after loading."""

    def finish_loading(self) -> None:
        """Called once, when every slot is filled."""
