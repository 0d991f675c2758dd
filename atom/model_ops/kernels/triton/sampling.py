"""Greedy sampling in Triton: the largest logit of slices of the vocabulary, then of the slices."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from atom.model_ops.kernels.triton.sizes import cdiv, next_power_of_2

_SLICE = 4096


@triton.jit
def _largest(values, indices, sentinel: tl.constexpr):
    """The largest of `values` and, among its equals, the lowest of `indices`."""
    top = tl.max(values, axis=0)
    return top, tl.min(tl.where(values == top, indices, sentinel), axis=0)


@triton.jit
def _slice_argmax(
    logits,
    stride,
    tops,
    places,
    size,
    SLICE: tl.constexpr,
    sentinel: tl.constexpr,
):
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    columns = part * SLICE + tl.arange(0, SLICE)
    values = tl.load(logits + row * stride + columns, mask=columns < size, other=float("-inf")).to(tl.float32)
    top, place = _largest(values, columns, sentinel)
    tl.store(tops + row * tl.num_programs(1) + part, top)
    tl.store(places + row * tl.num_programs(1) + part, place)


@triton.jit
def _join(tops, places, out, size, count, COUNT: tl.constexpr, sentinel: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    parts = tl.arange(0, COUNT)
    values = tl.load(tops + row * count + parts, mask=parts < count, other=float("-inf"))
    indices = tl.load(places + row * count + parts, mask=parts < count, other=sentinel)
    _, place = _largest(values, indices, sentinel)
    # Logits that are no numbers have no largest; the token must be one of the vocabulary all the same.
    tl.store(out + row, tl.minimum(place, size - 1).to(tl.int64))


def greedy_sample(logits: torch.Tensor) -> torch.Tensor:
    """logits [B, V] to token ids [B] int64; the lowest index on a tie."""
    num_rows, size = logits.shape
    count = cdiv(size, _SLICE)
    out = torch.empty(num_rows, dtype=torch.int64, device=logits.device)
    if num_rows:
        tops = torch.empty((num_rows, count), dtype=torch.float32, device=logits.device)
        places = torch.empty((num_rows, count), dtype=torch.int32, device=logits.device)
        none = 2**31 - 1
        _slice_argmax[(num_rows, count)](logits, logits.stride(0), tops, places, size, _SLICE, none, num_warps=8)
        _join[(num_rows,)](tops, places, out, size, count, next_power_of_2(count), none, num_warps=1)
    return out
