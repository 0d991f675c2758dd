"""The gated activation between the two halves of a feed-forward layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from atom.model_ops.context import BuildContext
from atom.model_ops.linear import Linear


def gated_activation(name: str, reader: Linear, build: BuildContext) -> Callable[[torch.Tensor], Any]:
    """The function [T, 2I] -> [T, I] for config.json's hidden_act, its result in the form that `reader` wants.

    ValueError for one that has no kernel.
    """
    if name not in ("silu", "swish"):
        raise ValueError(f"hidden_act {name!r} is not supported; silu is")
    plain, quantized = build.kernels["silu_and_mul"], build.kernels["fp8_silu_and_mul"]

    def activate(x: torch.Tensor) -> Any:
        return quantized(x, reader.packed) if reader.is_quantized else plain(x)

    return activate
