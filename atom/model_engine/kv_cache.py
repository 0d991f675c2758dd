"""Size and memory of the paged KV cache.

Owns how many blocks there are and the refusal to start when one full context does not fit. Knows a layout only as a
shape.
"""

from __future__ import annotations

import logging
import math
import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from atom.config import Config
from atom.model_ops.attention import Attention
from atom.model_ops.float8 import float8_dtype
from atom.model_ops.kernels.select import Kernels

logger = logging.getLogger(__name__)

# On a CPU, without --kv-cache-memory: as much as every sequence could fill, but no more than this, unless a single
# context needs more; and never more than this share of what is free.
_DEFAULT_BYTES = 4 << 30
_FREE_SHARE = 0.6


class CacheSizeError(ValueError):
    """The cache can not hold one sequence of max_model_len tokens, or is larger than the memory that is free."""


@dataclass(frozen=True, slots=True)
class CacheGeometry:
    """What a block costs. block_bytes: of all layers, keys and values."""

    block_size: int
    block_bytes: int

    def blocks_for(self, num_tokens: int) -> int:
        """Blocks that hold so many tokens."""
        return -(-num_tokens // self.block_size)


def cache_dtype(config: Config, dtype: torch.dtype, device: torch.device) -> torch.dtype:
    """Type of the cache of a model in `dtype`. ValueError for a GPU without fp8, which names the flag."""
    if config.kv_cache_dtype != "fp8":
        return dtype
    try:
        return float8_dtype(device)
    except ValueError as error:
        raise ValueError(f"--kv-cache-dtype fp8: {error}; leave the flag away") from error


def geometry(layers: Sequence[Attention], block_size: int, dtype: torch.dtype) -> CacheGeometry:
    """The cost of a block over all layers. dtype: the cache's."""
    values = sum(2 * layer.num_kv_heads * layer.head_dim for layer in layers)
    return CacheGeometry(block_size, values * block_size * dtype.itemsize)


def choose_num_blocks(config: Config, size: CacheGeometry, device: torch.device) -> int:
    """Blocks of the cache. Raises CacheSizeError, which names the flags to change."""
    one = size.blocks_for(config.max_model_len)
    everything = one * config.max_num_seqs
    flag = "--kv-cache-memory"
    if config.kv_cache_memory is not None:
        budget = config.kv_cache_memory
    elif device.type == "cuda":
        budget, flag = _cuda_budget(config.gpu_memory_utilization, device), "--gpu-memory-utilization"
    else:
        budget = _cpu_budget(size, one)
    num_blocks = min(budget // size.block_bytes, everything)
    if num_blocks < one:
        needed, fitting = _show(one * size.block_bytes), num_blocks * size.block_size
        raise CacheSizeError(
            f"one sequence of --max-model-len {config.max_model_len} needs {needed} of KV cache and "
            f"{_show(budget)} is there: give a smaller --max-model-len (at most {fitting} fit) or a larger {flag}"
        )
    if config.kv_cache_memory is not None:
        _check_free(num_blocks * size.block_bytes, device)
    return num_blocks


def _check_free(num_bytes: int, device: torch.device) -> None:
    """CacheSizeError for a cache larger than what is free: a CPU's pages are taken as they fill, much too late."""
    free = torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else free_memory()
    if free is not None and num_bytes > free:
        raise CacheSizeError(
            f"the KV cache would take {_show(num_bytes)} and {_show(free)} of memory is free: give a smaller "
            "--kv-cache-memory, or a smaller --max-num-seqs"
        )


def allocate(
    layers: Sequence[Attention],
    num_blocks: int,
    block_size: int,
    dtype: torch.dtype,
    kernels: Kernels,
    device: torch.device,
) -> None:
    """Make every layer's cache and bind it, filled with zeros: what masked positions hold must be finite."""
    make = lazy_zeros if device.type == "cpu" else torch.zeros
    for layer in layers:
        shape = kernels["kv_cache_shape"](num_blocks, block_size, layer.num_kv_heads, layer.head_dim)
        layer.bind_cache(make(shape, dtype=dtype, device=device))


def lazy_zeros(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Zeros that the system hands out page by page as they are written; torch.zeros would write all of them."""
    assert device.type == "cpu"
    memory = mmap.mmap(-1, math.prod(shape) * dtype.itemsize, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return torch.frombuffer(memory, dtype=dtype).view(shape)


def log_capacity(num_blocks: int, size: CacheGeometry, max_model_len: int, dtype: torch.dtype) -> None:
    """The capacity line of the start."""
    tokens = num_blocks * size.block_size
    logger.info(
        "KV cache: %d blocks of %d tokens, %s in %s, %.1f sequences of %d tokens",
        num_blocks,
        size.block_size,
        _show(num_blocks * size.block_bytes),
        str(dtype).removeprefix("torch."),
        tokens / max_model_len,
        max_model_len,
    )


def _cpu_budget(size: CacheGeometry, one: int) -> int:
    free = free_memory()
    wanted = max(_DEFAULT_BYTES, one * size.block_bytes)
    return wanted if free is None else min(wanted, int(free * _FREE_SHARE))


def _cuda_budget(utilization: float, device: torch.device) -> int:
    free, total = torch.cuda.mem_get_info(device)
    return max(0, int(total * utilization) - (total - free))


def free_memory() -> int | None:
    """Bytes that a process may still take: the machine's, or what its control group leaves. None where unknown."""
    found = []
    meminfo = Path("/proc/meminfo")
    if meminfo.is_file():
        for line in meminfo.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                found.append(int(line.split()[1]) * 1024)
    limit, used = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
    if limit.is_file() and used.is_file():
        text = limit.read_text().strip()
        if text.isdigit():
            found.append(max(0, int(text) - int(used.read_text())))
    return min(found) if found else None


def _show(num_bytes: int) -> str:
    return f"{num_bytes / 2**30:.2f} GiB" if num_bytes >= 2**30 else f"{num_bytes / 2**20:.1f} MiB"
