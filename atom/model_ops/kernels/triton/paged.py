"""What attention does with a tile of keys, and decode attention with a part of a sequence.

Owns finding a tile in the cache, and the steps of the running softmax.
An fp8 cache is computed with in float16 where the model is in bfloat16: e4m3 fits into it and becomes it in one
instruction, while the way to bfloat16 has two more, which take longer than reading the tile does. Queries get the
scales beforehand, which keeps them clear of float16's limits. Decode attention on NVIDIA reads it in pairs (pairs.py).
Shapes: M queries, N keys, D head size, DP the power of two above it.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from atom.model_ops.kernels.triton.pairs import attend_pairs, pairs_way
from atom.model_ops.kernels.triton.steps import capped, product

LOG2_E = 1.4426950408889634


@triton.jit
def load_tile(
    cache, table, head, keys, end, d,
    HK: tl.constexpr, BS: tl.constexpr, D: tl.constexpr, dtype: tl.constexpr,
):  # fmt: skip
    """Keys and values [N, DP] of one head at positions `keys` [N] below `end`; zeros beyond. table: a row of blocks."""
    inside = keys < end
    block = tl.load(table + keys // BS, mask=inside, other=0).to(tl.int64)
    where = ((block * (2 * HK) + head) * BS + keys % BS)[:, None] * D + d[None, :]
    mask = inside[:, None] & (d < D)[None, :]
    k = tl.load(cache + where, mask=mask, other=0.0).to(dtype)
    v = tl.load(cache + where + HK * BS * D, mask=mask, other=0.0).to(dtype)
    return k, v


@triton.jit
def softmax_step(scores, v, acc, total, largest, PRECISION: tl.constexpr):
    """One tile: scores [M, N] in units of log2, -inf where hidden; acc [M, DP], total and largest [M] so far."""
    found = tl.maximum(largest, tl.max(scores, axis=1))
    shift = tl.where(found == float("-inf"), 0.0, found)
    weights = tl.exp2(scores - shift[:, None])
    decay = tl.exp2(largest - shift)
    acc = acc * decay[:, None] + product(weights.to(v.dtype), v, PRECISION)
    return acc, total * decay + tl.sum(weights, axis=1), found


@triton.jit
def attend_keys(
    query, cache, scales, table, head, start, end, length, d, scale, window, acc, total, largest,
    HK: tl.constexpr, BS: tl.constexpr, D: tl.constexpr, N: tl.constexpr, HAS_SCALES: tl.constexpr,
    HAS_WINDOW: tl.constexpr, SOFT_CAP: tl.constexpr, PRECISION: tl.constexpr, STAGES: tl.constexpr,
    dtype: tl.constexpr,
):  # fmt: skip
    """One head's queries [M, DP] over the keys [start, end) of a sequence of `length`; (acc, total, largest) so far."""
    held: tl.constexpr = tl.float16 if HAS_SCALES and dtype == tl.bfloat16 else dtype
    if HAS_SCALES:
        query = (query.to(tl.float32) * (scale * tl.load(scales + head))).to(held)
        scale = 1.0
    for base in tl.range(start, end, N, num_stages=STAGES):
        keys = base + tl.arange(0, N)
        k, v = load_tile(cache, table, head, keys, end, d, HK, BS, D, held)
        scores = capped(product(query, tl.trans(k), PRECISION) * scale, SOFT_CAP)
        visible = keys < end
        if HAS_WINDOW:
            visible = visible & (keys >= length - window)
        scores = tl.where(visible[None, :], scores, float("-inf"))
        acc, total, largest = softmax_step(scores, v, acc, total, largest, PRECISION)
    if HAS_SCALES:
        acc = acc * tl.load(scales + HK + head)
    return acc / tl.where(total == 0.0, 1.0, total)[:, None], total, largest


@triton.jit
def visible_keys(positions, token, window, N: tl.constexpr, HAS_WINDOW: tl.constexpr):
    """Where the first tile of N keys that a decode token sees begins, and the end of its keys, its own included."""
    length = (tl.load(positions + token) + 1).to(tl.int32)
    first = 0
    if HAS_WINDOW:
        first = tl.maximum(length - window, 0) // N * N
    return first, length


@triton.jit
def attend_part(
    q, q_stride, cache, scales, tables, table_stride, rows, sinks, token, head, part, start, end, length, scale, window,
    HQ: tl.constexpr, HK: tl.constexpr, D: tl.constexpr, DP: tl.constexpr, BS: tl.constexpr, M: tl.constexpr,
    N: tl.constexpr, HAS_SCALES: tl.constexpr, HAS_WINDOW: tl.constexpr, HAS_ROWS: tl.constexpr,
    HAS_SINKS: tl.constexpr, SOFT_CAP: tl.constexpr, PRECISION: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """The queries of a decode token that share a key head, over the part [start, end) of its keys.

    Returns the query heads [M], a mask [M, DP] of what of them there is, and acc, total and largest.
    """
    group: tl.constexpr = HQ // HK
    row = tl.load(rows + token) if HAS_ROWS else token
    members = tl.arange(0, M)
    d = tl.arange(0, DP)
    heads = head * group + members
    is_head = (members < group)[:, None] & (d < D)[None, :]
    dtype: tl.constexpr = q.dtype.element_ty
    query = tl.load(q + token.to(tl.int64) * q_stride + heads[:, None] * D + d[None, :], mask=is_head, other=0.0)
    table = tables + row.to(tl.int64) * table_stride
    total = tl.zeros((M,), tl.float32)
    largest = tl.full((M,), float("-inf"), tl.float32)
    if HAS_SINKS:
        # A sink is a key that the first part has seen: of value zero, in units of log2 as all scores.
        counted = members < tl.where(part == 0, group, 0)
        largest = tl.load(sinks + heads, mask=counted, other=float("-inf")) * 1.4426950408889634
        total = tl.where(counted, 1.0, 0.0)
    way: tl.constexpr = pairs_way(HAS_SCALES, dtype, D)
    if way != "":
        acc, total, largest = attend_pairs(
            query, cache, scales, table, head, start, end, length, scale, window, total, largest,
            HK, BS, D, DP, M, N, HAS_WINDOW, SOFT_CAP, PRECISION, STAGES, way,
        )  # fmt: skip
    else:
        acc = tl.zeros((M, DP), tl.float32)
        acc, total, largest = attend_keys(
            query, cache, scales, table, head, start, end, length, d, scale, window, acc, total, largest,
            HK, BS, D, N, HAS_SCALES, HAS_WINDOW, SOFT_CAP, PRECISION, STAGES, dtype,
        )  # fmt: skip
    return heads, is_head, acc, total, largest


def precision(dtype: torch.dtype) -> str:
    """How products of this type are computed. Triton's interpreter has no product of 16-bit values."""
    return "ieee" if dtype == torch.float32 or triton.knobs.runtime.interpret else "native"
