"""Latent attention (MLA) by AITER: its assembled kernel for decodes, over a cache of 576 values a token.

The cache is addressed token by token, as pages of one. Shapes: T tokens, Td decode tokens, HQ heads, D head size,
C = 512 compressed size, R = 64 rotary size, W = C + R.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from atom.model_ops.kernels.aiter.library import load
from atom.model_ops.kernels.aiter.limits import AiterUnsupported
from atom.model_ops.kernels.aiter.ones import ones
from atom.model_ops.kernels.aiter.plan import Plan

_rms_norm = load("aiter.rms_norm")
_rotate = load("aiter.rope_cached_positions_2c_fwd_inplace")
_write = load("aiter.concat_and_cache_mla")
_decode = load("aiter.mla.mla_decode_fwd")

# Pairs (i, i + R/2), not (2i, 2i + 1).
_BY_HALVES = 0
# What the assembled kernels are made for.
_RANK, _WIDTH = 512, 576
_HEADS = (16, 128)


def mla_cache_shape(num_blocks: int, block_size: int, width: int) -> tuple[int, ...]:
    """[NB, BS, W]."""
    if width != _WIDTH:
        raise _unsupported(f"over {width} values a token")
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
    """q [T, HQ, D] and latents [T, W] are rotated in place, their last R values; returns [T, C] and [T, R]."""
    # An engine's first step is a prefill: what decodes can not do is said here too.
    _check(latents, kv_cache, q.shape[1], len(norm))
    compressed = _rms_norm(latents[:, : len(norm)], norm, eps)
    key = latents[:, len(norm) :]
    cos, sin, places = plan.rotary(cos_sin)
    rotated = q[..., q.shape[2] - key.shape[1] :]
    # Tokens along the first axis: along the second the kernel's grid would end at 65,535.
    _rotate(
        rotated[:, None],
        key[:, None, None],
        cos,
        sin,
        places,
        _BY_HALVES,
        reuse_freqs_front_part=True,
        nope_first=False,
    )
    # It asks for the scale of an fp8 cache whatever the cache is.
    _write(compressed, key, kv_cache, plan.slot_mapping, "auto", ones(1, torch.float32, q.device))
    return compressed, key


def mla_decode(q: torch.Tensor, kv_cache: torch.Tensor, plan: Plan, scale: float, rank: int) -> torch.Tensor:
    """q [Td, HQ, W] over each token's cached latents, its own among them; their first C values, [Td, HQ, C]."""
    num_tokens, num_heads, _ = q.shape
    rows = plan.decode
    assert rows is not None
    _check(q, kv_cache, num_heads, rank)
    # How the keys are split is kept in a tensor that the package frees when the next batch has another size.
    if torch.cuda.is_available() and torch.cuda.is_current_stream_capturing():
        raise _unsupported("in a captured graph", "give --enforce-eager")
    wide = next(count for count in _HEADS if count >= num_heads)
    if wide != num_heads:
        q = F.pad(q, (0, 0, 0, wide - num_heads))
    tokens = plan.decode_slots()
    out = torch.empty((num_tokens, wide, rank), dtype=q.dtype, device=q.device)
    _decode(
        q.contiguous(), kv_cache.view(-1, 1, 1, _WIDTH), out, rows.query_bounds, tokens.bounds, tokens.slots,
        tokens.page_lens, rows.max_query_len, sm_scale=scale, logit_cap=0.0,
    )  # fmt: skip
    return out if wide == num_heads else out[:, :num_heads].contiguous()


def _check(x: torch.Tensor, kv_cache: torch.Tensor, num_heads: int, rank: int) -> None:
    if x.dtype != torch.bfloat16 or kv_cache.dtype != torch.bfloat16:
        raise _unsupported(f"of {_name(x)} over a cache in {_name(kv_cache)}")
    if rank != _RANK:
        raise _unsupported(f"with {rank} compressed values a token")
    if num_heads > _HEADS[-1]:
        raise _unsupported(f"of {num_heads} heads")


def _unsupported(what: str, way_out: str = "give ATOM_KERNELS=mla_decode=reference") -> AiterUnsupported:
    return AiterUnsupported(f"AITER has no latent attention {what}: {way_out}")


def _name(x: torch.Tensor) -> str:
    return str(x.dtype).removeprefix("torch.")
