"""What GPU this is, as far as AITER's kernels differ by it."""

from __future__ import annotations

import torch
from atom_spec.aiter import FP8_DTYPES


def gfx_name() -> str:
    """The GPU's architecture, such as gfx942. RuntimeError without a GPU."""
    name: str = torch.cuda.get_device_properties(torch.cuda.current_device()).gcnArchName
    return name.partition(":")[0]


def fp8_dtype() -> torch.dtype:
    """The float8 type that the kernels take: fnuz on gfx942, fn on gfx950."""
    found: torch.dtype = getattr(torch, FP8_DTYPES[gfx_name()])
    return found
