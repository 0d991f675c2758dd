"""Short steps with prefill rows as captured graphs, by places for decodes and for prefill tokens.

Owns which shapes there are, and their static inputs and outputs. A step runs in the smallest graph that holds it: what
launching ten kernels a layer costs the host, which for few tokens is more than the device's work, becomes one copy and
one launch. Prompts' attention reads the cache, whether or not there are tokens before the chunk. Greedy tokens are
sampled in the graph and left in the slots. Prompts whose log probabilities are wanted need all hidden states: no graph.
Shapes: G rows of a graph, R rows that sample, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from atom.hf_config import HFConfig
from atom.model_engine.batch import ScheduledBatch
from atom.model_engine.capture_traces import CaptureTraces
from atom.model_engine.device_copies import overwrite, upload
from atom.model_engine.graph_capture import capture, capture_each
from atom.model_engine.input_batch import InputBatch, SampledRows
from atom.model_engine.padded_steps import StepShape
from atom.model_engine.sampling_state import OFF
from atom.model_ops.step import StepInputs

# Prefill rows of a graph, and decodes beside them. Places cost a program or two where they are padding.
_MAX_CHUNKS = 8
_DECODES = (8, 32, 128)
# A graph of one token would be named as a decode graph is, and prompts of one token are rare.
_MIN_TOKENS = 2

# Sizes by default, up to the work that takes a GPU as long as launching its kernels takes the host: 0.4 ms a layer, in
# which an H200 does so many operations.
_SIZES = (16, 32, 64, 128, 256, 384, 512, 768, 1024, 1536, 2048)
_OPERATIONS_WHILE_LAUNCHING = 0.4e-3 * 600e12

# The model's part of a step: logits [G, V] and the greedy tokens [G] after the tokens [G] of it.
ForwardFunction = Callable[[StepInputs, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]


def default_sizes(model: HFConfig) -> list[int]:
    """Prompt tokens that are worth a graph: fewer of a large model, whose layers keep the device busy for longer."""
    heads = 2 * model.hidden_size * model.head_dim * (model.num_heads + model.num_kv_heads)
    a_token = 2 * (heads + 3 * model.hidden_size * model.intermediate_size)
    return [size for size in _SIZES if size * a_token <= _OPERATIONS_WHILE_LAUNCHING]


def step_shapes(asked: Sequence[int], max_num_seqs: int, max_num_batched_tokens: int) -> list[StepShape]:
    """Shapes to capture, the smallest first. asked: --cudagraph-prefill-sizes; for one that is more tokens than a step
    may have, those.
    """
    tokens = sorted({min(size, max_num_batched_tokens) for size in asked} - set(range(_MIN_TOKENS)))
    # Beside a prefill row there is one decode less.
    largest = min(max_num_seqs - 1, _DECODES[-1])
    decodes = sorted({0, largest, *(count for count in _DECODES if count < largest)})
    chunks = min(_MAX_CHUNKS, max_num_seqs)
    return [StepShape(count, chunks, size) for count in decodes for size in tokens]


@dataclass(frozen=True, slots=True)
class _Graph:
    """packed: the input, as StepShape.pack makes it."""

    graph: Any
    packed: torch.Tensor


class PrefillGraphs:
    """Graphs of several shapes over one model and one state; they share memory and outputs, so one runs at a time."""

    def __init__(
        self,
        shapes: Sequence[StepShape],
        forward: ForwardFunction,
        inputs: InputBatch,
        pool: Any,
        traces: CaptureTraces | None = None,
    ) -> None:
        """Capture into the memory of `pool`. `shapes` as step_shapes makes them. Raises torch.OutOfMemoryError."""
        self._inputs = inputs
        self._forward = forward
        self._pool = pool
        self._shapes = list(shapes)
        # One output for all: logits are the largest part of a small graph's memory.
        logits, tokens = self._sample(self._shapes[-1], self._padding(self._shapes[-1]))
        self._logits, self._tokens = torch.empty_like(logits), torch.empty_like(tokens)
        self._graphs = capture_each(
            "prefill", self._shapes[::-1], self._capture, lambda shape: (shape.num_rows, shape.num_tokens),
            inputs.device, traces,
        )  # fmt: skip

    def _padding(self, shape: StepShape) -> torch.Tensor:
        return upload(shape.padding(self._inputs.padding_slot), self._inputs.device)

    def _capture(self, shape: StepShape) -> _Graph:
        packed = self._padding(shape)
        return _Graph(capture(lambda: self._run(shape, packed), self._pool)[0], packed)

    def _run(self, shape: StepShape, packed: torch.Tensor) -> None:
        logits, tokens = self._sample(shape, packed)
        self._logits[: shape.num_rows] = logits
        self._tokens[: shape.num_rows] = tokens

    def _sample(self, shape: StepShape, packed: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits [G, V] and tokens [G] of a packed step; the tokens go to the slots, too."""
        fields = shape.cut(packed)
        logits, tokens = self._forward(shape.step(fields, self._inputs), fields.sampled)
        self._inputs.last_tokens.index_copy_(0, fields.sampled_slots, tokens)
        return logits, tokens

    def fits(self, batch: ScheduledBatch) -> bool:
        """Whether a graph can run the batch. Right before and after the batch's admissions are applied."""
        return self._shapes[-1].holds(batch) and not self._scores_prompts(batch)

    def _scores_prompts(self, batch: ScheduledBatch) -> bool:
        slots = batch.slots[batch.num_decodes :]
        asked = self._inputs.sampling.num_prompt_logprobs[slots] != OFF
        for admission in batch.admissions:
            asked[slots == admission.slot] = admission.sampling.prompt_logprobs is not None
        return bool(asked.any())

    def _shape(self, batch: ScheduledBatch) -> StepShape:
        return next(shape for shape in self._shapes if shape.holds(batch))

    def size(self, batch: ScheduledBatch) -> int:
        """Rows of the graph that runs a batch that fits."""
        return self._shape(batch).num_rows

    def run(self, batch: ScheduledBatch, sampled: SampledRows) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits [R, V] and greedy tokens [R] of a batch that fits, valid until the next run."""
        shape = self._shape(batch)
        graph = self._graphs[shape]
        overwrite(graph.packed, shape.pack(batch, sampled, self._inputs.padding_slot))
        graph.graph.replay()
        num_sampled = len(sampled.rows)
        return self._logits[:num_sampled], self._tokens[:num_sampled]
