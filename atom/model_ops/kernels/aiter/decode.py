"""Decode attention by AITER: an assembled kernel over the shuffled layout, its Triton kernel over the flash layout.

Shapes: Td tokens, HQ/HK heads, D head size, NB blocks, BS block size.
"""

from __future__ import annotations

import torch

from atom.model_ops.kernels.aiter.flash import attend, scaled_by_head
from atom.model_ops.kernels.aiter.layout import is_shuffled, shuffled_views
from atom.model_ops.kernels.aiter.library import load
from atom.model_ops.kernels.aiter.limits import is_fp8, require_16_bits, require_assembled
from atom.model_ops.kernels.aiter.ones import ones
from atom.model_ops.kernels.aiter.plan import CachedRows, Plan

_assembled = load("aiter.pa_fwd_asm")

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
    if not is_shuffled(kv_cache):
        return attend(q, kv_cache, kv_scales, rows, scale, window, soft_cap, sinks)
    require_assembled(q.shape[1], kv_cache.shape[2], window, soft_cap, sinks)
    return _attend_shuffled(q, kv_cache, kv_scales, rows, scale)


def _attend_shuffled(
    q: torch.Tensor, kv_cache: torch.Tensor, kv_scales: torch.Tensor | None, rows: CachedRows, scale: float
) -> torch.Tensor:
    """The kernel scales by 1 / sqrt(D) and nothing else, so the queries carry what is missing."""
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
    _assembled(
        query, keys, values, rows.tables, rows.key_lens, rows.tables.stride(0),
        K_QScale=scales, V_QScale=scales, out_=out, high_precision=_PRECISION,
    )  # fmt: skip
    return scaled_by_head(out, kv_scales, 1).flatten(1)
