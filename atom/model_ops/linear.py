"""Linear layers, split over a tensor-parallel group.

Column layers split their outputs, row layers their inputs and sum. Owns the split and the packing of several
projections into one; the product itself is a kernel. Shapes: T tokens, N outputs and K inputs of this rank.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import nn

from atom.model_ops.context import BuildContext
from atom.model_ops.layer import Layer
from atom.model_ops.quantized_linear import Float8Weight
from atom.model_ops.weights import WeightSlot


class Linear(Layer):
    """A weight [N, K] and perhaps a bias [N], packed for the kernel once they are loaded."""

    def __init__(self, num_inputs: int, num_outputs: int, has_bias: bool, build: BuildContext) -> None:
        super().__init__()
        self.weight: nn.Parameter | None = build.empty_linear(num_outputs, num_inputs)
        self.bias = build.empty(num_outputs) if has_bias else None
        self.build = build
        self._linear = build.kernels["linear"]
        self._packed: Any = None
        self._float8: Float8Weight | None = None
        self.is_quantized = False

    @property
    def packed(self) -> Any:
        """The weight in the kernel's own form, for the kernels that come before the product."""
        return self._packed

    def take_form(self, is_quantized: bool) -> None:
        """Give the weight of a model with quantised linears its memory. Called once, by who knows the layer's name."""
        assert self.weight is not None
        assert self.build.quantization is not None
        num_outputs, num_inputs = self.weight.shape
        self.is_quantized = is_quantized
        if is_quantized:
            self._float8 = Float8Weight(num_outputs, num_inputs, self.build.quantization, self.build)
            self.weight = self._float8.values
            self._linear = self.build.kernels["fp8_linear"]
        else:
            self.weight = self.build.empty(num_outputs, num_inputs)

    def finish_loading(self) -> None:
        """Hand the weight over to the kernel's own form; the plain one is let go unless the kernel keeps it."""
        assert self.weight is not None
        if self._float8 is None:
            self._packed = self.build.kernels["linear_pack"](self.weight, self.bias)
        else:
            self._packed = self._float8.pack(self.build.kernels, self.bias)
        self.weight = self._float8 = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x [T, K] to [T, N]."""
        return self._linear(x, self._packed)

    def _slots(self, parameter: str, target: torch.Tensor | None, **kwargs: Any) -> Iterator[WeightSlot]:
        if target is None:
            return
        slot = WeightSlot(parameter, target, tp_rank=self.build.tp_rank, tp_size=self.build.tp_size, **kwargs)
        if self._float8 is not None and parameter == "weight":
            yield from self._float8.slots(slot)
        else:
            yield slot


class MergedColumnLinear(Linear):
    """Projections of one input computed together; `sizes` are their outputs before the split."""

    def __init__(self, num_inputs: int, sizes: Sequence[int], has_bias: bool, build: BuildContext) -> None:
        self.sizes = [build.share(size, "outputs of a projection") for size in sizes]
        super().__init__(num_inputs, sum(self.sizes), has_bias, build)

    def weight_slots(self) -> Iterator[WeightSlot]:
        """A part a projection."""
        start = 0
        for part, size in enumerate(self.sizes):
            for name, whole in (("weight", self.weight), ("bias", self.bias)):
                if whole is not None:
                    yield from self._slots(name, whole.data[start : start + size], part=part, split_dim=0)
            start += size


class QKVLinear(MergedColumnLinear):
    """The projections to queries, keys and values, whole heads to a rank."""

    def __init__(
        self, hidden_size: int, head_dim: int, num_heads: int, num_kv_heads: int, has_bias: bool, build: BuildContext
    ) -> None:
        self.num_heads = build.share(num_heads, "attention heads")
        self.num_kv_heads = build.share(num_kv_heads, "key/value heads")
        sizes = [num_heads * head_dim, num_kv_heads * head_dim, num_kv_heads * head_dim]
        super().__init__(hidden_size, sizes, has_bias, build)


class RowLinear(Linear):
    """A projection whose input is split; the partial results are summed over the group."""

    def __init__(self, num_inputs: int, num_outputs: int, has_bias: bool, build: BuildContext) -> None:
        super().__init__(build.share(num_inputs, "inputs of a projection"), num_outputs, has_bias, build)
        self._is_split = build.tp_size > 1

    def weight_slots(self) -> Iterator[WeightSlot]:
        """The weight, split, and the bias, whole."""
        yield from self._slots("weight", None if self.weight is None else self.weight.data, split_dim=1)
        yield from self._slots("bias", None if self.bias is None else self.bias.data)

    def finish_loading(self) -> None:
        """Keep the bias on one rank, else the sum would hold it once a rank; then as every linear."""
        if self.bias is not None and self.build.tp_rank > 0:
            self.bias.data.zero_()
        super().finish_loading()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x [T, K] to [T, N], summed over the group."""
        partial = self._linear(x, self._packed)
        return self.build.all_reduce(partial) if self._is_split else partial
