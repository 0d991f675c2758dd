"""How decode attention shares its keys out, chosen by a check instead of the kernel."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from atom.model_ops.kernels.triton import decode, shares


@contextlib.contextmanager
def cut_into(parts: int | None) -> Iterator[None]:
    """Decode attention in so many parts or shares, whatever the batch size; None: as the kernel chooses."""
    chosen = decode.num_parts, shares.shares_among
    if parts is not None:
        decode.num_parts = lambda num_tokens, num_kv_heads: parts
        shares.shares_among = lambda num_kv_heads: parts
    try:
        yield
    finally:
        decode.num_parts, shares.shares_among = chosen
