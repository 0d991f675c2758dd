"""Decode attention over the paged cache: a program a part of a sequence's keys and key head.

The query heads that share a key head are the rows of one product. shares.py cuts the keys; here its items are worked
off, and the results of a sequence in several parts are joined. In small batches, where every sequence has several, a
second kernel does that. In large ones few have, or none: there the program that is done last with a part of a token and
key head joins them, beside others that still run. It waits for nobody, and adds in the order of the parts, whichever it
is. Shapes: Td tokens, HQ/HK heads, D head size, W items, R rows of results.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from atom.model_ops.kernels.triton.early import early_launch, starts_early, take_turn
from atom.model_ops.kernels.triton.paged import LOG2_E, attend_part, precision
from atom.model_ops.kernels.triton.plan import Plan
from atom.model_ops.kernels.triton.shares import Shares, share_out

# Parts that are joined at a time, beyond those that every token has rows for.
_CHUNK = 16


@dataclass(frozen=True, slots=True)
class Form:
    """Keys a tile, stages of the pipeline and warps of a program. Of an 8-bit cache (pairs.py): whether it is read in
    pairs where the device can, and whether sums are added up last.
    """

    tile: int
    stages: int = 3
    warps: int = 4
    pairs: bool = True
    sums_last: bool = True


@functools.cache
def choose_form(dtype: torch.dtype, padded: int, is_float8: bool) -> Form:
    """By the queries' type, the head size's power of two and the cache."""
    is_small = dtype == torch.float32 or padded > 128
    # Five stages keep a tile on its way while another is computed with, which only tiles of 8 bits leave room for.
    in_pairs = is_float8 and dtype != torch.float32 and tl.target_info.is_cuda()
    return Form(32 if is_small else 64, stages=5 if in_pairs else 3)


@triton.jit
def _add_parts(partial, log_sums, rows, is_row, is_part, acc, total, largest, D: tl.constexpr, DP: tl.constexpr):
    """Results [P, D] and sums [P], in units of log2, of the parts there are; (acc [DP], total, largest) so far."""
    d = tl.arange(0, DP)
    mask = is_row[:, None] & (d < D)[None, :]
    # Past the first-level cache, which other programs' results do not reach.
    sums = tl.load(log_sums + rows, mask=is_row, other=float("-inf"), cache_modifier=".cg")
    values = tl.load(partial + rows[:, None] * D + d[None, :], mask=mask, other=0.0, cache_modifier=".cg")
    sums = tl.where(is_part, sums, float("-inf"))
    found = tl.maximum(largest, tl.max(sums, axis=0))
    shift = tl.where(found == float("-inf"), 0.0, found)
    weights = tl.exp2(sums - shift)
    decay = tl.exp2(largest - shift)
    values = tl.where((sums > float("-inf"))[:, None], values, 0.0)
    return acc * decay + tl.sum(values * weights[:, None], axis=0), total * decay + tl.sum(weights, axis=0), found


@triton.jit
def _join_parts(
    partial, log_sums, out, token, head, own_row, item_row, count, num_rows,
    HQ: tl.constexpr, D: tl.constexpr, DP: tl.constexpr, FIXED: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """One head's row of `out`: parts below FIXED have their results from row own_row, all further ones at item_row
    plus the part.
    """
    first_row = head.to(tl.int64) * num_rows
    acc = tl.zeros((DP,), tl.float32)
    total = 0.0
    largest = float("-inf")
    if FIXED > 0:
        # All are read, used or not, since they need not wait for the number of parts then.
        fixed = tl.arange(0, FIXED)
        acc, total, largest = _add_parts(
            partial, log_sums, first_row + own_row + fixed, fixed < FIXED, fixed < count, acc, total, largest, D, DP
        )  # fmt: skip
    for base in tl.range(FIXED, count, CHUNK):
        parts = base + tl.arange(0, CHUNK)
        acc, total, largest = _add_parts(
            partial, log_sums, first_row + item_row + parts, parts < count, parts < count, acc, total, largest, D, DP
        )  # fmt: skip
    if count > 1:
        d = tl.arange(0, DP)
        joined = acc / tl.where(total == 0.0, 1.0, total)
        tl.store(out + (token.to(tl.int64) * HQ + head) * D + d, joined.to(out.dtype.element_ty), mask=d < D)


@triton.jit(do_not_specialize=["table_stride", "num_rows"])
def _decode(
    q, q_stride, cache, scales, tables, table_stride, rows, items, sinks, out, partial, log_sums, num_rows, arrivals,
    scale, window,
    HQ: tl.constexpr, HK: tl.constexpr, D: tl.constexpr, DP: tl.constexpr, BS: tl.constexpr, M: tl.constexpr,
    N: tl.constexpr, HAS_SCALES: tl.constexpr, HAS_WINDOW: tl.constexpr, HAS_ROWS: tl.constexpr,
    HAS_SINKS: tl.constexpr, SOFT_CAP: tl.constexpr, PRECISION: tl.constexpr, STAGES: tl.constexpr,
    PAIRS: tl.constexpr, SUMS_LAST: tl.constexpr, JOINS: tl.constexpr, CHUNK: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """items as in Shares; partial [HQ, R, D] and log_sums [HQ, R] of parts that are not all. JOINS: the last one joins;
    arrivals [Td, HK] counts those done, zeros before and after.
    """
    take_turn(EARLY)
    # Heads first: the longest parts come first for all of them, and neighbours in the cache are read together.
    head, item = tl.program_id(0), tl.program_id(1)
    work = items + item * 8
    token, part = tl.load(work), tl.load(work + 1)
    start, end, length = tl.load(work + 2), tl.load(work + 3), tl.load(work + 4)
    row, count = tl.load(work + 5), tl.load(work + 6)
    if token < 0:
        return
    heads, is_head, acc, total, largest = attend_part(
        q, q_stride, cache, scales, tables, table_stride, rows, sinks, token, head, part, start, end, length, scale,
        window, HQ, HK, D, DP, BS, M, N, HAS_SCALES, HAS_WINDOW, HAS_ROWS, HAS_SINKS, SOFT_CAP, PRECISION, STAGES,
        PAIRS, SUMS_LAST,
    )  # fmt: skip
    group: tl.constexpr = HQ // HK
    d = tl.arange(0, DP)
    if row < 0:
        place = token.to(tl.int64) * HQ + heads
        tl.store(out + place[:, None] * D + d[None, :], acc.to(out.dtype.element_ty), mask=is_head)
    else:
        place = heads.to(tl.int64) * num_rows + row
        tl.store(log_sums + place, largest + tl.log2(total), mask=tl.arange(0, M) < group)
        tl.store(partial + place[:, None] * D + d[None, :], acc, mask=is_head)
        if JOINS:
            # Every thread's results are written before the one that counts says so.
            tl.debug_barrier()
            count_at = arrivals + token * HK + head
            if tl.atomic_add(count_at, 1, sem="acq_rel", scope="gpu") == count - 1:
                tl.store(count_at, 0)
                for member in range(group):
                    _join_parts(
                        partial, log_sums, out, token, head * group + member, 0, row - part, count, num_rows,
                        HQ, D, DP, 0, CHUNK,
                    )  # fmt: skip


@triton.jit(do_not_specialize=["num_tokens", "num_rows"])
def _join(
    partial, log_sums, spans, out, num_tokens, num_rows,
    HQ: tl.constexpr, D: tl.constexpr, DP: tl.constexpr, FIXED: tl.constexpr, CHUNK: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """out [Td, HQ, D] of the tokens in several parts, a program a head. spans, and rows of partial, as in Shares."""
    take_turn(EARLY)
    token, head = tl.program_id(0), tl.program_id(1)
    first, count = tl.load(spans + token * 2), tl.load(spans + token * 2 + 1)
    _join_parts(
        partial, log_sums, out, token, head, token * FIXED, num_tokens * FIXED + first, count, num_rows,
        HQ, D, DP, FIXED, CHUNK,
    )  # fmt: skip


def attention_decode(
    q: torch.Tensor,
    kv_cache: torch.Tensor,
    kv_scales: torch.Tensor | None,
    plan: Plan,
    scale: float,
    window: int | None,
    soft_cap: float,
    sinks: torch.Tensor | None,
) -> torch.Tensor:
    """q [Td, HQ, D] over each token's cached keys, its own among them; returns [Td, HQ * D]."""
    num_tokens, num_heads, head_dim = q.shape
    num_kv_heads, block_size = kv_cache.shape[2], kv_cache.shape[3]
    padded = max(16, triton.next_power_of_2(head_dim))
    form = choose_form(q.dtype, padded, kv_scales is not None)
    shares: Shares = plan.keep(
        (num_tokens, num_kv_heads, form.tile, window),
        lambda: share_out(plan.positions, num_tokens, num_kv_heads, form.tile, window),
    )
    out = torch.empty((num_tokens, num_heads * head_dim), dtype=q.dtype, device=q.device)
    partial = torch.empty((num_heads, shares.num_rows, head_dim), dtype=torch.float32, device=q.device)
    log_sums = torch.empty((num_heads, shares.num_rows), dtype=torch.float32, device=q.device)
    _decode[(num_kv_heads, len(shares.items))](
        q, q.stride(0), kv_cache, kv_scales, plan.block_tables, plan.block_tables.stride(0), plan.decode_rows,
        shares.items, sinks, out, partial, log_sums, shares.num_rows, shares.arrivals, scale * LOG2_E, window or 0,
        HQ=num_heads, HK=num_kv_heads, D=head_dim, DP=padded, BS=block_size,
        M=max(16, triton.next_power_of_2(num_heads // num_kv_heads)), N=form.tile,
        HAS_SCALES=kv_scales is not None, HAS_WINDOW=window is not None, HAS_ROWS=plan.decode_rows is not None,
        HAS_SINKS=sinks is not None, SOFT_CAP=soft_cap, PRECISION=precision(q.dtype), STAGES=form.stages,
        PAIRS=form.pairs, SUMS_LAST=form.sums_last, JOINS=shares.fixed == 0, CHUNK=_CHUNK, EARLY=starts_early(),
        num_warps=form.warps, **early_launch(),
    )  # fmt: skip
    if shares.fixed:
        _join[(num_tokens, num_heads)](
            partial, log_sums, shares.spans, out, num_tokens, shares.num_rows, HQ=num_heads, D=head_dim, DP=padded,
            FIXED=shares.fixed, CHUNK=_CHUNK, EARLY=starts_early(), num_warps=2, **early_launch(),
        )  # fmt: skip
    return out
