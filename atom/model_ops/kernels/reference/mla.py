"""Latent attention (MLA) in plain torch: one compressed key and value a token, for all heads.

The cache holds [NB, BS, C + R]: what keys and values are made of, normed, then the rotated part of the key. In a decode
the heads' own projections are in the queries already and come after the result, so that the cache is attended as it is.
Shapes: T tokens, Td decode tokens, HQ heads, D head size, C compressed size, R rotary size, W = C + R, L keys.
"""

from __future__ import annotations

import torch

from atom.model_ops.kernels.reference.kv_cache import rotate
from atom.model_ops.kernels.reference.norm import rms_norm
from atom.model_ops.kernels.reference.plan import Plan


def mla_cache_shape(num_blocks: int, block_size: int, width: int) -> tuple[int, ...]:
    """[NB, BS, W]."""
    return (num_blocks, block_size, width)


def mla_rope_write(
    q: torch.Tensor,
    latents: torch.Tensor,
    norm: torch.Tensor,
    eps: float,
    cos_sin: torch.Tensor,
    kv_cache: torch.Tensor,
    plan: Plan,
) -> tuple[torch.Tensor, torch.Tensor]:
    """q [T, HQ, D] and latents [T, W] are rotated in place, their last R values; returns views [T, C] and [T, R]."""
    compressed, key = latents[:, : len(norm)], latents[:, len(norm) :]
    compressed.copy_(rms_norm(compressed, norm, eps))
    for part in (q[..., q.shape[2] - key.shape[1] :], key.unsqueeze(1)):
        rotate(part.clone(), cos_sin, plan, part)
    kv_cache.view(-1, kv_cache.shape[2]).index_copy_(0, plan.step.slot_mapping, latents)
    return compressed, key


def mla_decode(q: torch.Tensor, kv_cache: torch.Tensor, plan: Plan, scale: float, rank: int) -> torch.Tensor:
    """q [Td, HQ, W] over each token's cached latents, its own among them; the first `rank` = C of them, [Td, HQ, C]."""
    out = q.new_empty((*q.shape[:2], rank))
    for group in plan.single:
        mask = plan.decode_mask(group, 1, None, torch.float32)
        latents = kv_cache[group.block_ids].flatten(1, 2)
        if group.rows is None:
            out = _attend(q, latents, mask, scale, rank)
        else:
            out[group.rows] = _attend(q[group.rows], latents, mask, scale, rank)
    for row in plan.several:
        tokens = slice(row.start, row.end)
        mask = plan.causal_mask(row.end - row.start, row.num_context, None).unsqueeze(1)
        latents = kv_cache[row.block_ids].flatten(1, 2)[:, : row.num_keys]
        out[tokens] = _attend(q[tokens], latents.expand(len(mask), -1, -1), mask, scale, rank)
    return out


def _attend(q: torch.Tensor, latents: torch.Tensor, mask: torch.Tensor, scale: float, rank: int) -> torch.Tensor:
    """q [G, HQ, W] over latents [G, L, W] with an additive mask [G, 1, L], in float32; [G, HQ, C]."""
    wide = latents.float()
    weights = torch.baddbmm(mask, q.float(), wide.transpose(1, 2), alpha=scale).softmax(-1)
    return torch.bmm(weights, wide[..., :rank]).to(q.dtype)
