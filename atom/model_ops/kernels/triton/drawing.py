"""One drawn token a row in Triton, with thresholds instead of a sort, and without a look at the device from the host.

A row is a program of its own: its largest logit, the threshold that the filters set, the probability of what is left by
slices, and the slice in which the row's uniform falls. The threshold of top-k and top-p is the largest value of which
enough tokens, or enough probability, lie at or above it: a search over the values' bits. It counts the few logits near
the largest one, which are gathered first; only where they do not suffice does every step read the whole row.
Shapes: B rows, V vocabulary.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

_SLICE = 4096
# Logits near the largest that are gathered for the search.
_GATHERED = 2048


@triton.jit
def _key(values):
    """Integers in the order of the floats."""
    bits = values.to(tl.int32, bitcast=True)
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


@triton.jit
def _value(key):
    """The float of a key."""
    bits = key.to(tl.int32)
    return (bits ^ ((bits >> 31) & 0x7FFFFFFF)).to(tl.float32, bitcast=True)


@triton.jit
def _scaled(row, start, size, temperature, SLICE: tl.constexpr):
    columns = start + tl.arange(0, SLICE)
    return tl.load(row + columns, mask=columns < size, other=float("-inf")) / temperature


@triton.jit
def _at_least(key, gathered, fits, row, size, temperature, top, SLICE: tl.constexpr):
    """How many values have at least this key, and the sum of their exponentials: of the gathered, or of the row."""
    number = tl.zeros((), tl.int32)
    mass = tl.zeros((), tl.float64)
    if fits:
        above = _key(gathered) >= key
        number = tl.sum(above.to(tl.int32))
        mass = tl.sum(tl.where(above, tl.exp(gathered - top), 0.0).to(tl.float64))
    else:
        for start in range(0, size, SLICE):
            values = _scaled(row, start, size, temperature, SLICE)
            above = (_key(values) >= key) & (start + tl.arange(0, SLICE) < size)
            number += tl.sum(above.to(tl.int32))
            mass += tl.sum(tl.where(above, tl.exp(values - top), 0.0).to(tl.float64))
    return number, mass


@triton.jit
def _gather(row, scratch, size, temperature, low, SLICE: tl.constexpr, ROOM: tl.constexpr):
    """The values from `low` up, in registers; there are at most ROOM of them."""
    place = tl.zeros((), tl.int32)
    for start in range(0, size, SLICE):
        values = _scaled(row, start, size, temperature, SLICE)
        near = ((values >= low) & (start + tl.arange(0, SLICE) < size)).to(tl.int32)
        tl.store(scratch + place + tl.cumsum(near, 0) - 1, values, mask=near > 0)
        place += tl.sum(near)
    tl.debug_barrier()
    places = tl.arange(0, ROOM)
    return tl.load(scratch + places, mask=places < place, other=float("-inf"))


@triton.jit
def _top_threshold(row, scratch, size, temperature, top, limit, top_p, SLICE: tl.constexpr, ROOM: tl.constexpr):
    """The smallest value that top-k (`limit`), then top-p over what it left, keep. Equal values stay together."""
    near1 = tl.zeros((), tl.int32)
    near4 = tl.zeros((), tl.int32)
    near16 = tl.zeros((), tl.int32)
    whole = tl.zeros((), tl.float64)
    for start in range(0, size, SLICE):
        values = _scaled(row, start, size, temperature, SLICE)
        near1 += tl.sum((values >= top - 1.0).to(tl.int32))
        near4 += tl.sum((values >= top - 4.0).to(tl.int32))
        near16 += tl.sum((values >= top - 16.0).to(tl.int32))
        whole += tl.sum(tl.exp(values - top).to(tl.float64))
    distance = tl.where(near16 <= ROOM, 16.0, tl.where(near4 <= ROOM, 4.0, 1.0))
    number = tl.where(near16 <= ROOM, near16, tl.where(near4 <= ROOM, near4, near1))
    gathered = tl.full((ROOM,), float("-inf"), tl.float32)
    fits = number <= ROOM
    if fits:
        gathered = _gather(row, scratch, size, temperature, top - distance, SLICE, ROOM)
        mass = tl.sum(tl.exp(gathered - top).to(tl.float64))
        # What is searched for lies among them: the last of top-k, or the one that fills top-p's share of everything.
        fits = tl.where(limit < size, number >= limit, mass >= top_p.to(tl.float64) * whole)
    lowest = _key(tl.full((), float("-inf"), tl.float32)).to(tl.int64)
    low = lowest
    share = whole
    if limit < size:
        high = _key(top).to(tl.int64) + 1
        while high - low > 1:
            middle = (low + high) // 2
            number, mass = _at_least(middle.to(tl.int32), gathered, fits, row, size, temperature, top, SLICE)
            enough = number >= limit
            low = tl.where(enough, middle, low)
            high = tl.where(enough, high, middle)
        # Of the values that equal the last of top-k, as many count as there is room for.
        number, mass = _at_least((low + 1).to(tl.int32), gathered, fits, row, size, temperature, top, SLICE)
        share = mass + (limit - number).to(tl.float64) * tl.exp(_value(low) - top).to(tl.float64)
    if top_p < 1.0:
        wanted = top_p.to(tl.float64) * share
        high = _key(top).to(tl.int64) + 1
        while high - low > 1:
            middle = (low + high) // 2
            number, mass = _at_least(middle.to(tl.int32), gathered, fits, row, size, temperature, top, SLICE)
            enough = mass >= wanted
            low = tl.where(enough, middle, low)
            high = tl.where(enough, high, middle)
    return tl.where(low > lowest, _value(low), float("-inf"))


@triton.jit
def _draw(
    logits, stride, temperatures, top_ks, top_ps, min_ps, uniforms, scratch, sums, out, size, count,
    SLICE: tl.constexpr, ROOM: tl.constexpr, COUNT: tl.constexpr,
):  # fmt: skip
    index = tl.program_id(0).to(tl.int64)
    row = logits + index * stride
    temperature = tl.load(temperatures + index)
    top = tl.full((), float("-inf"), tl.float32)
    for start in range(0, size, SLICE):
        top = tl.maximum(top, tl.max(_scaled(row, start, size, temperature, SLICE)))
    threshold = top + tl.log(tl.load(min_ps + index))
    top_k = tl.load(top_ks + index)
    top_p = tl.load(top_ps + index)
    limit = tl.where(top_k > 0, tl.minimum(top_k, size), size)
    if (limit < size) | (top_p < 1.0):
        found = _top_threshold(row, scratch + index * ROOM, size, temperature, top, limit, top_p, SLICE, ROOM)
        threshold = tl.maximum(threshold, found)
    # Sums in float64: over 150,000 terms a float32 is off by more than a rare token weighs.
    total = tl.zeros((), tl.float64)
    for part in range(count):
        values = _scaled(row, part * SLICE, size, temperature, SLICE)
        kept = tl.where(values >= threshold, tl.exp(values - top), 0.0)
        total += tl.sum(kept.to(tl.float64))
        tl.store(sums + index * count + part, total)
    tl.debug_barrier()
    wanted = tl.load(uniforms + index).to(tl.float64) * total
    parts = tl.arange(0, COUNT)
    ends = tl.load(sums + index * count + parts, mask=parts < count, other=float("inf"))
    part = tl.minimum(tl.sum((ends <= wanted).to(tl.int32)), count - 1)
    before = tl.max(tl.where(parts == part - 1, ends, 0.0))
    values = _scaled(row, part * SLICE, size, temperature, SLICE)
    kept = tl.where(values >= threshold, tl.exp(values - top), 0.0)
    reached = before + tl.cumsum(kept.to(tl.float64), 0)
    token = part * SLICE + tl.sum((reached <= wanted).to(tl.int32))
    tl.store(out + index, tl.minimum(token, size - 1).to(tl.int64))


def sample(
    logits: torch.Tensor,
    temperature: torch.Tensor,
    top_k: torch.Tensor,
    top_p: torch.Tensor,
    min_p: torch.Tensor,
    uniform: torch.Tensor,
) -> torch.Tensor:
    """logits [B, V] float32 and parameters [B] to token ids [B] int64. top_k 0, top_p 1 and min_p 0 are off."""
    num_rows, size = logits.shape
    out = torch.empty(num_rows, dtype=torch.int64, device=logits.device)
    if num_rows:
        count = triton.cdiv(size, _SLICE)
        scratch = torch.empty((num_rows, _GATHERED), dtype=torch.float32, device=logits.device)
        sums = torch.empty((num_rows, count), dtype=torch.float64, device=logits.device)
        _draw[(num_rows,)](
            logits, logits.stride(0), temperature, top_k, top_p, min_p, uniform, scratch, sums, out, size, count,
            _SLICE, _GATHERED, triton.next_power_of_2(count), num_warps=8,
        )  # fmt: skip
    return out
