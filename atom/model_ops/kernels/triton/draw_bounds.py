"""Which few values of each row hold the threshold of top-k and top-p: bounds from a sample, in two reads of the row.

Top-k: the k-th largest of the largest values of groups is a lower bound of the k-th largest value, and hardly more than
k values are above it. They are in about k groups; where these are few, they are read instead of gathering.
Top-p: what lies below a value is estimated from a sample of the row, evenly spaced clusters of columns, with the error
that their spread shows. One program a row looks for the values at which the estimate is surely below, and surely above,
what top-p leaves out. Between them are about as many values as the estimate is off by; they are gathered, and what lies
above is summed, by many programs. The sums show whether the bounds were right; they never decide a token themselves.
So long as the sample is the whole row, which it is where the vocabulary is small, nothing is estimated.

Scratch of a row in P parts, by type:
floats: the row's largest value, at LARGEST; the bounds, at LOW and HIGH; the gathered values, ROOM, from VALUES on; the
largest values of groups; those of parts. doubles: of each part, the weights relative to its own largest; then relative
to the row's, those above the bounds; those of them that min-p keeps. ints: how many values the bounds hold, at INSIDE;
how many groups are to be read instead of gathered values, at GROUPS; the columns of the gathered, or the groups, ROOM,
from COLUMNS on.
"""

from __future__ import annotations

import triton
import triton.language as tl

from atom.model_ops.kernels.triton.draw_search import kth_largest, scaled

LARGEST = tl.constexpr(0)
LOW = tl.constexpr(1)
HIGH = tl.constexpr(2)
VALUES = tl.constexpr(16)
INSIDE = tl.constexpr(0)
GROUPS = tl.constexpr(1)
COLUMNS = tl.constexpr(16)
# Columns that a sample takes together: 32 bytes of float32. Tokens of one alphabet follow each other, and are alike, so
# that clusters, not values, are what is independent.
CLUSTER = tl.constexpr(8)
# Standard errors by which an estimate may be off, and weights of its largest value: of these it may have seen none.
_ERRORS = tl.constexpr(5.0)
_UNSEEN = tl.constexpr(12.0)
# Part of that by which the bounds may be wider.
_SLACK = tl.constexpr(0.125)
# How far above the lower bound the upper one is looked for first.
_REACH = tl.constexpr(0.06)
# Part of the room that values between the bounds may take, by the sample.
_FULL = tl.constexpr(0.85)
# Times that bounds are looked for, before they are taken although they hold too many.
_TRIES = tl.constexpr(2)
# Halvings of an interval of some 10, as far as the margin of the bounds.
_STEPS = tl.constexpr(20)
# Values below the lower bound weigh together at most exp(-_SPARE) of what top-p leaves out, whatever the sample says.
_SPARE = tl.constexpr(3.0)


@triton.jit
def _maxima_of_parts(floats, count, PART: tl.constexpr, GROUP: tl.constexpr, ROOM: tl.constexpr):
    """Where the largest values of parts are."""
    return floats + VALUES + ROOM + count * (PART // GROUP)


@triton.jit
def largest_and_whole(
    floats, doubles, count, PART: tl.constexpr, GROUP: tl.constexpr, ROOM: tl.constexpr, COUNT: tl.constexpr
):  # fmt: skip
    """A row's largest value and, relative to it, the weights of its parts."""
    parts = tl.arange(0, COUNT)
    tops = _maxima_of_parts(floats, count, PART, GROUP, ROOM)
    tops = tl.load(tops + parts, mask=parts < count, other=float("-inf"))
    top = tl.max(tops, axis=0)
    sums = tl.load(doubles + parts, mask=parts < count, other=0.0)
    return top, tl.where(tops > float("-inf"), sums * tl.exp(tops - top).to(tl.float64), 0.0)


@triton.jit
def survey(
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
    tl.store(_maxima_of_parts(row, count, PART, GROUP, ROOM) + part, top)
    tl.store(row + VALUES + ROOM + part * (PART // GROUP) + groups, maxima)
    # Short sums in float32 are exact to what a weight is.
    tl.store(doubles + index * 3 * count + part, tl.sum(tl.sum(weights, axis=1).to(tl.float64), axis=0))
    if part == 0:
        tl.store(ints + index * ints_stride + INSIDE, 0)
        tl.store(ints + index * ints_stride + GROUPS, 0)


@triton.jit
def _edge(weights, low, high, reach, rate, left_out, share, SIGN: tl.constexpr):
    """The logarithm of a weight below which surely at most (SIGN 1), or at least (-1), `left_out` lies.

    weights: the sample [clusters, CLUSTER], one of `rate`. low, high: where to look; the answer where all else fails.
    reach: how far from `low` to look first, twice as far each time. What is surely below a value falls again from where
    few values make the sum: they may not be in the sample. So halves alone could pass by all that is right.
    share: of the error that is allowed for.
    """
    step = 0
    while step < _STEPS:
        middle = tl.minimum(0.5 * (low + high), low + reach)
        reach *= 2
        limit = tl.exp(middle)
        below = tl.sum(tl.where(weights < limit, weights, 0.0), axis=1)
        sampled = tl.sum(below, axis=0)
        squares = tl.sum(below * below, axis=0) - sampled * sampled / below.shape[0]
        error = tl.sqrt(rate * (rate - 1.0) * tl.maximum(squares, 0.0)) * _ERRORS
        error = share * (error + (rate - 1.0) * limit * _UNSEEN) + 1e-5 * left_out
        beyond = rate * sampled + SIGN * error - left_out
        low = tl.where(beyond > 0, low, middle)
        high = tl.where(beyond > 0, middle, high)
        is_near = tl.where(beyond > 0, SIGN < 0, SIGN > 0) & (tl.abs(beyond) <= error * _SLACK)
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
    low, high = tl.log(left_out / size) - _SPARE, tl.zeros((), tl.float32)
    share = tl.full((), 1.0, tl.float32)
    left = _TRIES
    while left > 0:
        low = _edge(weights, low, high, high - low, rate, left_out, share, 1)
        high = _edge(weights, low, high, tl.full((), _REACH, tl.float32), rate, left_out, share, -1)
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
    top, masses = largest_and_whole(floats, doubles + index * 3 * count, count, PART, GROUP, ROOM, COUNT)
    low = tl.full((), float("-inf"), tl.float32)
    high = low
    if (top_k > 0) & (top_k < size):
        groups = tl.arange(0, MAXIMA)
        number = count * (PART // GROUP)
        maxima = tl.load(floats + VALUES + ROOM + groups, mask=groups < number, other=float("-inf"))
        low = kth_largest(maxima, top_k, top)
        taken = ((maxima >= low) & (maxima > float("-inf"))).to(tl.int32)
        num_taken = tl.sum(taken, axis=0)
        if num_taken * GROUP <= ROOM:
            tl.store(ints + GROUPS, num_taken)
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
    tl.store(floats + LARGEST, top)
    tl.store(floats + LOW, low)
    tl.store(floats + HIGH, high)


@triton.jit
def gather(
    logits, stride, temperatures, min_ps, floats, doubles, ints, size, floats_stride, ints_stride,
    PART: tl.constexpr, ROOM: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """Sum the weights of a part above its row's bounds, and gather the values between them, in any order, by STEPs."""
    part, count, index = tl.program_id(0), tl.num_programs(0), tl.program_id(1).to(tl.int64)
    floats += index * floats_stride
    ints += index * ints_stride
    low, high, top = tl.load(floats + LOW), tl.load(floats + HIGH), tl.load(floats + LARGEST)
    temperature, min_p = tl.load(temperatures + index), tl.load(min_ps + index)
    if high > float("-inf"):
        least = top + tl.log(min_p)
        above = tl.zeros((STEP,), tl.float32)
        kept = above
        for start in range(0, PART, STEP):
            # One column a thread: the values that go to places of their own need not change threads.
            columns = tl.max_contiguous(part * PART + start + tl.arange(0, STEP), 1)
            values = scaled(logits + index * stride, columns, size, temperature)
            # Each value asks for its place: they are few, and positions within a part would take longer to find.
            near = (values >= low) & (values < high) & (values > float("-inf"))
            places = tl.atomic_add(ints + INSIDE + tl.zeros((STEP,), tl.int32), 1, mask=near, sem="relaxed")
            weights = tl.where(values >= high, tl.exp(values - top), 0.0)
            above += weights
            kept += tl.where(values >= least, weights, 0.0)
            has_place = near & (places < ROOM)
            tl.store(floats + VALUES + places, values, mask=has_place)
            tl.store(ints + COLUMNS + places, columns, mask=has_place)
        doubles += (index * 3 + 1) * count + part
        tl.store(doubles, tl.sum(above, axis=0).to(tl.float64))
        tl.store(doubles + count, tl.sum(kept, axis=0).to(tl.float64))
