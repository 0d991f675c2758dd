"""How much memory a step takes, found by running the largest one before the KV cache is made.

The allocator keeps what the step took, so what the device then reports as free is free for the cache. Also the wording
of what to change when memory runs out, and how memory goes back. Knows no model.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

import numpy as np
import torch

from atom.config import Config
from atom.model_engine import kv_cache
from atom.model_ops.kernels.select import Kernels
from atom.model_ops.sampler import RandomRows, Sampler
from atom.model_ops.step import StepInputs
from atom.models.decoder import CausalLM

logger = logging.getLogger(__name__)

# What CUDA, HIP and Triton say, and what cuBLAS does.
_OUT_OF_MEMORY = ("out of memory", "ALLOC_FAILED")


def run_largest_step(
    model: CausalLM, kernels: Kernels, config: Config, dtype: torch.dtype, device: torch.device
) -> None:
    """A step of fresh prompts of max_num_batched_tokens tokens, then max_num_seqs rows of sampling, over one block."""
    layers = list(model.attention_layers())
    kv_cache.allocate(layers, 1, config.block_size, dtype, kernels, device)
    step = _largest_step(config, device)
    step.plan = kernels["attention_plan"](step)
    hidden = model(step)
    count = config.max_num_seqs
    rows = torch.arange(count, device=device) % hidden.shape[0]
    logits = model.compute_logits(hidden.index_select(0, rows))
    del hidden
    ones = torch.ones(count, device=device)
    numbers = torch.arange(count, device=device)
    top_k = torch.full((count,), 2, dtype=torch.int32, device=device)
    # A copy in float32, as logits with penalties are, beside the model's own.
    edited = logits.to(torch.float32, copy=True)
    Sampler(kernels)(edited, RandomRows(None, ones, top_k, 0.9 * ones, 0 * ones, numbers, numbers))
    torch.cuda.synchronize(device)
    for layer in layers:
        layer.bind_cache(torch.empty(0))
    peak, reserved = (x / 2**30 for x in (torch.cuda.max_memory_allocated(device), torch.cuda.memory_reserved(device)))
    logger.info("largest step: peak of %.2f GiB with the weights, %.2f GiB kept", peak, reserved)


def _largest_step(config: Config, device: torch.device) -> StepInputs:
    """Rows as long as sequences may be, all of whose tokens share the one block."""
    longest = config.max_model_len
    total = min(config.max_num_batched_tokens, longest * config.max_num_seqs)
    lens = np.full(-(-total // longest), longest, dtype=np.int32)
    lens[-1] = total - longest * (len(lens) - 1)
    positions = np.concatenate([np.arange(length, dtype=np.int64) for length in lens])
    where = torch.from_numpy(positions).to(device)
    blocks = -(-int(lens.max()) // config.block_size)
    return StepInputs(
        token_ids=torch.zeros_like(where),
        positions=where,
        slot_mapping=where % config.block_size,
        block_tables=torch.zeros(len(lens), blocks, dtype=torch.int32, device=device),
        context_lens=np.zeros(len(lens), dtype=np.int32),
        query_lens=lens,
        num_decodes=0,
        num_decode_tokens=0,
        block_size=config.block_size,
    )


@contextlib.contextmanager
def explain_out_of_memory(what: str, remedy: str) -> Iterator[None]:
    """Out of GPU memory becomes a MemoryError that says while what, and what to change.

    Torch's allocator has an error of its own; graphs, libraries and Triton take memory past it and say so in words.
    """
    try:
        yield
    except RuntimeError as error:
        if not isinstance(error, torch.OutOfMemoryError) and not any(text in str(error) for text in _OUT_OF_MEMORY):
            raise
        free, total = (x / 2**30 for x in torch.cuda.mem_get_info())
        raise MemoryError(f"out of GPU memory while {what} ({free:.1f} of {total:.1f} GiB free): {remedy}") from error


def give_memory_back(device: torch.device) -> None:
    """What was freed goes back to the GPU: torch keeps it, and an engine takes its size from what is free there."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
