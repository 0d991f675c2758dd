"""Decode steps as captured graphs, by batch size, and by whether sequences have about as many keys each.

Owns the static inputs and outputs of every graph and which sizes there are. A step of fewer rows runs in the next
larger graph: the rows too many have a slot of their own, no keys, and write nothing. Greedy tokens are sampled in the
graph and left in the slots, so that a step costs the host one copy and one launch.
Shapes: G rows of a graph, V vocabulary.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from atom.config import Config
from atom.model_engine.batch import ScheduledBatch
from atom.model_engine.capture_traces import CaptureTraces
from atom.model_engine.device_copies import overwrite, upload
from atom.model_engine.graph_capture import capture, capture_each, unowned
from atom.model_engine.input_batch import InputBatch, SampledRows, is_even
from atom.model_ops.kernels.select import Kernels
from atom.model_ops.step import StepInputs

_SMALL_SIZES = (1, 2, 4, 8)
_SIZE_STEP = 16
_MAX_SIZE = 512
# Tokens of a row.
_QUERY_LEN = 1

# The model's part of a step: logits [G, V] and the greedy tokens [G] of decode rows.
DecodeFunction = Callable[[StepInputs], tuple[torch.Tensor, torch.Tensor]]


def capture_sizes(asked: Sequence[int] | None, max_num_seqs: int) -> list[int]:
    """Ascending batch sizes to capture. `asked`: --cudagraph-capture-sizes; for one above max_num_seqs that does."""
    if asked is not None:
        return sorted({min(size, max_num_seqs) for size in asked})
    largest = min(max_num_seqs, _MAX_SIZE)
    sizes = (*_SMALL_SIZES, *range(_SIZE_STEP, largest, _SIZE_STEP))
    return [*(size for size in sizes if size < largest), largest]


def why_no_graphs(config: Config, device: torch.device, kernels: Kernels) -> str | None:
    """Why decodes run without graphs, None when they can have them."""
    if device.type != "cuda":
        return "a CPU has none"
    if config.enforce_eager:
        return "--enforce-eager"
    if not capture_sizes(config.compilation.cudagraph_capture_sizes, config.max_num_seqs):
        return "--cudagraph-capture-sizes leaves no size"
    if kernels.choice["attention_plan"] == "reference":
        return "the reference's attention plans its steps on the host"
    return None


@dataclass(frozen=True, slots=True)
class _Graphs:
    """Of one size. rows [2, G] int64: slots and context lengths, the input; logits [G, V] and tokens [G] int64, the
    outputs. uneven: the graph for sequences of very unequal lengths, where that is another one.
    """

    even: torch.cuda.CUDAGraph
    uneven: torch.cuda.CUDAGraph
    rows: torch.Tensor
    logits: torch.Tensor
    tokens: torch.Tensor


class DecodeGraphs:
    """Graphs of several sizes over one model and one state; they share their memory, so one runs at a time."""

    def __init__(
        self,
        sizes: Sequence[int],
        decode: DecodeFunction,
        inputs: InputBatch,
        pool: Any,
        traces: CaptureTraces | None = None,
        *,
        has_two: bool = False,
    ) -> None:
        """Capture into the memory of `pool`. `sizes` ascend. has_two: steps of unequal lengths have graphs of their
        own. Raises torch.OutOfMemoryError.
        """
        self._sizes = list(sizes)
        self._inputs = inputs
        self._decode = decode
        self._pool = pool
        self._has_two = has_two
        self._graphs = capture_each(
            "decode", self._sizes[::-1], self._capture, lambda size: (size, _QUERY_LEN), inputs.device, traces
        )

    def _capture(self, size: int) -> _Graphs:
        rows = upload(self._padded(np.empty(0, np.int64), np.empty(0, np.int64), size), self._inputs.device)
        even, (logits, tokens) = capture(lambda: self._step(rows, is_even=True), self._pool)
        uneven = even
        if self._has_two and size > 1:
            # Into the same outputs, which a copy costs little, since logits are most of a graph's memory.
            def step() -> None:
                for kept, new in zip((logits, tokens), self._step(rows, is_even=False), strict=True):
                    kept.copy_(new)

            uneven, _ = capture(step, self._pool)
        # One graph runs at a time: those of smaller sizes leave theirs where the largest does.
        return _Graphs(even, uneven, rows, unowned(logits), unowned(tokens))

    def _step(self, rows: torch.Tensor, is_even: bool) -> tuple[torch.Tensor, torch.Tensor]:
        slots, contexts = rows
        logits, tokens = self._decode(self._inputs.decode_rows(slots, contexts, is_even))
        self._inputs.last_tokens.index_copy_(0, slots, tokens)
        return logits, tokens

    def _padded(self, slots: np.ndarray, contexts: np.ndarray, size: int) -> np.ndarray:
        """[2, size] int64; rows beyond the batch are the padding slot's and have a context of -1."""
        rows = np.full((2, size), -1, dtype=np.int64)
        rows[0] = self._inputs.padding_slot
        rows[0, : len(slots)] = slots
        rows[1, : len(contexts)] = contexts
        return rows

    def fits(self, batch: ScheduledBatch) -> bool:
        """Whether a graph can run the batch: decodes of one token, not too many."""
        num_rows = batch.num_rows
        return 0 < num_rows == batch.num_decodes == batch.num_tokens and num_rows <= self._sizes[-1]

    def size(self, batch: ScheduledBatch) -> int:
        """Rows of the graph that runs a batch that fits."""
        return self._sizes[bisect.bisect_left(self._sizes, batch.num_rows)]

    def outputs(self) -> dict[int, tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
        """Where the graph of each size leaves its slots [G], its greedy tokens [G] and its logits [G, V]."""
        return {size: (made.rows[0], made.tokens, made.logits) for size, made in self._graphs.items()}

    def run(self, batch: ScheduledBatch, sampled: SampledRows) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits [B, V] and greedy tokens [B] of a batch that fits, whose rows all sample; valid until the next run."""
        num_rows, size = batch.num_rows, self.size(batch)
        graphs = self._graphs[size]
        overwrite(graphs.rows, self._padded(batch.slots, batch.context_lens, size))
        (graphs.even if is_even(batch.context_lens) else graphs.uneven).replay()
        return graphs.logits[:num_rows], graphs.tokens[:num_rows]
