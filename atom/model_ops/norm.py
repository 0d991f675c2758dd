"""RMSNorm, alone or with the residual sum before it. Shapes: T tokens, H hidden."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from atom.model_ops.context import BuildContext
from atom.model_ops.layer import Layer
from atom.model_ops.linear import Linear
from atom.model_ops.weights import WeightSlot


class RMSNorm(Layer):
    """x / rms(x) * weight. `reader`: the linear that alone reads the result, which then has the form that it wants."""

    def __init__(self, hidden_size: int, eps: float, build: BuildContext, reader: Linear | None = None) -> None:
        super().__init__()
        self.weight = build.empty(hidden_size)
        self.eps = eps
        self._rms_norm = build.kernels["rms_norm"]
        self._add_rms_norm = build.kernels["add_rms_norm"]
        self._fp8_rms_norm = build.kernels["fp8_rms_norm"]
        # In a tuple, so that the module tree does not list the linear twice.
        self._reader = (reader,)

    def weight_slots(self) -> Iterator[WeightSlot]:
        """The weight."""
        yield WeightSlot("weight", self.weight.data)

    def forward(self, x: torch.Tensor, residual: torch.Tensor | None = None) -> Any:
        """x [T, H] normed. With a residual [T, H], x is added to it in place first and the sum is normed."""
        (reader,) = self._reader
        if reader is not None and reader.is_quantized:
            return self._fp8_rms_norm(x, residual, self.weight, self.eps, reader.packed)
        if residual is None:
            return self._rms_norm(x, self.weight, self.eps)
        return self._add_rms_norm(x, residual, self.weight, self.eps)


class HeadNorms(Layer):
    """The weights of the norms on each query and key head, one row a head, in the order of the fused projection."""

    def __init__(self, head_dim: int, num_heads: int, num_kv_heads: int, build: BuildContext) -> None:
        super().__init__()
        self.weight = build.empty(num_heads + num_kv_heads, head_dim)
        self.q = build.empty(head_dim)
        self.k = build.empty(head_dim)
        self._num_heads = num_heads

    def weight_slots(self) -> Iterator[WeightSlot]:
        """The weight that all query heads share, and that of the key heads."""
        yield WeightSlot("weight", self.q.data, part=0)
        yield WeightSlot("weight", self.k.data, part=1)

    def finish_loading(self) -> None:
        """Spread the two over the heads."""
        self.weight.data[: self._num_heads] = self.q.data
        self.weight.data[self._num_heads :] = self.k.data
