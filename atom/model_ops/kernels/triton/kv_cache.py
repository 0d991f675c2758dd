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
from atom.model_ops.kernels.triton.sizes import next_power_of_2

# Up to so many tokens a program takes one head, so that a small batch still fills the device.
_FEW_TOKENS = 64


def kv_cache_shape(num_blocks: int, block_size: int, num_kv_heads: int, head_dim: int) -> tuple[int, ...]:
    """[NB, 2, HK, BS, D]."""
    return (num_blocks, 2, num_kv_heads, block_size, head_dim)


@triton.jit
def _part(heads, count, start, D: tl.constexpr, SIZE: tl.constexpr, P: tl.constexpr):
    """Where SIZE values of each head lie, from its value `start` on, as offsets [heads, P]; and which there are."""
    d = tl.arange(0, P)
    return heads[:, None] * D + (start + d)[None, :], (heads < count)[:, None] & (d < SIZE)[None, :]


@triton.jit
def _normed(values, inverse, weight, at, inside, HAS_NORM: tl.constexpr):
    """In float32: what is stored is rounded once, when it has been rotated."""
    if HAS_NORM:
        values = values * inverse * tl.load(weight + at, mask=inside, other=0.0).to(tl.float32)
    return values


@triton.jit
def _keep(
    values, inside, start, heads, slot, cache, scales,
    HQ: tl.constexpr, HK: tl.constexpr, D: tl.constexpr, BS: tl.constexpr, HAS_SCALES: tl.constexpr,
    LARGEST: tl.constexpr,
):  # fmt: skip
    """Write values [heads, P], each head's from `start` on, into the cache where the token has a slot.

    heads [heads] count query heads, which are not written, then those of keys, then those of values. Returns what is
    read again.
    """
    plane = heads - HQ
    is_kept = (plane >= 0) & (plane < tl.where(slot >= 0, 2 * HK, 0))
    kept = values
    if HAS_SCALES:
        scale = tl.load(scales + plane, mask=is_kept, other=1.0)[:, None]
        kept = tl.clamp(values / scale, -LARGEST, LARGEST, propagate_nan=tl.PropagateNan.ALL)
    stored = kept.to(cache.dtype.element_ty)
    where = ((slot // BS) * (2 * HK) + plane) * BS + slot % BS
    d = start + tl.arange(0, values.shape[1])
    tl.store(cache + where[:, None] * D + d[None, :], stored, mask=inside & is_kept[:, None])
    back = stored.to(tl.float32)
    if HAS_SCALES:
        back = tl.where(is_kept[:, None], back * scale, values)
    return back


@triton.jit
def _halves(x, heads, count, D: tl.constexpr, R: tl.constexpr, P: tl.constexpr):
    """What of a token's heads is rotated: first and second values [heads, P] of the pairs."""
    at, inside = _part(heads, count, 0, D, R // 2, P)
    return tl.load(x + at, mask=inside, other=0.0), tl.load(x + at + R // 2, mask=inside, other=0.0)


@triton.jit
def _turn(
    first, second, x, heads, count, weight, eps, cos, sin, slot, cache, scales, out,
    HQ: tl.constexpr, HK: tl.constexpr, D: tl.constexpr, R: tl.constexpr, BS: tl.constexpr, HAS_NORM: tl.constexpr,
    HAS_SCALES: tl.constexpr, LARGEST: tl.constexpr, ROUND_TRIP: tl.constexpr, KEEPS: tl.constexpr, P: tl.constexpr,
    REST: tl.constexpr,
):  # fmt: skip
    """Norm and rotate `heads` below `count` of a token, from x to out; KEEPS: and into the cache. cos, sin [P].

    first, second: as `_halves` loaded them.
    """
    dtype: tl.constexpr = x.dtype.element_ty
    first_at, inside = _part(heads, count, 0, D, R // 2, P)
    second_at = first_at + R // 2
    first, second = first.to(tl.float32), second.to(tl.float32)
    squares = tl.sum(first * first + second * second, axis=1)
    if R < D:
        rest_at, rest_inside = _part(heads, count, R, D, D - R, REST)
        rest = tl.load(x + rest_at, mask=rest_inside, other=0.0).to(tl.float32)
        squares += tl.sum(rest * rest, axis=1)
    inverse = tl.rsqrt(squares / D + eps)[:, None]
    first = _normed(first, inverse, weight, first_at, inside, HAS_NORM)
    second = _normed(second, inverse, weight, second_at, inside, HAS_NORM)
    turned = (first * cos[None, :] - second * sin[None, :]).to(dtype).to(tl.float32)
    second = (second * cos[None, :] + first * sin[None, :]).to(dtype).to(tl.float32)
    first = turned
    if KEEPS:
        back_first = _keep(first, inside, 0, heads, slot, cache, scales, HQ, HK, D, BS, HAS_SCALES, LARGEST)
        back_second = _keep(second, inside, R // 2, heads, slot, cache, scales, HQ, HK, D, BS, HAS_SCALES, LARGEST)
        if ROUND_TRIP:
            first, second = back_first, back_second
    tl.store(out + first_at, first.to(dtype), mask=inside)
    tl.store(out + second_at, second.to(dtype), mask=inside)
    if R < D:
        rest = _normed(rest, inverse, weight, rest_at, rest_inside, HAS_NORM).to(dtype).to(tl.float32)
        if KEEPS:
            back = _keep(rest, rest_inside, R, heads, slot, cache, scales, HQ, HK, D, BS, HAS_SCALES, LARGEST)
            if ROUND_TRIP:
                rest = back
        tl.store(out + rest_at, rest.to(dtype), mask=rest_inside)


@triton.jit
def _keep_values(
    values, at, inside, x, heads, slot, cache, scales,
    HQ: tl.constexpr, HK: tl.constexpr, D: tl.constexpr, BS: tl.constexpr, HAS_SCALES: tl.constexpr,
    LARGEST: tl.constexpr, ROUND_TRIP: tl.constexpr,
):  # fmt: skip
    """Write value heads [heads, DP], `at` in x, into the cache, and back into x as it rounds them."""
    values = values.to(tl.float32)
    back = _keep(values, inside, 0, heads, slot, cache, scales, HQ, HK, D, BS, HAS_SCALES, LARGEST)
    if ROUND_TRIP:
        tl.store(x + at, back.to(x.dtype.element_ty), mask=inside)


@triton.jit
def _qkv_rope_write(
    qkv, qkv_stride, weight, eps, cos_sin, positions, slots, cache, scales, out,
    HQ: tl.constexpr, HK: tl.constexpr, D: tl.constexpr, R: tl.constexpr, BS: tl.constexpr, HAS_NORM: tl.constexpr,
    HAS_SCALES: tl.constexpr, LARGEST: tl.constexpr, ROUND_TRIP: tl.constexpr, BY_HEAD: tl.constexpr,
    QUERIES: tl.constexpr, KEYS: tl.constexpr, P: tl.constexpr, REST: tl.constexpr, DP: tl.constexpr,
    EARLY: tl.constexpr,
):  # fmt: skip
    """A program a token, or BY_HEAD a head. QUERIES, KEYS, P, REST, DP: powers of 2 for HQ, HK, R / 2, D - R, D."""
    take_turn(EARLY)
    token = tl.program_id(0).to(tl.int64)
    x = qkv + token * qkv_stride
    own = out + token * (HQ + HK) * D
    # A padding row has position -1 and slot -1.
    slot = tl.load(slots + token).to(tl.int64)
    row = cos_sin + tl.maximum(tl.load(positions + token), 0) * R
    angle = tl.arange(0, P)
    cos = tl.load(row + angle, mask=angle < R // 2, other=1.0).to(tl.float32)
    sin = tl.load(row + R // 2 + angle, mask=angle < R // 2, other=0.0).to(tl.float32)
    if BY_HEAD:
        heads = tl.program_id(1) + tl.arange(0, 1)
        if tl.program_id(1) < HQ + HK:
            first, second = _halves(x, heads, HQ + HK, D, R, P)
            _turn(
                first, second, x, heads, HQ + HK, weight, eps, cos, sin, slot, cache, scales, own,
                HQ, HK, D, R, BS, HAS_NORM, HAS_SCALES, LARGEST, ROUND_TRIP, True, P, REST,
            )  # fmt: skip
        else:
            at, inside = _part(heads, HQ + 2 * HK, 0, D, D, DP)
            values = tl.load(x + at, mask=inside, other=0.0)
            _keep_values(
                values, at, inside, x, heads, slot, cache, scales,
                HQ, HK, D, BS, HAS_SCALES, LARGEST, ROUND_TRIP,
            )  # fmt: skip
    else:
        # All loads are under way before the first store: none overtakes one that may be to the same place.
        queries, keys = tl.arange(0, QUERIES), HQ + tl.arange(0, KEYS)
        first, second = _halves(x, queries, HQ, D, R, P)
        first_key, second_key = _halves(x, keys, HQ + HK, D, R, P)
        at, inside = _part(keys + HK, HQ + 2 * HK, 0, D, D, DP)
        values = tl.load(x + at, mask=inside, other=0.0)
        _turn(
            first, second, x, queries, HQ, weight, eps, cos, sin, slot, cache, scales, own,
            HQ, HK, D, R, BS, HAS_NORM, HAS_SCALES, LARGEST, ROUND_TRIP, False, P, REST,
        )  # fmt: skip
        _turn(
            first_key, second_key, x, keys, HQ + HK, weight, eps, cos, sin, slot, cache, scales, own,
            HQ, HK, D, R, BS, HAS_NORM, HAS_SCALES, LARGEST, ROUND_TRIP, True, P, REST,
        )  # fmt: skip
        _keep_values(
            values, at, inside, x, keys + HK, slot, cache, scales,
            HQ, HK, D, BS, HAS_SCALES, LARGEST, ROUND_TRIP,
        )  # fmt: skip


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
    rotary_dim = cos_sin.shape[1]
    by_head = num_tokens <= _FEW_TOKENS
    queries = next_power_of_2(num_heads)
    if num_tokens:
        _qkv_rope_write[(num_tokens, turned + num_kv_heads if by_head else 1)](
            qkv, qkv.stride(0), qk_norm, eps, cos_sin, plan.positions, plan.slot_mapping, kv_cache, kv_scales, out,
            HQ=num_heads, HK=num_kv_heads, D=head_dim, R=rotary_dim, BS=kv_cache.shape[3],
            HAS_NORM=qk_norm is not None, HAS_SCALES=kv_scales is not None,
            LARGEST=0.0 if kv_scales is None else torch.finfo(kv_cache.dtype).max,
            ROUND_TRIP=kv_scales is not None and plan.prefill is not None,
            BY_HEAD=by_head, QUERIES=queries, KEYS=next_power_of_2(num_kv_heads),
            P=next_power_of_2(rotary_dim // 2), REST=next_power_of_2(max(1, head_dim - rotary_dim)),
            DP=next_power_of_2(head_dim), EARLY=starts_early(num_tokens),
            num_warps=1 if by_head else _num_warps(queries * rotary_dim // 2), **early_launch(),
        )  # fmt: skip
    values = qkv.unflatten(-1, (turned + num_kv_heads, head_dim))[:, turned:]
    return out[:, :num_heads], out[:, num_heads:], values


def _num_warps(num_values: int) -> int:
    """Of a program whose queries have so many values in a half: 8 a thread, 16 bytes."""
    return min(8, max(1, next_power_of_2(num_values) // 256))
