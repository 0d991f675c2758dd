"""Operations of the reference as plain formulas, written for a compiler that fuses them and not for few calls.

Each takes tensors first and what is constant for a model last. Shapes: T tokens, H hidden, I intermediate, HQ/HK heads,
D head size, B rows, M blocks of the longest row, BS block size.
"""

from __future__ import annotations

import torch


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """x [T, H], weight [H]."""
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)).to(x.dtype) * weight


def add_rms_norm(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """residual += x, then rms_norm(residual)."""
    residual.add_(x)
    return rms_norm(residual, weight, eps)


def silu_and_mul(x: torch.Tensor) -> torch.Tensor:
    """x [T, 2I] to [T, I]."""
    size = x.shape[1] // 2
    gate = x[:, :size].float()
    return (gate * torch.sigmoid(gate) * x[:, size:].float()).to(x.dtype)


def qkv_rope_write(
    qkv: torch.Tensor,
    positions: torch.Tensor,
    rows: torch.Tensor,
    cos_sin: torch.Tensor,
    cache_rows: torch.Tensor,
    qk_norm: torch.Tensor | None,
    eps: float,
    num_heads: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """qkv [T, (HQ + 2 HK) * D], positions [T], cos_sin [P, D]; returns q [T, HQ, D], k and v [T, HK, D].

    cache_rows [N, D] is the cache as rows of a head and token, rows [T, 2 HK] where keys and values go there. It is an
    argument in this form since a compiler would write into a view of one by copying all of it. What comes back is laid
    out so that nothing is copied: q and k in memory of their own, rounded half by half, v as a view of qkv.
    """
    head_dim, num_kv_heads = cos_sin.shape[1], rows.shape[1] // 2
    half = head_dim // 2
    heads = qkv.view(qkv.shape[0], -1, head_dim)
    cos, sin = (part.unsqueeze(1).float() for part in cos_sin[positions].split(half, dim=-1))

    def turned(first_head: int, last_head: int) -> torch.Tensor:
        some = heads[:, first_head:last_head]
        wide = some.float() if qk_norm is None else rms_norm(some, qk_norm[first_head:last_head], eps).float()
        first, second = wide[..., :half], wide[..., half:]
        halves = (first * cos - second * sin, second * cos + first * sin)
        return torch.cat([x.to(qkv.dtype) for x in halves], dim=-1)

    num_rotated = num_heads + num_kv_heads
    q, k, v = turned(0, num_heads), turned(num_heads, num_rotated), heads[:, num_rotated:]
    cache_rows.index_put_((rows[:, :num_kv_heads],), k)
    cache_rows.index_put_((rows[:, num_kv_heads:],), v)
    return q, k, v


def decode_weights(
    q: torch.Tensor,
    kv_cache: torch.Tensor,
    block_ids: torch.Tensor,
    seq_lens: torch.Tensor,
    scale: float,
    window: int | None,
) -> torch.Tensor:
    """q [B, HQ, D] float32, block_ids [B, M], seq_lens [B]: what each head of a row's last token gives to each key.

    Returns [B, HK, HQ / HK, M, BS] in the cache's dtype.

    Keys are read where they are, in the order in which they lie there; nothing is gathered. q comes in float32, since
    else the compiler widens it again for every key.
    """
    num_rows, _, head_dim = q.shape
    _, _, num_kv_heads, size, _ = kv_cache.shape
    keys = kv_cache[block_ids, 0].unsqueeze(3).float()  # [B, M, HK, 1, BS, D]
    scores = (q.view(num_rows, 1, num_kv_heads, -1, 1, head_dim) * keys).sum(-1) * scale  # [B, M, HK, G, BS]
    at = torch.arange(block_ids.shape[1] * size, device=q.device).view(1, -1, 1, 1, size)
    lens = seq_lens.view(-1, 1, 1, 1, 1)
    hidden = at >= lens if window is None else (at >= lens) | (at < lens - window)
    scores = scores.masked_fill(hidden, float("-inf"))
    weights = (scores - scores.amax((1, 4), keepdim=True)).exp()
    weights = weights / weights.sum((1, 4), keepdim=True)
    return weights.permute(0, 2, 3, 1, 4).to(kv_cache.dtype).contiguous()
