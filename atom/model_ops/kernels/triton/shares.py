"""Decode attention in shares of equal length, for batches of very unequal sequences.

The keys of all sequences together are cut into shares, so that a long sequence among short ones is worked on by many
programs. The cut is made on the device, once a step and window, and the number of programs depends on the batch size
alone, so that the launch can be captured. `ATOM_DECODE_SPLITS=balanced` chooses it; decode.py cuts every sequence into
the same number of parts. Shapes: Td tokens, HQ/HK heads, D head size, W items of work.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from atom.model_ops.kernels.triton.paged import LOG2_E, attend_part, precision, visible_keys
from atom.model_ops.kernels.triton.plan import Plan

# Programs, all heads together, that the keys are shared among beyond one for every sequence: twice what keeps an H200
# reading, since a share ends when it ends.
_WANTED_PROGRAMS = 1024


@dataclass(frozen=True, slots=True)
class Shares:
    """items [W, 2] int32: token and part, -1 for no work. firsts [Td + 2] int32: each token's first item, the number of
    items, and the tiles of keys in a share.
    """

    items: torch.Tensor
    firsts: torch.Tensor


@triton.jit(do_not_specialize=["num_tokens", "num_items"])
def _share_out(
    positions, items, firsts, num_tokens, num_shares, num_items, window,
    TP: tl.constexpr, N: tl.constexpr, CHUNK: tl.constexpr, HAS_WINDOW: tl.constexpr,
):  # fmt: skip
    """A program a token; each works out the cut of all, which is cheaper than waiting for another to do it."""
    token = tl.program_id(0)
    every = tl.arange(0, TP)
    lengths = (tl.load(positions + every, mask=every < num_tokens, other=-1) + 1).to(tl.int32)
    tiles = tl.cdiv(lengths, N)
    if HAS_WINDOW:
        tiles -= tl.maximum(lengths - window, 0) // N
    share = tl.maximum(tl.cdiv(tl.sum(tiles, axis=0), num_shares), 1)
    counts = tl.cdiv(tiles, share)
    first = tl.sum(tl.where(every < token, counts, 0), axis=0)
    count = tl.sum(tl.where(every == token, counts, 0), axis=0)
    tl.store(firsts + token, first)
    for base in tl.range(0, count, CHUNK):
        parts = base + tl.arange(0, CHUNK)
        tl.store(items + (first + parts) * 2, token, mask=parts < count)
        tl.store(items + (first + parts) * 2 + 1, parts, mask=parts < count)
    if token == num_tokens - 1:
        tl.store(firsts + num_tokens, first + count)
        tl.store(firsts + num_tokens + 1, share)
        for base in tl.range(first + count, num_items, CHUNK):
            idle = base + tl.arange(0, CHUNK)
            tl.store(items + idle * 2, -1, mask=idle < num_items)


@triton.jit(do_not_specialize=["num_tokens", "table_stride"])
def _decode_share(
    q, q_stride, cache, scales, tables, table_stride, positions, rows, items, firsts, num_tokens, sinks, out, partial,
    log_sums, scale, window,
    HQ: tl.constexpr, HK: tl.constexpr, D: tl.constexpr, DP: tl.constexpr, BS: tl.constexpr, M: tl.constexpr,
    N: tl.constexpr, HAS_SCALES: tl.constexpr, HAS_WINDOW: tl.constexpr, HAS_ROWS: tl.constexpr,
    HAS_SINKS: tl.constexpr, SOFT_CAP: tl.constexpr, PRECISION: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """partial [W, HQ, D] and log_sums [W, HQ]; a sequence of one share goes to `out` directly."""
    item, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    token = tl.load(items + item * 2)
    if token >= 0:
        part = tl.load(items + item * 2 + 1)
        share = tl.load(firsts + num_tokens + 1) * N
        first, length = visible_keys(positions, token, window, N, HAS_WINDOW)
        start = first + part * share
        end = tl.minimum(start + share, length)
        heads, is_head, acc, total, largest = attend_part(
            q, q_stride, cache, scales, tables, table_stride, rows, sinks, token, head, part, start, end, length, scale,
            window, HQ, HK, D, DP, BS, M, N, HAS_SCALES, HAS_WINDOW, HAS_ROWS, HAS_SINKS, SOFT_CAP, PRECISION, STAGES,
        )  # fmt: skip
        dtype: tl.constexpr = q.dtype.element_ty
        d = tl.arange(0, DP)
        if tl.load(firsts + token + 1) - tl.load(firsts + token) == 1:
            place = token.to(tl.int64) * HQ + heads
            tl.store(out + place[:, None] * D + d[None, :], acc.to(dtype), mask=is_head)
        else:
            place = item * HQ + heads
            tl.store(log_sums + place, largest + tl.log2(total), mask=tl.arange(0, M) < HQ // HK)
            tl.store(partial + place[:, None] * D + d[None, :], acc, mask=is_head)


@triton.jit
def _join_shares(
    partial, log_sums, firsts, out, HQ: tl.constexpr, D: tl.constexpr, DP: tl.constexpr, PP: tl.constexpr
):  # fmt: skip
    """out [Td, HQ, D] of the tokens with several shares, each weighed by its sum, and zeros of those with none."""
    token, head = tl.program_id(0), tl.program_id(1)
    first, end = tl.load(firsts + token), tl.load(firsts + token + 1)
    d = tl.arange(0, DP)
    if end - first != 1:
        acc = tl.zeros((DP,), tl.float32)
        total = 0.0
        largest = float("-inf")
        for base in tl.range(first, end, PP):
            items = (base + tl.arange(0, PP)).to(tl.int64)
            sums = tl.load(log_sums + items * HQ + head, mask=items < end, other=float("-inf"))
            found = tl.maximum(largest, tl.max(sums, axis=0))
            weights = tl.exp2(sums - found)
            mask = (items < end)[:, None] & (d < D)[None, :]
            values = tl.load(partial + (items[:, None] * HQ + head) * D + d[None, :], mask=mask, other=0.0)
            decay = tl.exp2(largest - found)
            acc = acc * decay + tl.sum(values * weights[:, None], axis=0)
            total = total * decay + tl.sum(weights, axis=0)
            largest = found
        joined = acc / tl.where(total == 0.0, 1.0, total)
        tl.store(out + (token.to(tl.int64) * HQ + head) * D + d, joined.to(out.dtype.element_ty), mask=d < D)


def shares_among(num_kv_heads: int) -> int:
    """Shares that all keys are cut into, one more for every sequence at most."""
    return triton.cdiv(_WANTED_PROGRAMS, num_kv_heads)


def share_out(positions: torch.Tensor, num_tokens: int, num_kv_heads: int, tile: int, window: int | None) -> Shares:
    """The work of the first num_tokens tokens, by positions [T]; one kernel."""
    num_shares = shares_among(num_kv_heads)
    num_items = num_tokens + num_shares
    items = torch.empty((num_items, 2), dtype=torch.int32, device=positions.device)
    firsts = torch.empty(num_tokens + 2, dtype=torch.int32, device=positions.device)
    _share_out[(num_tokens,)](
        positions, items, firsts, num_tokens, num_shares, num_items, window or 0,
        TP=triton.next_power_of_2(num_tokens), N=tile, CHUNK=128, HAS_WINDOW=window is not None, num_warps=4,
    )  # fmt: skip
    return Shares(items, firsts)


def attend_in_shares(
    q: torch.Tensor,
    kv_cache: torch.Tensor,
    kv_scales: torch.Tensor | None,
    plan: Plan,
    scale: float,
    window: int | None,
    soft_cap: float,
    sinks: torch.Tensor | None,
) -> torch.Tensor:
    """As attention_decode."""
    num_tokens, num_heads, head_dim = q.shape
    num_kv_heads = kv_cache.shape[2]
    padded = max(16, triton.next_power_of_2(head_dim))
    tile = 32 if q.dtype == torch.float32 or padded > 128 else 64
    shares: Shares = plan.keep(
        (num_tokens, num_kv_heads, tile, window),
        lambda: share_out(plan.positions, num_tokens, num_kv_heads, tile, window),
    )
    num_items = len(shares.items)
    out = torch.empty((num_tokens, num_heads * head_dim), dtype=q.dtype, device=q.device)
    partial = torch.empty((num_items, num_heads, head_dim), dtype=torch.float32, device=q.device)
    log_sums = torch.empty((num_items, num_heads), dtype=torch.float32, device=q.device)
    _decode_share[(num_items, num_kv_heads)](
        q, q.stride(0), kv_cache, kv_scales, plan.block_tables, plan.block_tables.stride(0), plan.positions,
        plan.decode_rows, shares.items, shares.firsts, num_tokens, sinks, out, partial, log_sums, scale * LOG2_E,
        window or 0,
        HQ=num_heads, HK=num_kv_heads, D=head_dim, DP=padded, BS=kv_cache.shape[3],
        M=max(16, triton.next_power_of_2(num_heads // num_kv_heads)), N=tile, HAS_SCALES=kv_scales is not None,
        HAS_WINDOW=window is not None, HAS_ROWS=plan.decode_rows is not None, HAS_SINKS=sinks is not None,
        SOFT_CAP=soft_cap, PRECISION=precision(q.dtype), STAGES=3, num_warps=4,
    )  # fmt: skip
    _join_shares[(num_tokens, num_heads)](
        partial, log_sums, shares.firsts, out, HQ=num_heads, D=head_dim, DP=padded, PP=16, num_warps=2
    )
    return out
