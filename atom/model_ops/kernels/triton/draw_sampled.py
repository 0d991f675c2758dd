"""Which few values of each row hold the threshold of top-k and top-p: bounds from a sample, in two reads of the row.

Top-k: the k-th largest of the largest values of groups is a lower bound of the k-th largest value, and hardly more than
k values are above it. They are in about k groups; where these are few, they are read instead of gathering.
Top-p: what lies below a value is estimated from a sample of the row, evenly spaced clusters of columns, with the error
that their spread shows. One program a row looks for the values at which the estimate is surely below, and surely above,
what top-p leaves out. Between them are about as many values as the estimate is off by; they are gathered, and what lies
above is summed, by many programs. The sums show whether the bounds were right; they never decide a token themselves.
So long as the sample is the whole row, which it is where the vocabulary is small, nothing is estimated.

Scratch of a row in P parts, by type, as `drawing` reads it:
floats: largest value of each part; that of the row; P - 1 without a meaning; the bounds, 2; the gathered values, ROOM;
the largest values of groups. doubles: of each part, the weights relative to its own largest; P without a meaning; then
relative to the row's, those above the bounds; those of them that min-p keeps. ints: how many values the bounds hold, at
INSIDE; the keys of the smallest and the largest of them, at INSIDE + 2; how many groups are to be read instead, after
them; the columns of the gathered, or the groups, ROOM, at COLUMNS.
"""

from __future__ import annotations

import triton
import triton.language as tl

from atom.model_ops.kernels.triton.draw_bounds import COLUMNS, INSIDE, largest_and_whole
from atom.model_ops.kernels.triton.draw_search import kth_largest, scaled

# Columns that a sample takes together: 32 bytes of float32. Tokens of one alphabet follow each other, and are alike, so
# that clusters, not values, are what is independent.
CLUSTER = tl.constexpr(8)
# Standard errors by which an estimate may be off, and weights of its largest value: of these it may have seen none.
_ERRORS = tl.constexpr(5.0)
_UNSEEN = tl.constexpr(12.0)
# Part of that by which the bounds may be wider.
_SLACK = tl.constexpr(0.125)
# Part of the room that values between the bounds may take, by the sample.
_FULL = tl.constexpr(0.85)
# Times that bounds are looked for, before they are taken although they hold too many.
_TRIES = tl.constexpr(2)
# Halvings of an interval of at most some 30.
_STEPS = tl.constexpr(25)
# Values below the lower bound weigh together at most exp(-_SPARE) of what top-p leaves out, whatever the sample says.
_SPARE = tl.constexpr(3.0)
# Values that are gathered at once.
_STEP = tl.constexpr(1024)


@triton.jit
def survey_parts(
    logits, stride, temperatures, floats, doubles, ints, size, floats_stride, ints_stride,
    PART: tl.constexpr, GROUP: tl.constexpr, ROOM: tl.constexpr,
):  # fmt: skip
    """What is known of a part without the others; and no values gathered."""
    part, count, index = tl.program_id(0), tl.num_programs(0), tl.program_id(1).to(tl.int64)
    groups = tl.arange(0, PART // GROUP)
    columns = part * PART + groups[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    values = scaled(logits + index * stride, columns, size, tl.load(temperatures + index))
    maxima = tl.max(values, axis=1)
    top = tl.max(maxima, axis=0)
    # A part without a finite value has no distances from its largest.
    weights = tl.exp(values - tl.where(top > float("-inf"), top, 0.0))
    row = floats + index * floats_stride
    tl.store(row + part, top)
    tl.store(row + 2 * count + 2 + ROOM + part * (PART // GROUP) + groups, maxima)
    # Short sums in float32 are exact to what a weight is.
    tl.store(doubles + index * 4 * count + part, tl.sum(tl.sum(weights, axis=1).to(tl.float64), axis=0))
    if part == 0:
        places = tl.arange(0, COLUMNS - INSIDE)
        empty = tl.where(places == 2, 0x7FFFFFFF, tl.where(places == 3, -0x7FFFFFFF, 0))
        tl.store(ints + index * ints_stride + INSIDE + places, empty)


@triton.jit
def _edge(weights, low, high, rate, left_out, share, SIGN: tl.constexpr):
    """The logarithm of a weight below which surely at most (SIGN 1), or at least (-1), `left_out` lies.

    weights: the sample [clusters, CLUSTER], one of `rate`. low, high: where to look; the answer where all else fails.
    share: of the error that is allowed for.
    """
    step = 0
    while step < _STEPS:
        middle = 0.5 * (low + high)
        limit = tl.exp(middle)
        below = tl.sum(tl.where(weights < limit, weights, 0.0), axis=1)
        sampled = tl.sum(below, axis=0)
        squares = tl.sum(below * below, axis=0) - sampled * sampled / below.shape[0]
        error = _ERRORS * tl.sqrt(rate * (rate - 1.0) * tl.maximum(squares, 0.0))
        error = share * (error + _UNSEEN * (rate - 1.0) * limit) + 1e-5 * left_out
        beyond = rate * sampled + SIGN * error - left_out
        low = tl.where(beyond > 0, low, middle)
        high = tl.where(beyond > 0, middle, high)
        is_near = tl.where(beyond > 0, SIGN < 0, SIGN > 0) & (tl.abs(beyond) <= _SLACK * error)
        step = tl.where(is_near, _STEPS, step + 1)
    return low if SIGN > 0 else high


@triton.jit
def _bounds_of_top_p(row, size, temperature, top, left_out, CLUSTERS: tl.constexpr, ROOM: tl.constexpr):
    """Values between which the threshold surely is, the lower one inclusive; narrower where they hold too many."""
    SAMPLED: tl.constexpr = CLUSTERS * CLUSTER
    rate = tl.maximum(size / SAMPLED, 1.0)
    # In the middle of the columns that a cluster stands for.
    starts = (2 * tl.arange(0, CLUSTERS) + 1).to(tl.int64) * tl.maximum(size, SAMPLED) // (2 * SAMPLED) * CLUSTER
    starts = tl.multiple_of(starts.to(tl.int32), CLUSTER)
    values = scaled(row, starts[:, None] + tl.arange(0, CLUSTER)[None, :], size, temperature)
    weights = tl.exp(values - top)
    lowest, largest = tl.log(left_out / size) - _SPARE, tl.zeros((), tl.float32)
    low, high = lowest, largest
    share = tl.full((), 1.0, tl.float32)
    left = _TRIES
    while left > 0:
        low = _edge(weights, lowest, largest, rate, left_out, share, 1)
        high = _edge(weights, low, largest, rate, left_out, share, -1)
        inside = (weights >= tl.exp(low)) & (weights < tl.exp(high))
        inside = rate * tl.sum(tl.sum(inside.to(tl.float32), axis=1), axis=0)
        left = tl.where(inside > _FULL * ROOM, left - 1, 0)
        share *= _FULL * ROOM / tl.maximum(inside, 1.0)
    margin = 1e-5 + 3e-7 * tl.abs(top)
    return top + low - margin, tl.where(high < 0, top + high + margin, float("inf"))


@triton.jit
def bound(
    logits, stride, temperatures, top_ks, top_ps, min_ps, floats, doubles, ints, size, count, floats_stride,
    ints_stride, PART: tl.constexpr, GROUP: tl.constexpr, ROOM: tl.constexpr, COUNT: tl.constexpr,
    MAXIMA: tl.constexpr, CLUSTERS: tl.constexpr,
):  # fmt: skip
    """The bounds of a row. Of min-p alone its threshold, twice; -inf where all is kept, or groups are to be read."""
    index = tl.program_id(0).to(tl.int64)
    top_k, top_p, min_p = tl.load(top_ks + index), tl.load(top_ps + index), tl.load(min_ps + index)
    floats += index * floats_stride
    ints += index * ints_stride
    top, masses = largest_and_whole(floats, doubles + index * 4 * count, count, COUNT)
    low = tl.full((), float("-inf"), tl.float32)
    high = low
    if (top_k > 0) & (top_k < size):
        groups = tl.arange(0, MAXIMA)
        number = count * (PART // GROUP)
        maxima = tl.load(floats + 2 * count + 2 + ROOM + groups, mask=groups < number, other=float("-inf"))
        low = kth_largest(maxima, top_k, top)
        taken = ((maxima >= low) & (maxima > float("-inf"))).to(tl.int32)
        num_taken = tl.sum(taken, axis=0)
        if num_taken * GROUP <= ROOM:
            tl.store(ints + INSIDE + 4, num_taken)
            tl.store(ints + COLUMNS + tl.cumsum(taken, axis=0) - 1, groups, mask=taken > 0)
        else:
            high = tl.full((), float("inf"), tl.float32)
    elif top_p < 1.0:
        left_out = ((1.0 - top_p.to(tl.float64)) * tl.sum(masses, axis=0)).to(tl.float32)
        row, temperature = logits + index * stride, tl.load(temperatures + index)
        low, high = _bounds_of_top_p(row, size, temperature, top, left_out, CLUSTERS, ROOM)
    elif min_p > 0.0:
        low = top + tl.log(min_p)
        high = low
    tl.store(floats + count, top)
    tl.store(floats + 2 * count, low)
    tl.store(floats + 2 * count + 1, high)


@triton.jit
def _gather(row, part, size, temperature, low, high, place, near_values, near_columns, PART: tl.constexpr):
    """A part's values between the bounds and their columns, from `place` on. In steps: positions take registers."""
    STEP: tl.constexpr = min(_STEP, PART)
    for start in range(part * PART, (part + 1) * PART, STEP):
        columns = start + tl.arange(0, STEP)
        values = scaled(row, columns, size, temperature)
        near = ((values >= low) & (values < high) & (values > float("-inf"))).to(tl.int32)
        places = place + tl.cumsum(near, axis=0) - 1
        tl.store(near_values + places, values, mask=near > 0)
        tl.store(near_columns + places, columns, mask=near > 0)
        place += tl.sum(near, axis=0)


@triton.jit
def gather(
    logits, stride, temperatures, min_ps, floats, doubles, ints, size, floats_stride, ints_stride,
    PART: tl.constexpr, ROOM: tl.constexpr,
):  # fmt: skip
    """Sum the weights of a part above its row's bounds, and gather the values between them, in any order."""
    part, count, index = tl.program_id(0), tl.num_programs(0), tl.program_id(1).to(tl.int64)
    floats += index * floats_stride
    ints += index * ints_stride
    low, high, top = tl.load(floats + 2 * count), tl.load(floats + 2 * count + 1), tl.load(floats + count)
    temperature, min_p = tl.load(temperatures + index), tl.load(min_ps + index)
    if high > float("-inf"):
        row = logits + index * stride
        values = scaled(row, part * PART + tl.arange(0, PART), size, temperature)
        above = tl.zeros((), tl.float32)
        kept = above
        if high <= top:
            weights = tl.where(values >= high, tl.exp(values - top), 0.0)
            above = tl.sum(weights, axis=0)
            kept = above
            if min_p > 0.0:
                kept = tl.sum(tl.where(values >= top + tl.log(min_p), weights, 0.0), axis=0)
        doubles += (index * 4 + 2) * count + part
        tl.store(doubles, above.to(tl.float64))
        tl.store(doubles + count, kept.to(tl.float64))
        near = (values >= low) & (values < high) & (values > float("-inf"))
        number = tl.sum(near.to(tl.int32), axis=0)
        if number > 0:
            place = tl.atomic_add(ints + INSIDE, number, sem="relaxed")
            if place + number <= ROOM:
                _gather(row, part, size, temperature, low, high, place, floats + 2 * count + 2, ints + COLUMNS, PART)
