"""Attention over the flash layout by AITER's Triton kernel, and what it shares with the other kernels.

No kernel takes a scale for each head of an fp8 cache, but scores and values are linear in it: the queries carry the
scales of the keys, the result those of the values. Shapes: T tokens, B rows, HQ/HK heads, D head size.
"""

from __future__ import annotations

import torch

from atom.model_ops.kernels.aiter.library import load
from atom.model_ops.kernels.aiter.limits import is_fp8
from atom.model_ops.kernels.aiter.ones import ones
from atom.model_ops.kernels.aiter.plan import CachedRows

_attention = load("aiter.ops.triton.unified_attention.unified_attention")

# Told of no more keys than these, it does not split them, and looks at no other number to know how many there are.
_UNSPLIT = 512


def attend(
    q: torch.Tensor,
    kv_cache: torch.Tensor,
    kv_scales: torch.Tensor | None,
    rows: CachedRows,
    scale: float,
    window: int | None,
    soft_cap: float,
    sinks: torch.Tensor | None,
) -> torch.Tensor:
    """q [T, HQ, D] over the cached keys of its rows, its own among them; returns [T, HQ * D]."""
    is_fp8(kv_cache)  # refuses a type that the kernel would misread
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    one = ones(1, torch.float32, q.device)
    head_dim, max_key_len = q.shape[2], rows.max_key_len
    if head_dim & (head_dim - 1):
        # What joins split keys does not compile for heads that are no power of two.
        max_key_len = min(max_key_len, _UNSPLIT)
    _attention(
        scaled_by_head(q, kv_scales, 0), kv_cache[0], kv_cache[1], out,
        cu_seqlens_q=rows.query_bounds, max_seqlen_q=rows.max_query_len,
        seqused_k=rows.key_lens, max_seqlen_k=max_key_len, softmax_scale=scale, causal=True,
        window_size=window_size(window), block_table=rows.tables, softcap=soft_cap,
        q_descale=None, k_descale=one, v_descale=one, sinks=sinks,
    )  # fmt: skip
    return scaled_by_head(out, kv_scales, 1).flatten(1)


def window_size(window: int | None) -> tuple[int, int]:
    """A window as AITER counts it: keys before the query's own, and after it; -1 is all.

    None after it, though attention is causal anyway: where every row is one query the flash attention forgets that, and
    without a limit on either side it would first compile another module.
    """
    return (-1 if window is None else window - 1, 0)


def scaled_by_head(x: torch.Tensor, kv_scales: torch.Tensor | None, which: int) -> torch.Tensor:
    """x [T, H, D] times the scale of each head's keys (which 0) or values (1), scales [2, HK]; x without scales.

    H is HQ or HK.
    """
    if kv_scales is None:
        return x
    by_head = kv_scales[which].repeat_interleave(x.shape[1] // kv_scales.shape[1])
    return x * by_head.to(x.dtype).unsqueeze(1)
