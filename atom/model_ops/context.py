"""What every layer is built with: the kernels, the dtype, the device, and its share of a tensor-parallel group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from atom.model_ops.kernels.select import Kernels


def _alone(partial: torch.Tensor) -> torch.Tensor:
    return partial


@dataclass(frozen=True)
class BuildContext:
    """Passed down while a model is built.

    tp_rank of tp_size: this process's share of every split weight. all_reduce sums the partial results of the group.
    max_positions: rows of the rotary tables, at least the longest context that is served.
    """

    kernels: Kernels
    dtype: torch.dtype
    device: torch.device
    max_positions: int
    tp_rank: int = 0
    tp_size: int = 1
    all_reduce: Callable[[torch.Tensor], torch.Tensor] = field(default=_alone)

    def share(self, size: int, what: str) -> int:
        """This rank's part of `size`. ValueError when the group does not divide it."""
        if size % self.tp_size:
            raise ValueError(f"{what} ({size}) can not be split over {self.tp_size} devices")
        return size // self.tp_size

    def empty(self, *shape: int) -> torch.nn.Parameter:
        """An uninitialised weight."""
        return torch.nn.Parameter(torch.empty(shape, dtype=self.dtype, device=self.device), requires_grad=False)
