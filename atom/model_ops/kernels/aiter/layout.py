"""The two layouts of AITER's KV cache, and which one a cache has.

shuffled: what the assembled decode kernel reads. Keys [NB, HK, D/x, BS, x] and values [NB, HK, BS/x, D, x], where x
values are 16 bytes. flash: keys and values [NB, BS, HK, D], which every other kernel reads. The layout follows from the
block size and the head size, and afterwards the number of dimensions of the cache tells it.
Shapes: NB blocks, BS block size, HK key/value heads, D head size, L tokens.
"""

from __future__ import annotations

import torch

from atom.model_ops.kernels.aiter.limits import require_block_size

# What the assembled kernels are made for; their table names the block size, their code the head size.
_SHUFFLED_BLOCK, _SHUFFLED_HEAD = 16, 128
_RUN_BYTES = 16


def kv_cache_shape(num_blocks: int, block_size: int, num_kv_heads: int, head_dim: int) -> tuple[int, ...]:
    """[2, NB, HK, BS * D] when shuffled, [2, NB, BS, HK, D] else: keys and values are dense by themselves."""
    require_block_size(block_size)
    if block_size == _SHUFFLED_BLOCK and head_dim == _SHUFFLED_HEAD:
        return (2, num_blocks, num_kv_heads, block_size * head_dim)
    return (2, num_blocks, block_size, num_kv_heads, head_dim)


def is_shuffled(kv_cache: torch.Tensor) -> bool:
    """Whether the cache has the shuffled layout."""
    return kv_cache.dim() == 4


def shuffled_views(kv_cache: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A shuffled cache as keys [NB, HK, D/x, BS, x] and values [NB, HK, BS/x, D, x]."""
    _, num_blocks, num_kv_heads, _ = kv_cache.shape
    run = _RUN_BYTES // kv_cache.itemsize
    block = (num_blocks, num_kv_heads)
    keys = kv_cache[0].view(*block, _SHUFFLED_HEAD // run, _SHUFFLED_BLOCK, run)
    return keys, kv_cache[1].view(*block, _SHUFFLED_BLOCK // run, _SHUFFLED_HEAD, run)


def read_shuffled(kv_cache: torch.Tensor, slots: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Keys and values [L, HK, D] of the tokens at slots [L] int64, in the cache's dtype."""
    # Indexing has no float8 kernels; the bytes have.
    plain = kv_cache.view(torch.uint8) if kv_cache.itemsize == 1 else kv_cache
    keys, values = shuffled_views(plain)
    run = keys.shape[-1]
    blocks, places = slots // _SHUFFLED_BLOCK, slots % _SHUFFLED_BLOCK
    found = keys[blocks, :, :, places].flatten(2), values[blocks, :, places // run, :, places % run]
    return found[0].view(kv_cache.dtype), found[1].view(kv_cache.dtype)
