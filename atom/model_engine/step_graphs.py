"""The captured graphs of a runner: of decodes, and of short steps with prefill rows.

Owns which of them there are. Knows neither what is in a graph nor how a step runs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

import torch

from atom.config import Config
from atom.model_engine.batch import ScheduledBatch
from atom.model_engine.capture_traces import CaptureTraces
from atom.model_engine.decode_graphs import DecodeGraphs, capture_sizes, why_no_graphs
from atom.model_engine.input_batch import InputBatch, SampledRows
from atom.model_engine.memory_profile import explain_out_of_memory
from atom.model_engine.prefill_graphs import PrefillGraphs, default_sizes, step_shapes
from atom.model_engine.trace_files import worker_folder
from atom.model_ops.kernels.select import Kernels

logger = logging.getLogger(__name__)


class StepGraphs(Protocol):
    """Graphs of one kind."""

    def fits(self, batch: ScheduledBatch) -> bool:
        """Whether a graph can run the batch."""
        ...

    def size(self, batch: ScheduledBatch) -> int:
        """Rows of the graph that runs a batch that fits."""
        ...

    def run(self, batch: ScheduledBatch, sampled: SampledRows) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits [R, V] and greedy tokens [R] of the rows that sample, valid until the next run of any graph."""
        ...


def capture_graphs(
    config: Config,
    device: torch.device,
    kernels: Kernels,
    forward: Callable[..., tuple[torch.Tensor, torch.Tensor]],
    inputs: InputBatch,
) -> tuple[StepGraphs, ...]:
    """Capture what can be; none on a CPU. forward: of a step and the tokens to sample after, all by default.

    MemoryError that says what to change; ValueError for --mark-trace where nothing is captured.
    """
    reason = why_no_graphs(config, device, kernels)
    if reason is not None:
        if config.mark_trace:
            raise ValueError(f"--mark-trace: there are no graphs whose capture it could trace ({reason})")
        if device.type == "cuda":
            logger.info("no graphs: %s", reason)
        return ()
    traces = None
    if config.mark_trace and (folder := worker_folder(config.torch_profiler_dir, config.parallel)):
        traces = CaptureTraces(folder, 0, device)
    pool = torch.cuda.graph_pool_handle()
    sizes = capture_sizes(config.compilation.cudagraph_capture_sizes, config.max_num_seqs)
    # Other backends do the same whatever the lengths are.
    has_two = kernels.choice["attention_plan"] == "triton"
    remedy = "give a smaller --gpu-memory-utilization, fewer {}, or --enforce-eager"
    with explain_out_of_memory("capturing decode graphs", remedy.format("--cudagraph-capture-sizes")):
        decodes = DecodeGraphs(sizes, forward, inputs, pool, traces, has_two=has_two)
    asked = config.compilation.cudagraph_prefill_sizes
    wanted = default_sizes(config.hf) if asked is None else asked
    shapes = step_shapes(wanted, config.max_num_seqs, config.max_num_batched_tokens)
    reason = why_no_prefill_graphs(kernels)
    if not shapes or reason is not None:
        if asked:
            logger.warning("--cudagraph-prefill-sizes: no prefill graphs, %s", reason or "no step has such a size")
        return (decodes,)
    with explain_out_of_memory("capturing prefill graphs", remedy.format("--cudagraph-prefill-sizes")):
        return (decodes, PrefillGraphs(shapes, forward, inputs, pool, traces))


def why_no_prefill_graphs(kernels: Kernels) -> str | None:
    """Why steps with prefill rows can not be captured, None where they can."""
    backend = kernels.choice["attention_plan"]
    return None if backend == "triton" else f"{backend} plans the attention of prompts on the host"
