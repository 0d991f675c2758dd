"""The reference backend's KV cache: its layout, and the way of q, k and v from the projection into it.

Layout block_major: [NB, 2, HK, BS, D], keys then values. A block of one head is one run of BS * D values, so that
gathering is a row gather (measured at half the cost of an index_select over an inner axis), and all of a block is one
run too, so that a cache takes memory block by block. A float8 cache holds x / scale.
"""

from __future__ import annotations

import torch

from atom.model_ops.float8 import is_float8, to_float8
from atom.model_ops.kernels.reference.float8 import from_float8
from atom.model_ops.kernels.reference.norm import rms_norm
from atom.model_ops.kernels.reference.plan import Plan


def kv_cache_shape(num_blocks: int, block_size: int, num_kv_heads: int, head_dim: int) -> tuple[int, ...]:
    """[NB, 2, HK, BS, D]."""
    return (num_blocks, 2, num_kv_heads, block_size, head_dim)


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
    """qkv [T, (HQ + 2 HK) * D] is normed and rotated in place; returns views q [T, HQ, D], k and v [T, HK, D].

    k and v of prefill rows come back rounded as an fp8 cache rounds them: a prompt's tokens see the same keys and
    values however the prompt is cut into chunks.
    """
    num_rotated = num_heads + num_kv_heads
    heads = qkv.view(qkv.shape[0], num_rotated + num_kv_heads, -1)
    qk = heads[:, :num_rotated]
    source = qk.clone() if qk_norm is None else rms_norm(qk, qk_norm, eps)
    rotate(source, cos_sin, plan, qk)
    _write(heads[:, num_heads:], kv_cache, kv_scales, plan)
    # Slices, since Tensor.split goes through Python and costs ten times as much.
    return heads[:, :num_heads], heads[:, num_heads:num_rotated], heads[:, num_rotated:]


def rotate(source: torch.Tensor, cos_sin: torch.Tensor, plan: Plan, out: torch.Tensor) -> None:
    """out = rotated source, both [T, heads, D]; channels beyond the rotary size pass through."""
    cos, sin = plan.rotary(cos_sin, source.dtype)
    half = sin.shape[-1]
    if 2 * half < source.shape[-1]:
        out[..., 2 * half :] = source[..., 2 * half :]
        source, out = source[..., : 2 * half], out[..., : 2 * half]
    torch.mul(source, cos, out=out)
    first, second = source[..., :half], source[..., half:]
    out[..., :half].addcmul_(second, sin, value=-1)
    out[..., half:].addcmul_(first, sin)


def _write(kv: torch.Tensor, kv_cache: torch.Tensor, kv_scales: torch.Tensor | None, plan: Plan) -> None:
    """kv [T, 2 HK, D], keys then values, into the step's slots; of prefill rows, as they come out again into kv."""
    _, _, num_kv_heads, _, head_dim = kv_cache.shape
    table, rows = kv_cache.view(-1, head_dim), plan.write_rows(num_kv_heads)
    if kv_scales is None:
        table.index_put_((rows,), kv)
        return
    scales = kv_scales.view(-1, 1)
    kept = to_float8(kv / scales, kv_cache.dtype)
    table.index_put_((rows,), kept)
    if plan.prefills:
        first = plan.step.num_decode_tokens
        kv[first:] = from_float8(kept[first:], torch.float32) * scales


def gather(
    kv_cache: torch.Tensor, block_ids: torch.Tensor, plan: Plan, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    """Keys and values [G, HK, M * BS, D] of the blocks block_ids [G, M], in `dtype`; a float8 cache's not scaled."""
    _, _, num_kv_heads, block_size, head_dim = kv_cache.shape
    rows = plan.read_rows(block_ids, num_kv_heads)
    table = kv_cache.view(-1, block_size * head_dim)
    if is_float8(kv_cache.dtype):
        # index_select has no float8 kernel; the bytes have.
        table = table.view(torch.uint8)
    found = torch.index_select(table, 0, rows, out=plan.scratch(table, rows))
    if is_float8(kv_cache.dtype):
        found = from_float8(found.view(kv_cache.dtype), dtype, plan.scratch(found, rows, dtype))
    num_rows, num_blocks_each = block_ids.shape
    both = found.view(2, num_rows, num_kv_heads, num_blocks_each * block_size, head_dim)
    return both[0], both[1]
