"""Philox4x32-10 in Triton: the reference's numbers, in one launch."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from atom.model_ops.kernels.triton.sizes import cdiv

_ROWS = 128


@triton.jit(do_not_specialize=["count"])
def _uniform(seeds, offsets, out, count, ROWS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = rows < count
    offset = tl.load(offsets + rows, mask=inside, other=0)
    low = (offset & 0xFFFFFFFF).to(tl.uint32)
    high = ((offset >> 32) & 0xFFFFFFFF).to(tl.uint32)
    seed = tl.load(seeds + rows, mask=inside, other=0)
    bits, _, _, _ = tl.philox(seed, low, high, low * 0, low * 0)
    tl.store(out + rows, (bits >> 8).to(tl.float32) * 5.9604644775390625e-08, mask=inside)  # 2^-24


def philox_uniform(seeds: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """One uniform in [0, 1) a row. seeds [B] int64 is the key, offsets [B] int64 the counter; 24 bits are used."""
    count = len(seeds)
    out = torch.empty(count, dtype=torch.float32, device=seeds.device)
    if count:
        _uniform[(cdiv(count, _ROWS),)](seeds, offsets, out, count, _ROWS)
    return out
