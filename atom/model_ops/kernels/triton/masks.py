"""Grammar masks on logits in Triton."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from atom.model_ops.kernels.triton.sizes import cdiv

_WORDS = 128


@triton.jit
def _mask(logits, stride, rows, masks, words, size, WORDS: tl.constexpr):
    """Logits are read and written whole, not one by one where a bit is 0: those are more, and smaller, accesses."""
    index = tl.program_id(0)
    places = tl.program_id(1) * WORDS + tl.arange(0, WORDS)
    word = tl.load(masks + index.to(tl.int64) * words + places, mask=places < words, other=-1)
    if tl.min((word == -1).to(tl.int32), axis=0) == 0:
        columns = places[:, None] * 32 + tl.arange(0, 32)[None, :]
        at = logits + tl.load(rows + index) * stride + columns
        is_inside = columns < size
        # Most slices of most masks allow nothing.
        values = tl.full((WORDS, 32), float("-inf"), logits.dtype.element_ty)
        if tl.max((word != 0).to(tl.int32), axis=0) > 0:
            is_allowed = ((word[:, None] >> tl.arange(0, 32)[None, :]) & 1) != 0
            values = tl.where(is_allowed, tl.load(at, mask=is_inside), values)
        tl.store(at, values, mask=is_inside)


def mask_logits(logits: torch.Tensor, rows: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
    """Of `rows` [M] of logits [B, V], in place: -inf where masks [M, ceil(V/32)] int32 have a 0."""
    size = logits.shape[1]
    if len(rows):
        grid = (len(rows), cdiv(size, 32 * _WORDS))
        _mask[grid](logits, logits.stride(0), rows, masks, masks.shape[1], size, _WORDS, num_warps=8)
    return logits
