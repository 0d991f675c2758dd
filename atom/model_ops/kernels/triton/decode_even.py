"""Decode attention with every sequence cut into the same number of parts, which a second kernel joins.

The number follows from the batch size alone, so that graphs and eager steps agree; a large batch is not cut, and there
is nothing to join. Knows no plan: lengths are the positions. Shapes: Td tokens, HQ/HK heads, D head size.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from atom.model_ops.kernels.triton.early import early_launch, take_turn
from atom.model_ops.kernels.triton.paged import attend_part, visible_keys


@triton.jit(do_not_specialize=["table_stride"])
def _decode(
    q, q_stride, cache, scales, tables, table_stride, rows, sinks, out, scale, window, positions, partial, log_sums,
    HQ: tl.constexpr, HK: tl.constexpr, D: tl.constexpr, DP: tl.constexpr, BS: tl.constexpr, M: tl.constexpr,
    N: tl.constexpr, PARTS: tl.constexpr, HAS_SCALES: tl.constexpr, HAS_WINDOW: tl.constexpr, HAS_ROWS: tl.constexpr,
    HAS_SINKS: tl.constexpr, SOFT_CAP: tl.constexpr, PRECISION: tl.constexpr, STAGES: tl.constexpr,
    EARLY: tl.constexpr,
):  # fmt: skip
    """Several parts go to partial [Td * HQ, PARTS, D] and log_sums [Td * HQ, PARTS], one goes to out."""
    take_turn(EARLY)
    token, head, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    first, length = visible_keys(positions, token, window, N, HAS_WINDOW)
    share = tl.cdiv(tl.cdiv(length - first, N), PARTS) * N
    start = first + part * share
    end = tl.minimum(start + share, length)
    heads, is_head, acc, total, largest = attend_part(
        q, q_stride, cache, scales, tables, table_stride, rows, sinks, token, head, part, start, end, length, scale,
        window, HQ, HK, D, DP, BS, M, N, HAS_SCALES, HAS_WINDOW, HAS_ROWS, HAS_SINKS, SOFT_CAP, PRECISION, STAGES,
    )  # fmt: skip
    d = tl.arange(0, DP)
    place = token.to(tl.int64) * HQ + heads
    if PARTS == 1:
        tl.store(out + place[:, None] * D + d[None, :], acc.to(out.dtype.element_ty), mask=is_head)
    else:
        tl.store(log_sums + place * PARTS + part, largest + tl.log2(total), mask=tl.arange(0, M) < HQ // HK)
        holds = start < end
        if HAS_SINKS:
            holds = holds | (part == 0)
        if holds:
            tl.store(partial + (place[:, None] * PARTS + part) * D + d[None, :], acc, mask=is_head)


@triton.jit
def _join(partial, log_sums, out, D: tl.constexpr, DP: tl.constexpr, PARTS: tl.constexpr, EARLY: tl.constexpr):
    """out [Td * HQ, D], a program a head: its parts, each weighed by its sum; those without keys hold nothing."""
    take_turn(EARLY)
    place = tl.program_id(0).to(tl.int64)
    parts = tl.arange(0, PARTS)
    d = tl.arange(0, DP)
    # All at once, used or not, since a value need not wait for its sum then; and past the first-level cache, since
    # nothing is read twice.
    sums = tl.load(log_sums + place * PARTS + parts, cache_modifier=".cg")
    at = partial + (place * PARTS + parts[:, None]) * D + d[None, :]
    values = tl.load(at, mask=(d < D)[None, :], other=0.0, cache_modifier=".cg")
    largest = tl.max(sums, axis=0)
    weights = tl.exp2(sums - tl.where(largest == float("-inf"), 0.0, largest))
    values = tl.where((sums > float("-inf"))[:, None], values, 0.0)
    total = tl.sum(weights, axis=0)
    joined = tl.sum(values * weights[:, None], axis=0) / tl.where(total == 0.0, 1.0, total)
    tl.store(out + place * D + d, joined.to(out.dtype.element_ty), mask=d < D)


def attend_evenly(
    q: torch.Tensor, out: torch.Tensor, positions: torch.Tensor, num_kv_heads: int, parts: int,
    tensors: tuple[Any, ...], constants: dict[str, Any],
) -> None:  # fmt: skip
    """Fill `out` from q [Td, HQ, D], sequences in so many parts. tensors and constants: what both ways take."""
    num_tokens, num_heads, head_dim = q.shape
    partial = log_sums = None
    if parts > 1:
        partial = torch.empty((num_tokens * num_heads, parts, head_dim), dtype=torch.float32, device=q.device)
        log_sums = torch.empty((num_tokens * num_heads, parts), dtype=torch.float32, device=q.device)
    _decode[(num_tokens, num_kv_heads, parts)](*tensors, positions, partial, log_sums, PARTS=parts, **constants)
    if parts > 1:
        _join[(num_tokens * num_heads,)](
            partial, log_sums, out, D=head_dim, DP=constants["DP"], PARTS=parts, EARLY=constants["EARLY"],
            num_warps=2, **early_launch(),
        )  # fmt: skip
