"""What every layer is built with: the kernels, the dtype, the device, and its share of a tensor-parallel group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from atom.model_ops.kernels.select import Kernels
from atom.quantization import Quantization


def _alone(partial: torch.Tensor) -> torch.Tensor:
    return partial


@dataclass(frozen=True)
class BuildContext:
    """Passed down while a model is built.

    tp_rank of tp_size: this process's share of every split weight. all_reduce sums the partial results of the group.
    max_positions: rows of the rotary tables, at least the longest context that is served. quantization: which linears
    have 8-bit weights, None for none; the loader tells them by their names (`Linear.take_form`).
    """

    kernels: Kernels
    dtype: torch.dtype
    device: torch.device
    max_positions: int
    tp_rank: int = 0
    tp_size: int = 1
    quantization: Quantization | None = None
    all_reduce: Callable[[torch.Tensor], torch.Tensor] = field(default=_alone)

    def share(self, size: int, what: str) -> int:
        """This rank's part of `size`. ValueError when the group does not divide it."""
        if size % self.tp_size:
            raise ValueError(f"{what} ({size}) can not be split over {self.tp_size} devices")
        return size // self.tp_size

    def empty(self, *shape: int) -> torch.nn.Parameter:
        """An uninitialised weight."""
        return torch.nn.Parameter(torch.empty(shape, dtype=self.dtype, device=self.device), requires_grad=False)

    def empty_linear(self, num_outputs: int, num_inputs: int) -> torch.nn.Parameter:
        """An uninitialised weight of a linear; without memory while it is not known whether it is quantised."""
        if self.quantization is None:
            return self.empty(num_outputs, num_inputs)
        shape = torch.empty(num_outputs, num_inputs, dtype=self.dtype, device="meta")
        return torch.nn.Parameter(shape, requires_grad=False)
