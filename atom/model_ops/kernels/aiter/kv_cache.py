"""The way of q, k and v from the projection into AITER's KV cache.

AITER of this version has no kernel that norms heads, rotates and writes the shuffled layout in one, so there are three;
the head norm is its RMSNorm with a weight of ones, and a product, since every head has a weight of its own.
Shapes: T tokens, HQ/HK heads, D head size, R rotary size.
"""

from __future__ import annotations

import torch

from atom.model_ops.kernels.aiter.layout import is_shuffled, shuffled_views
from atom.model_ops.kernels.aiter.library import load
from atom.model_ops.kernels.aiter.limits import is_fp8, require_16_bits
from atom.model_ops.kernels.aiter.ones import ones
from atom.model_ops.kernels.aiter.plan import Plan

_rms_norm = load("aiter.rms_norm")
_rotate = load("aiter.rope_cached_positions_2c_fwd_inplace")
_write_shuffled = load("aiter.reshape_and_cache")
_write_flash = load("aiter.reshape_and_cache_flash")

# Pairs (i, i + R/2), not (2i, 2i + 1).
_BY_HALVES = 0


def qkv_rope_write(
    qkv: torch.Tensor,
    qk_norm: torch.Tensor | None,
    eps: float,
    cos_sin: torch.Tensor,
    kv_cache: torch.Tensor,
    kv_scales: torch.Tensor | None,
    plan: Plan,
    num_heads: int,
    num_kv_heads: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """qkv [T, (HQ + 2 HK) * D] is normed and rotated in place; returns views q [T, HQ, D], k and v [T, HK, D]."""
    require_16_bits(qkv, "qkv_rope_write")
    num_rotated = num_heads + num_kv_heads
    heads = qkv.view(qkv.shape[0], num_rotated + num_kv_heads, -1)
    q, k, v = heads[:, :num_heads], heads[:, num_heads:num_rotated], heads[:, num_rotated:]
    if qk_norm is not None:
        _norm_heads(heads[:, :num_rotated], qk_norm, eps)
    cos, sin, places = plan.rotary(cos_sin)
    # Tokens along the first axis: along the second the kernel's grid would end at 65,535.
    _rotate(q[:, None], k[:, None], cos, sin, places, _BY_HALVES, reuse_freqs_front_part=True, nope_first=False)
    _write(k, v, kv_cache, kv_scales, plan)
    return q, k, v


def _norm_heads(heads: torch.Tensor, weight: torch.Tensor, eps: float) -> None:
    """heads [T, H, D] in place, weight [H, D]."""
    head_dim = heads.shape[2]
    rows = heads.reshape(-1, head_dim)
    normed = _rms_norm(rows, ones(head_dim, heads.dtype, heads.device), eps)
    torch.mul(normed.view(heads.shape), weight, out=heads)


def _write(
    k: torch.Tensor, v: torch.Tensor, kv_cache: torch.Tensor, kv_scales: torch.Tensor | None, plan: Plan
) -> None:
    """k and v [T, HK, D] into the step's slots. The kernels know one scale for all heads, so it is divided by here."""
    kind = "fp8" if is_fp8(kv_cache) else "auto"
    if kv_scales is not None:
        most = torch.finfo(kv_cache.dtype).max
        # Their conversion of what is too large for the type is not known.
        k, v = ((x / scale.unsqueeze(1)).clamp_(-most, most) for x, scale in zip((k, v), kv_scales, strict=True))
    if is_shuffled(kv_cache):
        _write_shuffled(k, v, *shuffled_views(kv_cache), plan.slot_mapping, kv_cache_dtype=kind, asm_layout=True)
    else:
        one = ones(1, torch.float32, k.device)
        _write_flash(k, v, kv_cache[0], kv_cache[1], plan.slot_mapping, kind, one, one)
