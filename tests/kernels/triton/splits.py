"""How decode attention shares its keys out, chosen by a check instead of the kernel."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from atom.model_ops.kernels.triton import shares


@contextlib.contextmanager
def cut_into(parts: int | None) -> Iterator[None]:
    """Sequences of equal length in so many parts, whatever the batch size; None: as the kernel chooses."""
    chosen = shares.num_parts
    if parts is not None:
        shares.num_parts = lambda num_tokens, num_kv_heads: parts
    try:
        yield
    finally:
        shares.num_parts = chosen
