"""Which few values of each row hold the threshold of top-k and top-p, found by many programs a row.

Top-k: the k-th largest of the largest values of groups is a lower bound of the k-th largest value, and hardly more than
k values are above it. They are in about k groups; where these are few, they are read instead of gathering.
Top-p: the values are counted in bins of equal width below the row's largest; what a bin weighs lies between its values
all at its lower bound and all at its upper one, and the bins in which the sum may pass top-p's share are taken. Where
they hold too many values they are cut into bins once more. To take values as spread evenly would not be safe: those of
bfloat16 are few, and while some bins hold hundreds that are equal, the ones between them are empty. What lies above the
chosen values is summed exactly, and shows whether the choice was right.

Scratch of a row in P parts, by type:
floats: largest value of each part; its smallest that is finite; the bounds, 2; the gathered values, ROOM; the largest
values of groups. doubles: of each part, the weights relative to its own largest; then relative to the row's, those
above the first bounds; those above the second ones; those of them that min-p keeps. ints: the bins, twice; how many
values the last bounds hold; whether there are second bins; the keys of the smallest and the largest value that the last
bounds hold; how many groups are to be read instead of gathered values, and three without a meaning; the columns of the
gathered, or the groups, ROOM.
"""

from __future__ import annotations

import triton
import triton.language as tl

from atom.model_ops.kernels.triton.draw_search import key_of, kth_largest, scaled

BINS = tl.constexpr(64)
# Where the ints behind the bins begin, and the columns.
INSIDE = tl.constexpr(128)
COLUMNS = tl.constexpr(136)
# Bins by which bounds are wider than what is meant: a value on the edge of two is counted in either, by rounding.
_MARGIN = tl.constexpr(1 / 512)
# Values below the bins weigh together at most exp(-_SPARE) of what top-p leaves out.
_SPARE = tl.constexpr(3.0)
# exp(-_SPARE), rounded up.
_BELOW = tl.constexpr(0.0498)
# So few values of a part are put into bins one by one.
_FEW = tl.constexpr(256)
# Values that are gathered at once.
_STEP = tl.constexpr(1024)


@triton.jit
def survey(
    logits, stride, temperatures, floats, doubles, ints, size, floats_stride, ints_stride,
    PART: tl.constexpr, GROUP: tl.constexpr, ROOM: tl.constexpr,
):  # fmt: skip
    """What is known of a part without the others; and empty bins."""
    part, count, index = tl.program_id(0), tl.num_programs(0), tl.program_id(1).to(tl.int64)
    groups = tl.arange(0, PART // GROUP)
    columns = part * PART + groups[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    values = scaled(logits + index * stride, columns, size, tl.load(temperatures + index))
    is_finite = values > float("-inf")
    maxima = tl.max(values, axis=1)
    top = tl.max(maxima, axis=0)
    low = tl.min(tl.min(tl.where(is_finite, values, float("inf")), axis=1), axis=0)
    weights = tl.where(is_finite, tl.exp(values - top), 0.0).to(tl.float64)
    row = floats + index * floats_stride
    tl.store(row + part, top)
    tl.store(row + count + part, low)
    tl.store(row + 2 * count + 2 + ROOM + part * (PART // GROUP) + groups, maxima)
    tl.store(doubles + index * 4 * count + part, tl.sum(tl.sum(weights, axis=1), axis=0))
    if part == 0:
        ints += index * ints_stride
        tl.store(ints + tl.arange(0, INSIDE), tl.zeros((INSIDE,), tl.int32))
        places = tl.arange(0, COLUMNS - INSIDE)
        empty = tl.where(places == 2, 0x7FFFFFFF, tl.where(places == 3, -0x7FFFFFFF, 0))
        tl.store(ints + INSIDE + places, empty)


@triton.jit
def largest_and_whole(floats, doubles, count, COUNT: tl.constexpr):
    """A row's largest value and, relative to it, the weights of its parts."""
    parts = tl.arange(0, COUNT)
    tops = tl.load(floats + parts, mask=parts < count, other=float("-inf"))
    top = tl.max(tops, axis=0)
    sums = tl.load(doubles + parts, mask=parts < count, other=0.0)
    return top, tl.where(tops > float("-inf"), sums * tl.exp(tops - top).to(tl.float64), 0.0)


@triton.jit
def _lower(floats, count, size, top, left_out, COUNT: tl.constexpr):
    """The smallest value that matters to top-p, which leaves out so much: all smaller ones are little of that."""
    parts = tl.arange(0, COUNT)
    lows = tl.load(floats + count + parts, mask=parts < count, other=float("inf"))
    return tl.maximum(tl.min(lows, axis=0), top + tl.log(left_out / size) - _SPARE)


@triton.jit
def _add_to_bins(bins, values, is_inside, upper, lower):
    """Count a part's values from `upper` down to `lower`."""
    per_bin = BINS / tl.maximum(upper - lower, 1e-30)
    places = tl.where(is_inside, tl.minimum((upper - values) * per_bin, BINS - 1.0), 0.0).to(tl.int32)
    places = tl.minimum(tl.maximum(places, 0), BINS - 1)
    if tl.sum(is_inside.to(tl.int32), axis=0) <= _FEW:
        tl.atomic_add(bins + places, 1, mask=is_inside, sem="relaxed")
    else:
        found = tl.histogram(places, BINS, mask=is_inside)
        tl.atomic_add(bins + tl.arange(0, BINS), found, mask=found > 0, sem="relaxed")


@triton.jit
def _passed(from_above, from_below, beyond, wanted, left_out):
    """The bin in which such masses reach `wanted` or, where that is more precise, above which `left_out` is the rest.

    beyond: what lies below the bins.
    """
    below = tl.cumsum(from_below, axis=0, reverse=True) - from_below + beyond
    is_before = tl.where(wanted > left_out, below > left_out, tl.cumsum(from_above, axis=0) < wanted)
    return tl.minimum(tl.sum(is_before.to(tl.int32), axis=0), BINS - 1)


@triton.jit
def _chosen(bins, high, upper, lower, top, wanted, left_out, MOST: tl.constexpr):
    """The bins that may hold the value at which the weights from above reach `wanted`, which leaves out `left_out`.

    The bounds, the lower one inclusive, and how many values are between. high: the upper bound of the first bin. Where
    they hold more than MOST values, the likeliest bin alone.
    """
    places = tl.arange(0, BINS)
    numbers = tl.load(bins + places)
    width = (upper - lower) / BINS
    most = numbers.to(tl.float32) * tl.exp(upper - places.to(tl.float32) * width - top)
    least = most * tl.exp(-width)
    first = _passed(most, least, 0.0, wanted, left_out)
    last = _passed(least, most, left_out * _BELOW, wanted, left_out)
    inside = tl.sum(tl.where((places >= first) & (places <= last), numbers, 0), axis=0)
    if inside > MOST:
        evenly = most * tl.exp(-0.5 * width) * (1.0 + width * width / 24)
        first = _passed(evenly, evenly, 0.0, wanted, left_out)
        last = first
    found_high = tl.where(first == 0, high, upper - (first.to(tl.float32) - _MARGIN) * width)
    found_low = tl.where(last == BINS - 1, lower, upper - (last.to(tl.float32) + 1.0 + _MARGIN) * width)
    return found_high, found_low, inside


@triton.jit
def count_once(
    logits, stride, temperatures, top_ks, top_ps, floats, doubles, ints, size, floats_stride, ints_stride,
    PART: tl.constexpr, GROUP: tl.constexpr, ROOM: tl.constexpr, COUNT: tl.constexpr, MAXIMA: tl.constexpr,
):  # fmt: skip
    """The bounds of top-k, or the first bins of top-p."""
    part, count, index = tl.program_id(0), tl.num_programs(0), tl.program_id(1).to(tl.int64)
    top_k, top_p = tl.load(top_ks + index), tl.load(top_ps + index)
    floats += index * floats_stride
    if (top_k > 0) & (top_k < size):
        if part == 0:
            top, _ = largest_and_whole(floats, doubles + index * 4 * count, count, COUNT)
            groups = tl.arange(0, MAXIMA)
            number = count * (PART // GROUP)
            maxima = tl.load(floats + 2 * count + 2 + ROOM + groups, mask=groups < number, other=float("-inf"))
            low = kth_largest(maxima, top_k, top)
            tl.store(floats + 2 * count, low)
            tl.store(floats + 2 * count + 1, float("inf"))
            taken = ((maxima >= low) & (maxima > float("-inf"))).to(tl.int32)
            num_taken = tl.sum(taken, axis=0)
            if num_taken * GROUP <= ROOM:
                ints += index * ints_stride
                tl.store(ints + INSIDE + 4, num_taken)
                tl.store(ints + COLUMNS + tl.cumsum(taken, axis=0) - 1, groups, mask=taken > 0)
    elif top_p < 1.0:
        columns = part * PART + tl.arange(0, PART)
        values = scaled(logits + index * stride, columns, size, tl.load(temperatures + index))
        top, weights = largest_and_whole(floats, doubles + index * 4 * count, count, COUNT)
        left_out = ((1.0 - top_p.to(tl.float64)) * tl.sum(weights, axis=0)).to(tl.float32)
        lower = _lower(floats, count, size, top, left_out, COUNT)
        _add_to_bins(ints + index * ints_stride, values, values >= lower, top, lower)


@triton.jit
def count_again(
    logits, stride, temperatures, top_ks, top_ps, floats, doubles, ints, size, floats_stride, ints_stride,
    PART: tl.constexpr, ROOM: tl.constexpr, COUNT: tl.constexpr,
):  # fmt: skip
    """The first bounds of top-p and, where they hold too many values, the second bins."""
    part, count, index = tl.program_id(0), tl.num_programs(0), tl.program_id(1).to(tl.int64)
    top_k, top_p = tl.load(top_ks + index), tl.load(top_ps + index)
    if ((top_k <= 0) | (top_k >= size)) & (top_p < 1.0):
        floats += index * floats_stride
        doubles += index * 4 * count
        bins = ints + index * ints_stride
        top, weights = largest_and_whole(floats, doubles, count, COUNT)
        whole = tl.sum(weights, axis=0)
        left_out = ((1.0 - top_p.to(tl.float64)) * whole).to(tl.float32)
        lower = _lower(floats, count, size, top, left_out, COUNT)
        wanted = (top_p.to(tl.float64) * whole).to(tl.float32)
        high, low, inside = _chosen(bins, float("inf"), top, lower, top, wanted, left_out, 0x7FFFFFFF)
        # Some room is left for what the margins add: it may be many equal values.
        is_again = inside > ROOM - ROOM // 4
        if part == 0:
            tl.store(floats + 2 * count, low)
            tl.store(floats + 2 * count + 1, high)
            tl.store(bins + INSIDE + 1, is_again.to(tl.int32))
        if is_again:
            columns = part * PART + tl.arange(0, PART)
            values = scaled(logits + index * stride, columns, size, tl.load(temperatures + index))
            above = tl.where(values >= high, tl.exp(values - top), 0.0)
            tl.store(doubles + count + part, tl.sum(above.to(tl.float64), axis=0))
            _add_to_bins(bins + BINS, values, (values >= low) & (values < high), tl.minimum(high, top), low)


@triton.jit
def _second_bounds(bins, doubles, count, high, low, top, whole, top_p, ROOM: tl.constexpr, COUNT: tl.constexpr):
    """The bounds of top-p from the second bins."""
    parts = tl.arange(0, COUNT)
    above = tl.sum(tl.load(doubles + count + parts, mask=parts < count, other=0.0), axis=0)
    wanted = tl.maximum(top_p.to(tl.float64) * whole - above, 0.0).to(tl.float32)
    found_high, found_low, _ = _chosen(bins + BINS, high, tl.minimum(high, top), low, top, wanted, float("inf"), ROOM)
    return found_high, found_low


@triton.jit
def _gather(row, part, size, temperature, low, high, place, near_values, near_columns, PART: tl.constexpr):
    """A part's values between the bounds and their columns, from `place` on. In steps: positions take registers."""
    STEP: tl.constexpr = min(_STEP, PART)
    for start in range(part * PART, (part + 1) * PART, STEP):
        columns = start + tl.arange(0, STEP)
        values = scaled(row, columns, size, temperature)
        near = ((values >= low) & (values < high) & (values > float("-inf"))).to(tl.int32)
        number = tl.sum(near, axis=0)
        if number > 0:
            places = place + tl.cumsum(near, axis=0) - 1
            tl.store(near_values + places, values, mask=near > 0)
            tl.store(near_columns + places, columns, mask=near > 0)
            place += number


@triton.jit
def collect(
    logits, stride, temperatures, top_ks, top_ps, min_ps, floats, doubles, ints, size, floats_stride, ints_stride,
    PART: tl.constexpr, ROOM: tl.constexpr, COUNT: tl.constexpr,
):  # fmt: skip
    """Gather a part's values between the bounds, and sum the weights above; of min-p alone, those that it keeps."""
    part, count, index = tl.program_id(0), tl.num_programs(0), tl.program_id(1).to(tl.int64)
    floats += index * floats_stride
    doubles += index * 4 * count
    ints += index * ints_stride
    # What a row's filters do not need holds no meaning, but waiting once is better than to ask first.
    top_k, top_p, min_p = tl.load(top_ks + index), tl.load(top_ps + index), tl.load(min_ps + index)
    low, high = tl.load(floats + 2 * count), tl.load(floats + 2 * count + 1)
    is_again, num_groups = tl.load(ints + INSIDE + 1), tl.load(ints + INSIDE + 4)
    is_filtered = ((top_k > 0) & (top_k < size)) | (top_p < 1.0)
    if (is_filtered | (min_p > 0.0)) & (num_groups == 0):
        row, temperature = logits + index * stride, tl.load(temperatures + index)
        values = scaled(row, part * PART + tl.arange(0, PART), size, temperature)
        top, masses = largest_and_whole(floats, doubles, count, COUNT)
        least = top + tl.log(min_p)
        if not is_filtered:
            high, low = least, least
        elif is_again > 0:
            whole = tl.sum(masses, axis=0)
            high, low = _second_bounds(ints, doubles, count, high, low, top, whole, top_p, ROOM, COUNT)
        above = tl.zeros((), tl.float64)
        kept = above
        if high <= top:
            weights = tl.where(values >= high, tl.exp(values - top), 0.0).to(tl.float64)
            above = tl.sum(weights, axis=0)
            kept = tl.sum(tl.where(values >= least, weights, 0.0), axis=0)
        tl.store(doubles + 2 * count + part, above)
        tl.store(doubles + 3 * count + part, kept)
        near = (values >= low) & (values < high) & (values > float("-inf"))
        number = tl.sum(near.to(tl.int32), axis=0)
        if number > 0:
            inside = ints + INSIDE
            tl.atomic_min(inside + 2, tl.min(tl.where(near, key_of(values), 0x7FFFFFFF), axis=0), sem="relaxed")
            tl.atomic_max(inside + 3, tl.max(tl.where(near, key_of(values), -0x7FFFFFFF), axis=0), sem="relaxed")
            place = tl.atomic_add(inside, number, sem="relaxed")
            if place + number <= ROOM:
                _gather(row, part, size, temperature, low, high, place, floats + 2 * count + 2, ints + COLUMNS, PART)
