"""Grammar masks on logits in Triton."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

_SLICE = 4096


@triton.jit
def _mask(logits, stride, rows, masks, words, size, SLICE: tl.constexpr):
    index = tl.program_id(0)
    row = tl.load(rows + index)
    columns = tl.program_id(1) * SLICE + tl.arange(0, SLICE)
    inside = columns < size
    word = tl.load(masks + index.to(tl.int64) * words + columns // 32, mask=inside, other=-1)
    forbidden = ((word >> (columns % 32)) & 1) == 0
    tl.store(logits + row * stride + columns, float("-inf"), mask=inside & forbidden)


def mask_logits(logits: torch.Tensor, rows: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
    """Of `rows` [M] of logits [B, V], in place: -inf where masks [M, ceil(V/32)] int32 have a 0."""
    size = logits.shape[1]
    if len(rows):
        grid = (len(rows), triton.cdiv(size, _SLICE))
        _mask[grid](logits, logits.stride(0), rows, masks, masks.shape[1], size, _SLICE, num_warps=8)
    return logits
