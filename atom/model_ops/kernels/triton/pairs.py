"""Decode attention over an 8-bit cache that is read as words of 16 bits, two neighbouring values of a head each.

Values are multiplied across their rows, and no instruction reads 8-bit types across rows from shared memory: byte by
byte it takes longer than the tile does from memory. 16-bit words have one (ldmatrix). They come apart in registers into
the values of even and of odd dims, float16 both, which e4m3 fits into; a product of two halves is then two products.
Knows one part of a sequence; paged.py knows what a part is. Shapes: M queries, N keys, D head size, DP the power of two
above it.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl
from triton import constexpr_function

from atom.model_ops.kernels.triton.steps import capped, product


@constexpr_function
def pairs_way(is_float8: bool, dtype: Any, head_dim: int) -> str:
    """How a model in `dtype` reads the cache: "cvt" in pairs, with instructions of NVIDIA's 8.9 and newer; "plain" in
    pairs, with what the interpreter has; "" value by value, as heads of 16 and less are: tensor cores multiply no 8.
    """
    if not is_float8 or dtype == tl.float32 or head_dim % 2 or head_dim <= 16 or tl.target_info.is_hip():
        return ""
    return "cvt" if tl.target_info.is_cuda() else "plain"


@triton.jit
def _in_two(words, float8: tl.constexpr, PAIRS: tl.constexpr):
    """The lower and the upper byte of int16 words, as float16."""
    if PAIRS == "cvt":
        # Two words at a time: lower bytes together, upper bytes together.
        low, high = tl.inline_asm_elementwise(
            """
            {
            .reg .b32 sorted;
            .reg .b16 low, high;
            prmt.b32 sorted, $2, 0, 0x3120;
            mov.b32 {low, high}, sorted;
            cvt.rn.f16x2.e4m3x2 $0, low;
            cvt.rn.f16x2.e4m3x2 $1, high;
            }
            """,
            "=r,=r,r", [words], dtype=(tl.float16, tl.float16), is_pure=True, pack=2,
        )  # fmt: skip
    else:
        low = (words & 0xFF).to(tl.uint8).to(float8, bitcast=True).to(tl.float16)
        high = ((words >> 8) & 0xFF).to(tl.uint8).to(float8, bitcast=True).to(tl.float16)
    return low, high


@triton.jit
def _load_words(at, w, D: tl.constexpr, DP: tl.constexpr):
    """Words [N, DP / 2] of rows that are there; zeros beyond D."""
    if D == DP:
        return tl.load(at)
    return tl.load(at, mask=(w < D // 2)[None, :], other=0)


@triton.jit
def attend_pairs(
    query, cache, scales, table, head, start, end, length, scale, window, total, largest,
    HK: tl.constexpr, BS: tl.constexpr, D: tl.constexpr, DP: tl.constexpr, M: tl.constexpr, N: tl.constexpr,
    HAS_WINDOW: tl.constexpr, SOFT_CAP: tl.constexpr, PRECISION: tl.constexpr, STAGES: tl.constexpr,
    PAIRS: tl.constexpr,
):  # fmt: skip
    """One head's queries [M, DP] over the keys [start, end) of a sequence of `length`; (acc, total, largest).

    PAIRS: see pairs_way.
    """
    w = tl.arange(0, DP // 2)
    query = (query.to(tl.float32) * (scale * tl.load(scales + head))).to(tl.float16)
    even, odd = tl.split(tl.reshape(query, (M, DP // 2, 2)))
    words = cache.to(tl.pointer_type(tl.int16), bitcast=True) + head * (BS * D // 2)
    acc_even = tl.zeros((M, DP // 2), tl.float32)
    acc_odd = tl.zeros((M, DP // 2), tl.float32)
    for base in tl.range(start, end, N, num_stages=STAGES):
        keys = base + tl.arange(0, N)
        # Beyond the end the last key again, whose value counts for nothing there: finite where it is finite.
        there = tl.minimum(keys, end - 1)
        block = tl.load(table + there // BS).to(tl.int64)
        at = words + block[:, None] * (HK * BS * D) + (there % BS)[:, None] * (D // 2) + w[None, :]
        k_even, k_odd = _in_two(_load_words(at, w, D, DP), cache.dtype.element_ty, PAIRS)
        scores = product(even, tl.trans(k_even), PRECISION)
        scores = capped(scores + product(odd, tl.trans(k_odd), PRECISION), SOFT_CAP)
        visible = keys < end
        if HAS_WINDOW:
            visible = visible & (keys >= length - window)
        scores = tl.where(visible[None, :], scores, float("-inf"))
        found = tl.maximum(largest, tl.max(scores, axis=1))
        shift = tl.where(found == float("-inf"), 0.0, found)
        weights = tl.exp2(scores - shift[:, None])
        decay = tl.exp2(largest - shift)
        v_even, v_odd = _in_two(_load_words(at + HK * BS * D // 2, w, D, DP), cache.dtype.element_ty, PAIRS)
        rounded = weights.to(tl.float16)
        acc_even = acc_even * decay[:, None] + product(rounded, v_even, PRECISION)
        acc_odd = acc_odd * decay[:, None] + product(rounded, v_odd, PRECISION)
        total = total * decay + tl.sum(weights, axis=1)
        largest = found
    acc = tl.reshape(tl.join(acc_even, acc_odd), (M, DP)) * tl.load(scales + HK + head)
    return acc / tl.where(total == 0.0, 1.0, total)[:, None], total, largest
