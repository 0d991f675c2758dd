"""Decode attention with the keys cut as shares.py says: a program an item of work, and a second kernel that joins.

Shapes: Td tokens, HQ/HK heads, D head size, W items, R rows of results.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from atom.model_ops.kernels.triton.early import early_launch, take_turn
from atom.model_ops.kernels.triton.paged import attend_part
from atom.model_ops.kernels.triton.shares import Shares

# Parts that are joined at a time, beyond those that every token has rows for.
_CHUNK = 16


@triton.jit(do_not_specialize=["table_stride", "num_rows"])
def _decode_shared(
    q, q_stride, cache, scales, tables, table_stride, rows, sinks, out, scale, window, items, partial, log_sums,
    num_rows,
    HQ: tl.constexpr, HK: tl.constexpr, D: tl.constexpr, DP: tl.constexpr, BS: tl.constexpr, M: tl.constexpr,
    N: tl.constexpr, HAS_SCALES: tl.constexpr, HAS_WINDOW: tl.constexpr, HAS_ROWS: tl.constexpr,
    HAS_SINKS: tl.constexpr, SOFT_CAP: tl.constexpr, PRECISION: tl.constexpr, STAGES: tl.constexpr,
    EARLY: tl.constexpr,
):  # fmt: skip
    """items as in Shares; partial [HQ, R, D] and log_sums [HQ, R] of parts that are not all."""
    take_turn(EARLY)
    # Heads first: the longest parts come first for all of them, and neighbours in the cache are read together.
    head, item = tl.program_id(0), tl.program_id(1)
    work = items + item * 8
    token, part = tl.load(work), tl.load(work + 1)
    start, end, length, row = tl.load(work + 2), tl.load(work + 3), tl.load(work + 4), tl.load(work + 5)
    if token < 0:
        return
    heads, is_head, acc, total, largest = attend_part(
        q, q_stride, cache, scales, tables, table_stride, rows, sinks, token, head, part, start, end, length, scale,
        window, HQ, HK, D, DP, BS, M, N, HAS_SCALES, HAS_WINDOW, HAS_ROWS, HAS_SINKS, SOFT_CAP, PRECISION, STAGES,
    )  # fmt: skip
    d = tl.arange(0, DP)
    if row < 0:
        place = token.to(tl.int64) * HQ + heads
        tl.store(out + place[:, None] * D + d[None, :], acc.to(out.dtype.element_ty), mask=is_head)
    else:
        place = heads.to(tl.int64) * num_rows + row
        tl.store(log_sums + place, largest + tl.log2(total), mask=tl.arange(0, M) < HQ // HK)
        tl.store(partial + place[:, None] * D + d[None, :], acc, mask=is_head)


@triton.jit
def _add_parts(partial, log_sums, rows, is_row, is_part, acc, total, largest, D: tl.constexpr, DP: tl.constexpr):
    """Results [P, D] and sums [P], in units of log2, of the parts there are; (acc [DP], total, largest) so far."""
    d = tl.arange(0, DP)
    mask = is_row[:, None] & (d < D)[None, :]
    # Past the first-level cache: nothing is read twice.
    sums = tl.load(log_sums + rows, mask=is_row, other=float("-inf"), cache_modifier=".cg")
    values = tl.load(partial + rows[:, None] * D + d[None, :], mask=mask, other=0.0, cache_modifier=".cg")
    sums = tl.where(is_part, sums, float("-inf"))
    found = tl.maximum(largest, tl.max(sums, axis=0))
    shift = tl.where(found == float("-inf"), 0.0, found)
    weights = tl.exp2(sums - shift)
    decay = tl.exp2(largest - shift)
    values = tl.where((sums > float("-inf"))[:, None], values, 0.0)
    return acc * decay + tl.sum(values * weights[:, None], axis=0), total * decay + tl.sum(weights, axis=0), found


@triton.jit(do_not_specialize=["num_tokens", "num_rows"])
def _join_shared(
    partial, log_sums, spans, out, num_tokens, num_rows,
    HQ: tl.constexpr, D: tl.constexpr, DP: tl.constexpr, FIXED: tl.constexpr, CHUNK: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """out [Td, HQ, D] of the tokens in several parts, a program a head. spans, and rows of partial, as in Shares."""
    take_turn(EARLY)
    token, head = tl.program_id(0), tl.program_id(1)
    first, count = tl.load(spans + token * 2), tl.load(spans + token * 2 + 1)
    first_row = head.to(tl.int64) * num_rows
    acc = tl.zeros((DP,), tl.float32)
    total = 0.0
    largest = float("-inf")
    # All that every token has rows for are read, used or not, since they need not wait for the number of parts then.
    parts = tl.arange(0, FIXED)
    rows = first_row + token * FIXED + parts
    acc, total, largest = _add_parts(
        partial, log_sums, rows, parts < FIXED, parts < count, acc, total, largest, D, DP
    )  # fmt: skip
    for base in tl.range(FIXED, count, CHUNK):
        more = base + tl.arange(0, CHUNK)
        rows_of_more = first_row + num_tokens * FIXED + first + more
        acc, total, largest = _add_parts(
            partial, log_sums, rows_of_more, more < count, more < count, acc, total, largest, D, DP
        )  # fmt: skip
    if count > 1:
        d = tl.arange(0, DP)
        joined = acc / tl.where(total == 0.0, 1.0, total)
        tl.store(out + (token.to(tl.int64) * HQ + head) * D + d, joined.to(out.dtype.element_ty), mask=d < D)


def attend_shares(
    q: torch.Tensor, out: torch.Tensor, shares: Shares, num_kv_heads: int, tensors: tuple[Any, ...],
    constants: dict[str, Any],
) -> None:  # fmt: skip
    """Fill `out` from q [Td, HQ, D]. tensors and constants: what both ways take."""
    num_tokens, num_heads, head_dim = q.shape
    partial = torch.empty((num_heads, shares.num_rows, head_dim), dtype=torch.float32, device=q.device)
    log_sums = torch.empty((num_heads, shares.num_rows), dtype=torch.float32, device=q.device)
    _decode_shared[(num_kv_heads, len(shares.items))](
        *tensors, shares.items, partial, log_sums, shares.num_rows, **constants
    )
    _join_shared[(num_tokens, num_heads)](
        partial, log_sums, shares.spans, out, num_tokens, shares.num_rows, HQ=num_heads, D=head_dim,
        DP=constants["DP"], FIXED=shares.fixed, CHUNK=_CHUNK, EARLY=constants["EARLY"], num_warps=2, **early_launch(),
    )  # fmt: skip
