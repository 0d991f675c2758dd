"""Drawing the tokens of decode steps as captured graphs: the many small launches of it cost the host one copy and one.

Owns their inputs: a row's parameters, packed. They read what the decode graph of their size has left, and put their
tokens into the slots over its greedy ones.
Shapes: G rows of a graph, V vocabulary, B rows of a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from atom.model_engine.decode_graphs import DecodeGraphs
from atom.model_engine.device_copies import overwrite, upload
from atom.model_engine.graph_capture import capture, capture_each
from atom.model_engine.input_batch import InputBatch, SampledRows
from atom.model_engine.memory_profile import explain_out_of_memory
from atom.model_engine.sampling_state import unpack_draws
from atom.model_engine.step_graphs import StepGraphs
from atom.model_ops.kernels.select import Kernels
from atom.model_ops.sampler import RandomRows, Sampler

# Slots [G] and greedy tokens [G] of a decode graph, and its logits [G, V].
DecodeOutputs = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


@dataclass(frozen=True, slots=True)
class _Graph:
    """packed: the input, as SamplingState.pack makes it; tokens [G] int64, the output."""

    graph: torch.cuda.CUDAGraph
    packed: torch.Tensor
    tokens: torch.Tensor


class DrawGraphs:
    """Graphs of several sizes over one state; they share their memory, so one runs at a time."""

    def __init__(
        self,
        decodes: Mapping[int, DecodeOutputs],
        draw: Callable[[torch.Tensor, RandomRows], torch.Tensor],
        inputs: InputBatch,
    ) -> None:
        """decodes: what the graph of each size leaves. draw: tokens of logits. Raises torch.OutOfMemoryError."""
        self._inputs = inputs
        self._draw = draw
        # Not the decode graphs' own, which holds what they leave for free as soon as it is there.
        self._pool = torch.cuda.graph_pool_handle()
        self._graphs = capture_each(
            "draw", sorted(decodes, reverse=True), lambda size: self._capture(size, decodes[size]),
            lambda size: (size, 1), inputs.device, None,
        )  # fmt: skip

    def _capture(self, size: int, outputs: DecodeOutputs) -> _Graph:
        none = np.empty(0, np.int64)
        packed = upload(self._inputs.sampling.pack(none, none, size), self._inputs.device)
        graph, (tokens,) = capture(lambda: self._step(packed, *outputs), self._pool)
        return _Graph(graph, packed, tokens)

    def _step(
        self, packed: torch.Tensor, slots: torch.Tensor, greedy: torch.Tensor, logits: torch.Tensor
    ) -> tuple[torch.Tensor]:
        is_drawn, random = unpack_draws(packed, len(slots))
        tokens = torch.where(is_drawn, self._draw(logits, random), greedy)
        self._inputs.last_tokens.index_copy_(0, slots, tokens)
        return (tokens,)

    def run(self, size: int, sampled: SampledRows) -> torch.Tensor:
        """Tokens [B] after the decode graph of this size, whose rows all sample: drawn, or greedy where rows are.

        Valid until the next run.
        """
        graph = self._graphs[size]
        overwrite(graph.packed, self._inputs.sampling.pack(sampled.slots, sampled.num_outputs, size))
        graph.graph.replay()
        return graph.tokens[: len(sampled.slots)]


def capture_draws(graphs: Sequence[StepGraphs], kernels: Kernels, inputs: InputBatch) -> dict[StepGraphs, DrawGraphs]:
    """By the graphs of decodes, those that draw after them; none where kernels wait for the device.

    MemoryError that says what to change.
    """
    if any(kernels.choice[name] != "triton" for name in ("philox_uniform", "sample")):
        return {}
    sampler = Sampler(kernels)
    with explain_out_of_memory("capturing draw graphs", "give a smaller --gpu-memory-utilization, or --enforce-eager"):
        return {
            decodes: DrawGraphs(decodes.outputs(), sampler, inputs)
            for decodes in graphs
            if isinstance(decodes, DecodeGraphs)
        }
