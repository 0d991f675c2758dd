"""Capturing functions as CUDA graphs.

Owns how one is captured and what is told of it: a progress bar, a line of the log, traces. Knows no model.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, TypeVar

import torch
from tqdm import tqdm

from atom.model_engine.capture_traces import CaptureTraces

logger = logging.getLogger(__name__)

_Key = TypeVar("_Key")
_Graph = TypeVar("_Graph")
_Result = TypeVar("_Result")


def capture(call: Callable[[], _Result], pool: Any) -> tuple[torch.cuda.CUDAGraph, _Result]:
    """`call` as a graph in the memory of `pool`, and what it returned: tensors that every replay overwrites."""
    call()  # compiles kernels, which a capture can not
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool):
        result = call()
    return graph, result


def unowned(tensor: torch.Tensor) -> torch.Tensor:
    """A contiguous tensor's memory, without keeping it: what is captured into the pool afterwards may take it, too."""
    if not tensor.is_cuda:
        return tensor
    interface = {"data": (tensor.data_ptr(), False), "shape": (tensor.nbytes,), "typestr": "|u1", "version": 2}
    memory = SimpleNamespace(__cuda_array_interface__=interface)
    return torch.as_tensor(memory, device=tensor.device).view(tensor.dtype).view(tensor.shape)


def capture_each(
    kind: str,
    keys: Sequence[_Key],
    capture_one: Callable[[_Key], _Graph],
    sizes: Callable[[_Key], tuple[int, int]],
    device: torch.device,
    traces: CaptureTraces | None,
) -> dict[_Key, _Graph]:
    """A graph a key, in their order: the largest first, since smaller ones fit into the memory that it leaves.

    kind: what they are, for people. sizes: rows and tokens of a graph, which name its trace.
    """
    graphs = {}
    start = time.monotonic()
    free = torch.cuda.mem_get_info(device)[0]
    bar = tqdm(keys, desc=f"Capturing {kind} graphs", disable=not sys.stderr.isatty())
    for key in bar:
        with nullcontext() if traces is None else traces.record(*sizes(key)):
            graphs[key] = capture_one(key)
    taken = (free - torch.cuda.mem_get_info(device)[0]) / 2**30
    logger.info("captured %d %s graphs, %.1f s, %.2f GiB", len(keys), kind, time.monotonic() - start, taken)
    return graphs
