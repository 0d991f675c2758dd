"""A build context for tests: the CPU's kernels in float32."""

from __future__ import annotations

from typing import Any

import torch

from atom.model_ops.context import BuildContext
from atom.model_ops.kernels.select import select_kernels


def build_context(**changes: Any) -> BuildContext:
    values = {"dtype": torch.float32, "device": torch.device("cpu"), "max_positions": 64}
    return BuildContext(select_kernels("cpu"), **{**values, **changes})
