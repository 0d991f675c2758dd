"""A trace of every graph capture: what a graph runs, operation by operation, which its replay does not show.

Owns the files' names and what a trace covers. Knows nothing of graphs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from atom.model_engine.trace_files import write_trace

FOLDER = "capture_traces"


class CaptureTraces:
    """Traces in `capture_traces/` of a worker's folder, one file a captured graph."""

    def __init__(self, worker_folder: Path, rank: int, device: torch.device) -> None:
        """rank: the worker's, a part of the names."""
        self.folder = worker_folder / FOLDER
        self._rank = rank
        self._activities = [ProfilerActivity.CPU]
        if device.type == "cuda":
            self._activities.append(ProfilerActivity.CUDA)

    @contextmanager
    def record(self, batch_size: int, query_len: int) -> Iterator[None]:
        """Trace what runs inside: a graph of `batch_size` rows of `query_len` tokens each, warmed up and captured.

        OSError: the file can not be written. Nothing is written when the inside raises.
        """
        with profile(activities=self._activities) as recorded, record_function(f"capture_graph_bs_{batch_size}"):
            yield
        write_trace(recorded, self.folder / f"bs_{batch_size}_q_{query_len}_rank{self._rank}.json.gz")
