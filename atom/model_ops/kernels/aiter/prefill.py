"""Prefill attention by AITER.

Prompts with nothing in the cache take its flash attention over their own keys and values. Others read the cache: from
the flash layout directly, from the shuffled one through a copy in which the rows lie one behind the other, since no
prefill kernel of this version reads pages of 16 tokens there. So does an fp8 cache, that a prompt's result may not
depend on how it was cut. Shapes: Tp tokens, Lp keys of all rows, HQ/HK heads, D head size.
"""

from __future__ import annotations

import torch

from atom.model_ops.kernels.aiter.flash import attend, scaled_by_head, window_size
from atom.model_ops.kernels.aiter.layout import is_shuffled, read_shuffled
from atom.model_ops.kernels.aiter.library import load
from atom.model_ops.kernels.aiter.limits import is_fp8, require_16_bits, require_assembled
from atom.model_ops.kernels.aiter.plan import Plan, PrefillRows

_flash_attention = load("aiter.flash_attn_varlen_func")

_MAX_HEAD = 256


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
    require_16_bits(q, "attention_prefill")
    rows = plan.prefill
    assert rows is not None
    is_own = rows.is_fresh and not is_fp8(kv_cache)
    if is_shuffled(kv_cache):
        # An engine's first step is a prefill: what decodes can not do is said here too.
        require_assembled(q.shape[1], kv_cache.shape[2], window, soft_cap, sinks)
        if not is_own:
            k, v = _cached(kv_cache, kv_scales, plan, q.dtype)
        return _attend_packed(q, k, v, rows, scale, window)
    if is_own and _has_flash(q, window, soft_cap, sinks):
        return _attend_packed(q, k, v, rows, scale, window)
    return attend(q, kv_cache, kv_scales, rows.cached, scale, window, soft_cap, sinks)


def _has_flash(q: torch.Tensor, window: int | None, soft_cap: float, sinks: torch.Tensor | None) -> bool:
    """Whether the flash attention does it right.

    Its assembled kernel is chosen without a look at the soft cap, and takes a window of one key for none.
    """
    head_dim = q.shape[2]
    return head_dim % 8 == 0 and head_dim <= _MAX_HEAD and window != 1 and soft_cap == 0.0 and sinks is None


def _attend_packed(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rows: PrefillRows, scale: float, window: int | None
) -> torch.Tensor:
    """Keys and values of the rows one behind the other, [Lp, HK, D]; [Tp, HQ * D]."""
    out = _flash_attention(
        q, k, v,
        cu_seqlens_q=rows.cached.query_bounds, cu_seqlens_k=rows.key_bounds,
        max_seqlen_q=rows.cached.max_query_len, max_seqlen_k=rows.cached.max_key_len,
        softmax_scale=scale, causal=True, window_size=window_size(window),
    )  # fmt: skip
    return out.flatten(1)


def _cached(
    kv_cache: torch.Tensor, kv_scales: torch.Tensor | None, plan: Plan, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    """Keys and values [Lp, HK, D] of the rows, from a shuffled cache, in `dtype`."""
    keys, values = (x.to(dtype) for x in read_shuffled(kv_cache, plan.prefill_slots()))
    return scaled_by_head(keys, kv_scales, 0), scaled_by_head(values, kv_scales, 1)
