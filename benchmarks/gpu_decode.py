"""Decode attention of all layers of a step, its plan included, in the way for even batches and that for uneven ones.

As many distinct caches as the second-level cache can not hold. The engine's choice for each batch is named.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from atom.model_engine.input_batch import is_even
from atom.model_ops.float8 import float8_dtype
from atom.model_ops.kernels.triton import decode, kv_cache
from atom.model_ops.kernels.triton.plan import attention_plan
from atom.model_ops.step import StepInputs
from benchmarks.gpu_timing import seconds_in_a_graph

# Name, and contexts of the sequences that decode.
Batches = tuple[tuple[str, tuple[int, ...]], ...]
BATCHES: Batches = (
    ("63 of 1024 and one of 32768", (*[1024] * 63, 32768)),
    ("256 of 1088", (1088,) * 256),
    ("256 of 64 to 2112", tuple(np.random.default_rng(5).integers(64, 2112, 256).tolist())),
    ("64 of 1024 to 1152", tuple(np.random.default_rng(6).integers(1024, 1152, 64).tolist())),
    ("8 of 64 to 2112", (64, 300, 600, 900, 1200, 1500, 1900, 2112)),
    ("100, 200, 60000 and 3000", (100, 200, 60000, 3000)),
    ("one of 1088", (1088,)),
)
_MANY_BYTES = 192 << 20
_BLOCK_SIZE = 16


@dataclass(frozen=True, slots=True)
class Model:
    """Of which the attention is measured."""

    heads: tuple[int, int] = (32, 8)
    head_dim: int = 128
    layers: int = 36


MODEL = Model()


def decode_splits(device: torch.device, bandwidth: float, model: Model, batches: Batches) -> list[dict[str, Any]]:
    """Both caches, both ways."""
    found = []
    for name, contexts in batches:
        step = decodes(contexts, device)
        for kind, dtype in (("bf16", torch.bfloat16), ("fp8", float8_dtype(device))):
            layers = Layers(model, step, dtype, device)
            for way, evenly in (("even", True), ("uneven", False)):
                value = 1e6 * seconds_in_a_graph(lambda evenly=evenly, of=layers: of.attend(evenly), device)
                chosen = ", chosen" if evenly == step.is_even else ""
                row = {"name": f"{name}, {kind} cache, {way}{chosen}", "value": value / model.layers}
                found.append({**row, "unit": "us a layer"})
            num_bytes = sum(contexts) * 2 * model.heads[1] * model.head_dim * dtype.itemsize
            floor = 1e6 * num_bytes / bandwidth
            found.append({"name": f"{name}, {kind} cache, floor", "value": floor, "unit": "us a layer"})
    return found


class Layers:
    """The attention of a step's layers: queries of one, caches that are no longer read when their turn comes again."""

    def __init__(self, model: Model, step: StepInputs, dtype: torch.dtype, device: torch.device) -> None:
        heads, kv_heads = model.heads
        self._step, self._model = step, model
        self._q = torch.randn(step.num_tokens, heads, model.head_dim, device=device).bfloat16()
        self._scales = torch.ones(2, kv_heads, device=device) if dtype.itemsize == 1 else None
        shape = kv_cache.kv_cache_shape(int(step.block_tables.max()) + 1, _BLOCK_SIZE, kv_heads, model.head_dim)
        one = torch.randn(shape, dtype=torch.bfloat16, device=device).to(dtype)
        count = min(model.layers, 1 + _MANY_BYTES // one.nbytes) if device.type == "cuda" else 1
        self._caches = [one, *(one.clone() for _ in range(count - 1))]

    def attend(self, evenly: bool | None = None) -> None:
        """All layers; evenly: in the way for even batches, by default as the step says."""
        step = self._step if evenly is None else replace(self._step, is_even=evenly)
        made = attention_plan(step)
        for layer in range(self._model.layers):
            cache = self._caches[layer % len(self._caches)]
            decode.attention_decode(self._q, cache, self._scales, made, self._model.head_dim**-0.5, None, 0.0, None)


def decodes(contexts: tuple[int, ...], device: torch.device) -> StepInputs:
    """A step of decodes of sequences with so many keys, their blocks in random places."""
    lens = np.asarray(contexts)
    counts = -(-lens // _BLOCK_SIZE)
    blocks = np.random.default_rng(3).permutation(int(counts.sum())).astype(np.int32)
    tables = np.zeros((len(lens), int(counts.max())), dtype=np.int32)
    tables[np.arange(tables.shape[1]) < counts[:, None]] = blocks
    positions = torch.from_numpy(lens - 1).to(device)
    return StepInputs(
        token_ids=torch.zeros_like(positions),
        positions=positions,
        slot_mapping=torch.full_like(positions, -1),
        block_tables=torch.from_numpy(tables).to(device),
        context_lens=(lens - 1).astype(np.int32),
        query_lens=np.ones(len(lens), dtype=np.int32),
        num_decodes=len(lens),
        num_decode_tokens=len(lens),
        block_size=_BLOCK_SIZE,
        is_even=is_even(lens - 1),
    )
