"""The gated activation between the two halves of a feed-forward layer."""

from __future__ import annotations

from collections.abc import Callable

import torch

from atom.model_ops.context import BuildContext


def gated_activation(name: str, build: BuildContext) -> Callable[[torch.Tensor], torch.Tensor]:
    """The function [T, 2I] -> [T, I] for config.json's hidden_act. ValueError for one that has no kernel."""
    if name in ("silu", "swish"):
        return build.kernels["silu_and_mul"]
    raise ValueError(f"hidden_act {name!r} is not supported; silu is")
