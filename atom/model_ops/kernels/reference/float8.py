"""Reading float8 fast on a CPU: torch converts one value at a time, a table of pairs is ten times as fast.

A million values to bfloat16 took 4.2 ms by torch and 0.37 by the table (one thread). Other devices convert themselves.
"""

from __future__ import annotations

import functools

import torch

_SIZES = {2: torch.int32, 4: torch.int64}  # bytes of a value: the integer that holds two of them
_PAIRS_AT_ONCE = 1 << 16  # their places in the table stay in the processor's cache


def from_float8(x: torch.Tensor, dtype: torch.dtype, out: torch.Tensor | None = None) -> torch.Tensor:
    """x, contiguous, in `dtype`; in `out`, contiguous and of that shape and type, if given."""
    if out is None:
        out = torch.empty(x.shape, dtype=dtype, device=x.device)
    if x.device.type != "cpu" or dtype.itemsize not in _SIZES or x.shape[-1] % 2:
        return out.copy_(x)
    table = _table(x.dtype, dtype)
    pairs, found = x.view(torch.int16).view(-1), out.view(table.dtype).view(-1)
    places = torch.empty(min(len(pairs), _PAIRS_AT_ONCE), dtype=torch.int32)
    for start in range(0, len(pairs), _PAIRS_AT_ONCE):
        some = pairs[start : start + _PAIRS_AT_ONCE]
        where = places[: len(some)].copy_(some).bitwise_and_(0xFFFF)
        torch.index_select(table, 0, where, out=found[start : start + len(some)])
    return out


@functools.cache
def _table(source: torch.dtype, target: torch.dtype) -> torch.Tensor:
    """[65536]: both values of every pair of bytes, as one integer."""
    with torch.inference_mode():
        every = torch.arange(1 << 16, dtype=torch.int32).to(torch.int16)
        values = every.view(source).to(target)
        return values.view(_SIZES[target.itemsize])
