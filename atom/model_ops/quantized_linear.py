"""The fp8 weight of a linear layer: where its values and scales come from, and their form for the kernels.

Owns the scales of packed projections, each part's its own, and quantising while a checkpoint is loaded. Knows no
checkpoint's names beyond a slot's last one; `model_loader` tells which linears are quantised.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from atom.model_ops.context import BuildContext
from atom.model_ops.float8 import is_float8, quantize
from atom.model_ops.kernels.select import Kernels
from atom.model_ops.weights import WeightSlot
from atom.quantization import BLOCK, Quantization

# Values quantised at once, in float32: what loading needs beside the checkpoint's own tensor.
_VALUES_AT_ONCE = 1 << 22


@dataclass(frozen=True, slots=True)
class ScaleSlot(WeightSlot):
    """The scales of one weight. by_output: target is [N, 1], and the checkpoint may have one scale for all of them."""

    by_output: bool = False

    def problem(self, tensor: torch.Tensor) -> str | None:
        """By output also the shapes [N], [1] and [] fit."""
        sizes = self.checkpoint_shape
        fitting: tuple[tuple[int, ...], ...] = (sizes, sizes[:1], (1,), ()) if self.by_output else (sizes,)
        if tuple(tensor.shape) in fitting:
            return None
        wanted = " or ".join(str(list(shape)) for shape in fitting)
        return f"has shape {list(tensor.shape)}, by quantization_config it is {wanted}"

    def piece(self, tensor: torch.Tensor) -> torch.Tensor:
        """One scale for all is every output's."""
        if self.by_output:
            tensor = tensor.reshape(-1, 1).expand(self.checkpoint_shape)
        return WeightSlot.piece(self, tensor)


@dataclass(frozen=True, slots=True)
class QuantizingSlot(WeightSlot):
    """A place for a weight that is not quantised: `target` [N, K] gets fp8 values, `scales` [N, 1] their scales."""

    scales: torch.Tensor | None = None

    def problem(self, tensor: torch.Tensor) -> str | None:
        """A weight that is fp8 already would need its own scales."""
        if is_float8(tensor.dtype):
            return f"is {tensor.dtype} already, and config.json has no quantization_config"
        if not tensor.is_floating_point():
            return f"is {tensor.dtype}, by config.json it is not quantised"
        return self.shape_problem(tensor)

    def take(self, values: torch.Tensor) -> None:
        """Quantise on the target's device, some rows at a time."""
        assert self.scales is not None
        step = max(1, _VALUES_AT_ONCE // values.shape[1])
        for first in range(0, values.shape[0], step):
            rows = slice(first, first + step)
            part = values[rows].to(self.target.device)
            self.target[rows], self.scales[rows] = quantize(part, self.target.dtype)


class Float8Weight:
    """The weight [N, K] of a linear in fp8, while it is loaded.

    Scales are by part, so that the blocks of every projection begin at its own first row.
    """

    def __init__(self, num_outputs: int, num_inputs: int, quantization: Quantization, build: BuildContext) -> None:
        values = torch.empty(num_outputs, num_inputs, dtype=torch.float8_e4m3fn, device=build.device)
        self.values = nn.Parameter(values, requires_grad=False)
        self._quantization = quantization
        self._dtype = build.dtype
        self._scales: dict[int | None, torch.Tensor] = {}
        self._sizes: dict[int | None, int] = {}

    def slots(self, weight: WeightSlot) -> Iterator[WeightSlot]:
        """The slots behind a part's plain slot: the weight's, and its scales' where the checkpoint has them."""
        scales = self._scales_of(weight)
        same: dict[str, Any] = {name: getattr(weight, name) for name in ("part", "split_dim", "tp_rank", "tp_size")}
        if self._quantization.is_online:
            yield QuantizingSlot(weight.parameter, weight.target, scales=scales, **same)
            return
        yield weight
        by_output = not self._quantization.has_blocks
        if by_output and weight.split_dim == 1:
            same["split_dim"] = None  # an output's scale is of its whole row
        yield ScaleSlot(self._quantization.scale_name, scales, by_output=by_output, **same)

    def _scales_of(self, weight: WeightSlot) -> torch.Tensor:
        """[N, 1] or [ceil(N/128), ceil(K/128)], uninitialised the first time. ValueError for a cut through a block."""
        if weight.part not in self._scales:
            num_outputs, num_inputs = weight.target.shape
            shape = (num_outputs, 1)
            if self._quantization.has_blocks:
                shape = (-(-num_outputs // BLOCK), -(-num_inputs // BLOCK))
                split = weight.split_dim
                if split is not None and weight.tp_size > 1 and weight.target.shape[split] % BLOCK:
                    whole = list(weight.checkpoint_shape)
                    raise ValueError(f"blocks of a weight {whole} can not be split over {weight.tp_size} devices")
            self._sizes[weight.part] = num_outputs
            self._scales[weight.part] = torch.empty(shape, dtype=torch.float32, device=weight.target.device)
        return self._scales[weight.part]

    def pack(self, kernels: Kernels, bias: torch.Tensor | None) -> Any:
        """The kernels' own form."""
        parts = sorted(self._scales, key=lambda part: part or 0)
        scales = [self._scales[part] for part in parts]
        block_rows = BLOCK if self._quantization.has_blocks else 1
        if self._quantization.has_blocks and any(self._sizes[part] % BLOCK for part in parts[:-1]):
            # A block of the whole would hold rows of two parts.
            scales = [self._scales[part].repeat_interleave(BLOCK, 0)[: self._sizes[part]] for part in parts]
            block_rows = 1
        return kernels["fp8_linear_pack"](self.values, torch.cat(scales), block_rows, bias, self._dtype)
