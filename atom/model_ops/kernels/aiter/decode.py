"""Decode attention by AITER: an assembled kernel over the shuffled layout, its Triton kernel over the flash layout.

The assembled kernel scales by 1 / sqrt(D) and neither kernel takes a scale for each head of an fp8 cache. Both are
linear, so the queries carry whatever the scores lack, and the result carries the scales of the values.
Shapes: Td tokens, HQ/HK heads, D head size.
"""

from __future__ import annotations

import torch

from atom.model_ops.kernels.aiter.kv_cache import ones
from atom.model_ops.kernels.aiter.layout import is_shuffled, shuffled_views
from atom.model_ops.kernels.aiter.library import load
from atom.model_ops.kernels.aiter.limits import is_fp8, require_16_bits, require_assembled
from atom.model_ops.kernels.aiter.plan import DecodeRows, Plan

_assembled = load("aiter.pa_fwd_asm")
_unified = load("aiter.ops.triton.unified_attention.unified_attention")

# The kernels that do no more than the type needs; 1, the default, takes any of them.
_PRECISION = 0


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
    require_16_bits(q, "attention_decode")
    rows = plan.decode
    assert rows is not None
    if is_shuffled(kv_cache):
        require_assembled(q.shape[1], kv_cache.shape[2], window, soft_cap, sinks)
        out = _attend_shuffled(q, kv_cache, kv_scales, rows, scale)
    else:
        out = attend_flash(
            scaled_by_head(q, kv_scales, 0), kv_cache, rows.bounds, 1, rows.lens, rows.max_len, rows.tables,
            scale, window, soft_cap, sinks,
        )  # fmt: skip
    return scaled_by_head(out, kv_scales, 1).flatten(1)


def _attend_shuffled(
    q: torch.Tensor, kv_cache: torch.Tensor, kv_scales: torch.Tensor | None, rows: DecodeRows, scale: float
) -> torch.Tensor:
    """[Td, HQ, D], without the values' scales."""
    own_scale = q.shape[2] ** -0.5
    query = scaled_by_head(q, kv_scales, 0)
    if scale != own_scale:
        query = query * (scale / own_scale)
    keys, values = shuffled_views(kv_cache)
    scales = None
    if is_fp8(kv_cache):
        # The kernels of fp8 caches ask for a scale a token and head, [NB, HK, BS]; the same ones serve every layer.
        scales = ones(keys.shape[0] * keys.shape[1] * keys.shape[3], torch.float32, q.device)
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    tables = rows.tables
    _assembled(
        query, keys, values, tables, rows.lens, tables.stride(0),
        K_QScale=scales, V_QScale=scales, out_=out, high_precision=_PRECISION,
    )  # fmt: skip
    return out


def attend_flash(
    q: torch.Tensor,
    kv_cache: torch.Tensor,
    query_bounds: torch.Tensor,
    max_query_len: int,
    key_lens: torch.Tensor,
    max_key_len: int,
    tables: torch.Tensor,
    scale: float,
    window: int | None,
    soft_cap: float,
    sinks: torch.Tensor | None,
) -> torch.Tensor:
    """q [T, HQ, D] of rows that end in the cache, which has the flash layout; [T, HQ, D] without the values' scales.

    query_bounds [B + 1], key_lens [B] and tables [B, M] are int32.
    """
    is_fp8(kv_cache)  # refuses a type that the kernel would misread
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    one = ones(1, torch.float32, q.device)
    _unified(
        q, kv_cache[0], kv_cache[1], out,
        cu_seqlens_q=query_bounds, max_seqlen_q=max_query_len, seqused_k=key_lens, max_seqlen_k=max_key_len,
        softmax_scale=scale, causal=True, window_size=window_size(window), block_table=tables,
        softcap=soft_cap, q_descale=None, k_descale=one, v_descale=one, sinks=sinks,
    )  # fmt: skip
    return out


def window_size(window: int | None) -> tuple[int, int]:
    """A window as AITER counts it: keys before the query's own, and after it; -1 is all."""
    return (-1, -1) if window is None else (window - 1, 0)


def scaled_by_head(x: torch.Tensor, kv_scales: torch.Tensor | None, which: int) -> torch.Tensor:
    """x [T, HQ, D] times the scale of each head's keys (which 0) or values (1), scales [2, HK]; x without scales."""
    if kv_scales is None:
        return x
    by_head = kv_scales[which].repeat_interleave(x.shape[1] // kv_scales.shape[1])
    return x * by_head.to(x.dtype).unsqueeze(1)
