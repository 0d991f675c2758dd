"""Prefill attention: a program a tile of queries and query head, over the keys in the paged cache.

Fresh prompts in 16 bits take torch's flash attention on CUDA, which reads the rows' own keys and values as they lie in
the step; rows with earlier tokens in the cache, other types and other devices take the kernel here.
Shapes: Tp tokens, HQ/HK heads, D head size.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from atom.model_ops.kernels.triton.paged import LOG2_E, load_tile, precision, softmax_step
from atom.model_ops.kernels.triton.plan import Plan, PrefillRows
from atom.model_ops.kernels.triton.sizes import next_power_of_2
from atom.model_ops.kernels.triton.steps import capped, product


@triton.jit(do_not_specialize=["table_stride"])
def _prefill(
    q, q_stride, cache, scales, tables, table_stride, tiles, sinks, out, scale, window,
    HQ: tl.constexpr, HK: tl.constexpr, D: tl.constexpr, DP: tl.constexpr, BS: tl.constexpr, M: tl.constexpr,
    N: tl.constexpr, HAS_SCALES: tl.constexpr, HAS_WINDOW: tl.constexpr, HAS_SINKS: tl.constexpr,
    SOFT_CAP: tl.constexpr, PRECISION: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    tile = tiles + tl.program_id(1) * 4
    first, count, row, position = tl.load(tile), tl.load(tile + 1), tl.load(tile + 2), tl.load(tile + 3)
    query_head = tl.program_id(0)
    head = query_head // (HQ // HK)
    members = tl.arange(0, M)
    d = tl.arange(0, DP)
    tokens = (first + members).to(tl.int64)
    mask = (members < count)[:, None] & (d < D)[None, :]
    dtype: tl.constexpr = q.dtype.element_ty
    query = tl.load(q + tokens[:, None] * q_stride + query_head * D + d[None, :], mask=mask, other=0.0)
    table = tables + row.to(tl.int64) * table_stride
    held: tl.constexpr = tl.float16 if HAS_SCALES and dtype == tl.bfloat16 else dtype
    if HAS_SCALES:
        query = (query.to(tl.float32) * (scale * tl.load(scales + head))).to(held)
        scale = 1.0
    end = position + count
    # Every query of the tile sees the keys up to the first one's position: whole tiles below need no mask.
    start = 0
    whole = (position + 1) // N * N
    if HAS_WINDOW:
        start = tl.maximum(position - window + 1, 0) // N * N
        whole = start
    acc = tl.zeros((M, DP), tl.float32)
    total = tl.zeros((M,), tl.float32)
    largest = tl.full((M,), float("-inf"), tl.float32)
    if HAS_SINKS:
        # A sink is a key that has been seen: of value zero, in units of log2 as all scores.
        largest = tl.full((M,), 1.4426950408889634, tl.float32) * tl.load(sinks + query_head)
        total += 1.0
    for base in tl.range(start, whole, N, num_stages=STAGES):
        k, v = load_tile(cache, table, head, base + tl.arange(0, N), end, d, HK, BS, D, held)
        scores = capped(product(query, tl.trans(k), PRECISION) * scale, SOFT_CAP)
        acc, total, largest = softmax_step(scores, v, acc, total, largest, PRECISION)
    queries = (position + members)[:, None]
    for base in tl.range(whole, end, N, num_stages=1):
        keys = base + tl.arange(0, N)
        k, v = load_tile(cache, table, head, keys, end, d, HK, BS, D, held)
        scores = capped(product(query, tl.trans(k), PRECISION) * scale, SOFT_CAP)
        visible = keys[None, :] <= queries
        if HAS_WINDOW:
            visible = visible & (keys[None, :] > queries - window)
        scores = tl.where(visible, scores, float("-inf"))
        acc, total, largest = softmax_step(scores, v, acc, total, largest, PRECISION)
    if HAS_SCALES:
        acc = acc * tl.load(scales + HK + head)
    acc = acc / tl.where(total == 0.0, 1.0, total)[:, None]
    tl.store(out + (tokens[:, None] * HQ + query_head) * D + d[None, :], acc.to(dtype), mask=mask)


def attention_prefill(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    kv_cache: torch.Tensor,
    kv_scales: torch.Tensor | None,
    plan: Plan,
    scale: float,
    window: int | None,
    soft_cap: float,
    sinks: torch.Tensor | None,
) -> torch.Tensor:
    """q [Tp, HQ, D], k and v [Tp, HK, D] of the prefill rows; returns [Tp, HQ * D]."""
    rows = plan.prefill
    assert rows is not None
    if isinstance(rows, PrefillRows) and rows.is_fresh and soft_cap == 0.0 and sinks is None and _has_flash(q):
        return _flash(q, k, v, rows, scale, window)
    num_tokens, num_heads, head_dim = q.shape
    out = torch.empty((num_tokens, num_heads * head_dim), dtype=q.dtype, device=q.device)
    padded = max(16, next_power_of_2(head_dim))
    is_small = q.dtype == torch.float32 or padded > 128
    queries, keys = (32, 32) if is_small else (128, 64)
    tiles = rows.tiles(queries)
    _prefill[(num_heads, tiles.shape[0])](
        q, q.stride(0), kv_cache, kv_scales, plan.block_tables, plan.block_tables.stride(0), tiles, sinks, out,
        scale * LOG2_E, window or 0,
        HQ=num_heads, HK=kv_cache.shape[2], D=head_dim, DP=padded, BS=kv_cache.shape[3], M=queries, N=keys,
        HAS_SCALES=kv_scales is not None, HAS_WINDOW=window is not None, HAS_SINKS=sinks is not None,
        SOFT_CAP=soft_cap, PRECISION=precision(q.dtype), STAGES=2 if is_small else 3, num_warps=4 if is_small else 8,
    )  # fmt: skip
    return out


def _has_flash(q: torch.Tensor) -> bool:
    """Whether torch's flash attention takes these queries: CUDA, 16 bits, head sizes up to 256 in steps of 8."""
    if q.device.type != "cuda" or torch.version.hip is not None or q.dtype not in (torch.bfloat16, torch.float16):
        return False
    return q.shape[2] <= 256 and q.shape[2] % 8 == 0


def _flash(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rows: PrefillRows, scale: float, window: int | None
) -> torch.Tensor:
    longest, bounds = int(rows.lens.max()), rows.bounds()
    left = None if window is None else window - 1
    right = None if window is None else 0
    found = torch.ops.aten._flash_attention_forward(
        q, k, v, bounds, bounds, longest, longest, 0.0, True, False,
        scale=scale, window_size_left=left, window_size_right=right,
    )  # fmt: skip
    return found[0].flatten(1)
