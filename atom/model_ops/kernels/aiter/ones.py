"""Ones, for kernels that ask for a weight or a scale where there is none."""

from __future__ import annotations

from functools import cache

import torch


@cache
def ones(size: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """[size] ones, made once and not to be written. They are never freed: captured graphs read where they lie."""
    return torch.ones(size, dtype=dtype, device=device)
