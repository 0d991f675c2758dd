"""Decode attention as it was: every sequence in the same number of parts. For a comparison; goes with its outcome."""

# The signatures of kernels are without types, as Triton has them.
# ruff: noqa: ANN001, ANN202

from __future__ import annotations

import torch
import triton
import triton.language as tl

from atom.model_ops.kernels.triton.decode import choose_form
from atom.model_ops.kernels.triton.early import early_launch, starts_early, take_turn
from atom.model_ops.kernels.triton.paged import LOG2_E, attend_part, precision, visible_keys
from atom.model_ops.kernels.triton.plan import Plan
from atom.model_ops.kernels.triton.shares import num_parts


@triton.jit
def _join_parts(partial, log_sums, out, place, D: tl.constexpr, DP: tl.constexpr, PARTS: tl.constexpr):
    """One head's row of `out` from its parts, each weighed by its sum; parts without keys hold nothing."""
    parts = tl.arange(0, PARTS)
    d = tl.arange(0, DP)
    # Past the first-level cache, which other programs' results do not reach; and all at once, used or not.
    sums = tl.load(log_sums + place * PARTS + parts, cache_modifier=".cg")
    at = partial + (place * PARTS + parts[:, None]) * D + d[None, :]
    values = tl.load(at, mask=(d < D)[None, :], other=0.0, cache_modifier=".cg")
    largest = tl.max(sums, axis=0)
    weights = tl.exp2(sums - tl.where(largest == float("-inf"), 0.0, largest))
    values = tl.where((sums > float("-inf"))[:, None], values, 0.0)
    total = tl.sum(weights, axis=0)
    joined = tl.sum(values * weights[:, None], axis=0) / tl.where(total == 0.0, 1.0, total)
    tl.store(out + place * D + d, joined.to(out.dtype.element_ty), mask=d < D)


@triton.jit(do_not_specialize=["table_stride"])
def _decode(
    q, q_stride, cache, scales, tables, table_stride, positions, rows, sinks, out, partial, log_sums, scale,
    window,
    HQ: tl.constexpr, HK: tl.constexpr, D: tl.constexpr, DP: tl.constexpr, BS: tl.constexpr, M: tl.constexpr,
    N: tl.constexpr, PARTS: tl.constexpr, HAS_SCALES: tl.constexpr, HAS_WINDOW: tl.constexpr, HAS_ROWS: tl.constexpr,
    HAS_SINKS: tl.constexpr, SOFT_CAP: tl.constexpr, PRECISION: tl.constexpr, STAGES: tl.constexpr,
    PAIRS: tl.constexpr, SUMS_LAST: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    take_turn(EARLY)
    token, head, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    first, length = visible_keys(positions, token, window, N, HAS_WINDOW)
    share = tl.cdiv(tl.cdiv(length - first, N), PARTS) * N
    start = first + part * share
    end = tl.minimum(start + share, length)
    heads, is_head, acc, total, largest = attend_part(
        q, q_stride, cache, scales, tables, table_stride, rows, sinks, token, head, part, start, end, length, scale,
        window, HQ, HK, D, DP, BS, M, N, HAS_SCALES, HAS_WINDOW, HAS_ROWS, HAS_SINKS, SOFT_CAP, PRECISION, STAGES,
        PAIRS, SUMS_LAST,
    )  # fmt: skip
    dtype: tl.constexpr = q.dtype.element_ty
    d = tl.arange(0, DP)
    place = token.to(tl.int64) * HQ + heads
    if PARTS == 1:
        tl.store(out + place[:, None] * D + d[None, :], acc.to(dtype), mask=is_head)
    else:
        tl.store(log_sums + place * PARTS + part, largest + tl.log2(total), mask=tl.arange(0, M) < HQ // HK)
        holds = start < end
        if HAS_SINKS:
            holds = holds | (part == 0)
        if holds:
            tl.store(partial + (place[:, None] * PARTS + part) * D + d[None, :], acc, mask=is_head)


@triton.jit
def _join(partial, log_sums, out, D: tl.constexpr, DP: tl.constexpr, PARTS: tl.constexpr, EARLY: tl.constexpr):
    """out [Td * HQ, D], a program a head."""
    take_turn(EARLY)
    _join_parts(partial, log_sums, out, tl.program_id(0).to(tl.int64), D, DP, PARTS)


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
    out = torch.empty((num_tokens, num_heads * head_dim), dtype=q.dtype, device=q.device)
    parts = num_parts(num_tokens, num_kv_heads)
    partial = log_sums = None
    if parts > 1:
        partial = torch.empty((num_tokens * num_heads, parts, head_dim), dtype=torch.float32, device=q.device)
        log_sums = torch.empty((num_tokens * num_heads, parts), dtype=torch.float32, device=q.device)
    padded = max(16, triton.next_power_of_2(head_dim))
    form = choose_form(q.dtype, padded, kv_scales is not None)
    _decode[(num_tokens, num_kv_heads, parts)](
        q, q.stride(0), kv_cache, kv_scales, plan.block_tables, plan.block_tables.stride(0), plan.positions,
        plan.decode_rows, sinks, out, partial, log_sums, scale * LOG2_E, window or 0,
        HQ=num_heads, HK=num_kv_heads, D=head_dim, DP=padded, BS=block_size,
        M=max(16, triton.next_power_of_2(num_heads // num_kv_heads)), N=form.tile, PARTS=parts,
        HAS_SCALES=kv_scales is not None, HAS_WINDOW=window is not None, HAS_ROWS=plan.decode_rows is not None,
        HAS_SINKS=sinks is not None, SOFT_CAP=soft_cap, PRECISION=precision(q.dtype), STAGES=form.stages,
        PAIRS=form.pairs, SUMS_LAST=form.sums_last, EARLY=starts_early(num_tokens), num_warps=form.warps,
        **early_launch(),
    )  # fmt: skip
    if parts > 1:
        _join[(num_tokens * num_heads,)](
            partial, log_sums, out, D=head_dim, DP=padded, PARTS=parts, EARLY=starts_early(num_tokens),
            num_warps=2, **early_launch(),
        )  # fmt: skip
    return out
