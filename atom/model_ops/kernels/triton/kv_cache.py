"""Triton's KV cache: its layout, and the way of q, k and v from the projection into it, in one kernel.

Layout paged_heads: [NB, 2, HK, BS, D], keys then values. What one program of the attention reads of a block, one head,
is one run of BS * D values. A float8 cache holds x / scale.
Shapes: T tokens, HQ/HK heads, D head size, R rotary size.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from atom.model_ops.kernels.triton.early import early_launch, starts_early, take_turn
from atom.model_ops.kernels.triton.plan import Plan

# Up to so many tokens a program takes one head, so that a small batch still fills the device.
_FEW_TOKENS = 64
_HEADS_A_PROGRAM = 4


def kv_cache_shape(num_blocks: int, block_size: int, num_kv_heads: int, head_dim: int) -> tuple[int, ...]:
    """[NB, 2, HK, BS, D]."""
    return (num_blocks, 2, num_kv_heads, block_size, head_dim)


@triton.jit
def _norm_rotate(
    x, heads, d, inside, weight, eps, cos_sin, position,
    D: tl.constexpr, R: tl.constexpr, HAS_NORM: tl.constexpr, dtype: tl.constexpr,
):  # fmt: skip
    """x points at a token's first head; the normed and rotated values [heads, D], float32."""
    half: tl.constexpr = R // 2
    partner = tl.where(d < half, d + half, tl.where(d < R, d - half, d))
    own = tl.load(x + heads[:, None] * D + d[None, :], mask=inside, other=0.0).to(tl.float32)
    other = tl.load(x + heads[:, None] * D + partner[None, :], mask=inside, other=0.0).to(tl.float32)
    if HAS_NORM:
        inverse = tl.rsqrt(tl.sum(own * own, axis=1) / D + eps)[:, None]
        own_weight = tl.load(weight + heads[:, None] * D + d[None, :], mask=inside, other=0.0).to(tl.float32)
        other_weight = tl.load(weight + heads[:, None] * D + partner[None, :], mask=inside, other=0.0).to(tl.float32)
        own = ((own * inverse).to(dtype).to(tl.float32) * own_weight).to(dtype).to(tl.float32)
        other = ((other * inverse).to(dtype).to(tl.float32) * other_weight).to(dtype).to(tl.float32)
    angle = tl.where(d < half, d, d - half)
    turned = d < R
    row = cos_sin + position * R
    cos = tl.load(row + angle, mask=turned, other=1.0).to(tl.float32)
    sin = tl.load(row + half + angle, mask=turned, other=0.0).to(tl.float32)
    sin = tl.where(d < half, -sin, sin)
    return own * cos[None, :] + other * sin[None, :]


@triton.jit
def _qkv_rope_write(
    qkv, qkv_stride, weight, eps, cos_sin, positions, slots, cache, scales, out,
    HQ: tl.constexpr, HK: tl.constexpr, D: tl.constexpr, DP: tl.constexpr, R: tl.constexpr, BS: tl.constexpr,
    HEADS: tl.constexpr, HAS_NORM: tl.constexpr, HAS_SCALES: tl.constexpr, LARGEST: tl.constexpr,
    ROUND_TRIP: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    take_turn(EARLY)
    token = tl.program_id(0).to(tl.int64)
    heads = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    d = tl.arange(0, DP)
    dtype: tl.constexpr = qkv.dtype.element_ty
    x = qkv + token * qkv_stride
    in_head = (d < D)[None, :]
    is_turned = (heads < HQ + HK)[:, None] & in_head
    # A padding row has position -1 and slot -1.
    position = tl.maximum(tl.load(positions + token), 0)
    slot = tl.load(slots + token).to(tl.int64)
    turned = _norm_rotate(x, heads, d, is_turned, weight, eps, cos_sin, position, D, R, HAS_NORM, dtype)
    own_place = out + (token * (HQ + HK) + heads[:, None]) * D + d[None, :]
    is_final = is_turned
    if ROUND_TRIP:
        is_final = is_turned & (heads < tl.where(slot < 0, HQ + HK, HQ))[:, None]
    tl.store(own_place, turned.to(dtype), mask=is_final)
    if slot >= 0:
        plane = heads - HQ
        is_value = (heads >= HQ + HK)[:, None] & (heads < HQ + 2 * HK)[:, None] & in_head
        values = tl.load(x + heads[:, None] * D + d[None, :], mask=is_value, other=0.0).to(tl.float32)
        kept = tl.where((heads < HQ + HK)[:, None], turned.to(dtype).to(tl.float32), values)
        is_kept = (heads >= HQ)[:, None] & (heads < HQ + 2 * HK)[:, None] & in_head
        if HAS_SCALES:
            is_plane = (plane >= 0) & (plane < 2 * HK)
            scale = tl.load(scales + plane, mask=is_plane, other=1.0)[:, None]
            kept = tl.clamp(kept / scale, -LARGEST, LARGEST, propagate_nan=tl.PropagateNan.ALL)
        stored = kept.to(cache.dtype.element_ty)
        where = ((slot // BS) * (2 * HK) + plane) * BS + slot % BS
        tl.store(cache + where[:, None] * D + d[None, :], stored, mask=is_kept)
        if ROUND_TRIP:
            back = (stored.to(tl.float32) * scale).to(dtype)
            tl.store(own_place, back, mask=is_kept & is_turned)
            tl.store(x + heads[:, None] * D + d[None, :], back, mask=is_value)


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
    """qkv [T, (HQ + 2 HK) * D] to q [T, HQ, D] and k [T, HK, D], views of a new tensor, and v, a view of qkv.

    With an fp8 cache, k and v of a step with prefill rows come back as the cache rounds them: a prompt's tokens see the
    same keys and values however the prompt is cut into chunks.
    """
    num_tokens = qkv.shape[0]
    head_dim = kv_cache.shape[-1]
    turned = num_heads + num_kv_heads
    out = torch.empty((num_tokens, turned, head_dim), dtype=qkv.dtype, device=qkv.device)
    heads = 1 if num_tokens <= _FEW_TOKENS else _HEADS_A_PROGRAM
    if num_tokens:
        _qkv_rope_write[(num_tokens, triton.cdiv(turned + num_kv_heads, heads))](
            qkv, qkv.stride(0), qk_norm, eps, cos_sin, plan.positions, plan.slot_mapping, kv_cache, kv_scales, out,
            HQ=num_heads, HK=num_kv_heads, D=head_dim, DP=triton.next_power_of_2(head_dim), R=cos_sin.shape[1],
            BS=kv_cache.shape[3], HEADS=heads, HAS_NORM=qk_norm is not None, HAS_SCALES=kv_scales is not None,
            LARGEST=0.0 if kv_scales is None else torch.finfo(kv_cache.dtype).max,
            ROUND_TRIP=kv_scales is not None and plan.prefill is not None,
            EARLY=starts_early(), num_warps=1 if heads == 1 else 4, **early_launch(),
        )  # fmt: skip
    values = qkv.unflatten(-1, (turned + num_kv_heads, head_dim))[:, turned:]
    return out[:, :num_heads], out[:, num_heads:], values
