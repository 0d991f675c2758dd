"""The threshold that top-k and top-p set on one row: the largest value at or above which enough tokens, or enough
probability, lie. A search over the bits of floats.

It reads the few values near the threshold, where they are known to hold it; else every step of it reads the whole row.
Probabilities of the gathered values are integers, since their order, which no two runs share, must not change a sum.
"""

from __future__ import annotations

import triton
import triton.language as tl

# One part of the largest token's weight: 2^18 tokens of its weight fit into 63 bits.
_UNIT = tl.constexpr(2.0**-44)


@triton.jit
def scaled(row, columns, size, temperature):
    """A row's logits over its temperature, in float32; -inf beyond its end."""
    return tl.load(row + columns, mask=columns < size, other=float("-inf")).to(tl.float32) / temperature


@triton.jit
def to_units(weights):
    """Weights from 0 to 1 as integers."""
    return (weights * (1.0 / _UNIT)).to(tl.int64)


@triton.jit
def from_units(units):
    """A sum of them."""
    return units.to(tl.float64) * _UNIT


@triton.jit
def key_of(values):
    """Integers in the order of the floats."""
    bits = values.to(tl.int32, bitcast=True)
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


@triton.jit
def value_of(key):
    """The float of a key."""
    bits = key.to(tl.int32)
    return (bits ^ ((bits >> 31) & 0x7FFFFFFF)).to(tl.float32, bitcast=True)


@triton.jit
def kth_largest(values, k, top):
    """The largest value with at least `k` of `values` at or above it; -inf where there are fewer. top: the largest."""
    keys = key_of(values)
    low = key_of(tl.full((), float("-inf"), tl.float32)).to(tl.int64)
    high = key_of(top).to(tl.int64) + 1
    while high - low > 1:
        middle = (low + high) // 2
        enough = tl.sum((keys >= middle.to(tl.int32)).to(tl.int32)) >= k
        low = tl.where(enough, middle, low)
        high = tl.where(enough, high, middle)
    return value_of(low)


@triton.jit
def near_threshold(values, units, limit, size, top_p, above, whole, top):
    """The threshold, and whether it lies among `values` (padded with -inf) of these weights.

    limit: of top-k; where it is not below `size`, `above` is the weight of what is larger than `values`, and `whole`
    everybody's. Else `values` are all from some value up, more than `limit` of them or all there are.
    """
    keys = key_of(values)
    threshold = tl.full((), float("-inf"), tl.float32)
    share = whole
    if limit < size:
        threshold = kth_largest(values, limit, top)
        # Of the values that equal the last of top-k, as many count as there is room for.
        larger = values > threshold
        left = (limit - tl.sum(larger.to(tl.int32))).to(tl.float64)
        share = from_units(tl.sum(tl.where(larger, units, 0))) + left * tl.exp(threshold - top).to(tl.float64)
    is_found = True
    if top_p < 1.0:
        wanted = top_p.to(tl.float64) * share - above
        lowest = key_of(threshold).to(tl.int64)
        low = lowest
        high = key_of(top).to(tl.int64) + 1
        while high - low > 1:
            middle = (low + high) // 2
            enough = from_units(tl.sum(tl.where(keys >= middle.to(tl.int32), units, 0))) >= wanted
            low = tl.where(enough, middle, low)
            high = tl.where(enough, high, middle)
        threshold = value_of(low)
        is_found = (limit < size) | ((low > lowest) & ((wanted > 0) | (above == 0)))
    return threshold, is_found


@triton.jit
def _at_least(key, row, size, temperature, top, SLICE: tl.constexpr):
    """How many values of the row have at least this key, and the sum of their weights."""
    number = tl.zeros((), tl.int32)
    mass = tl.zeros((), tl.float64)
    for start in range(0, size, SLICE):
        values = scaled(row, start + tl.arange(0, SLICE), size, temperature)
        above = (key_of(values) >= key) & (values > float("-inf"))
        number += tl.sum(above.to(tl.int32))
        mass += tl.sum(tl.where(above, tl.exp(values - top), 0.0).to(tl.float64))
    return number, mass


@triton.jit
def row_threshold(row, limit, size, temperature, top_p, top, SLICE: tl.constexpr):
    """The threshold, from the whole row."""
    lowest = key_of(tl.full((), float("-inf"), tl.float32)).to(tl.int64)
    low = lowest
    number, share = _at_least(lowest.to(tl.int32), row, size, temperature, top, SLICE)
    if limit < size:
        high = key_of(top).to(tl.int64) + 1
        while high - low > 1:
            middle = (low + high) // 2
            number, mass = _at_least(middle.to(tl.int32), row, size, temperature, top, SLICE)
            low = tl.where(number >= limit, middle, low)
            high = tl.where(number >= limit, high, middle)
        number, mass = _at_least((low + 1).to(tl.int32), row, size, temperature, top, SLICE)
        share = mass + (limit - number).to(tl.float64) * tl.exp(value_of(low) - top).to(tl.float64)
    if top_p < 1.0:
        wanted = top_p.to(tl.float64) * share
        high = key_of(top).to(tl.int64) + 1
        while high - low > 1:
            middle = (low + high) // 2
            number, mass = _at_least(middle.to(tl.int32), row, size, temperature, top, SLICE)
            low = tl.where(mass >= wanted, middle, low)
            high = tl.where(mass >= wanted, high, middle)
    return tl.where(low > lowest, value_of(low), float("-inf"))
