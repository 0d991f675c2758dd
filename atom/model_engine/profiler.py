"""Traces of torch's profiler: when one is recorded and how its steps are named.

Owns the order idle, recording, writing. Knows neither the engine's loop nor HTTP: `start`, `stop`
and `annotate` are called in the thread that runs the model (torch records the thread that starts it), `write` in
another, so that steps go on while a large trace is written.
"""

from __future__ import annotations

import logging
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from atom import envs
from atom.model_engine.batch import ScheduledBatch
from atom.model_engine.messages import EngineCallError
from atom.model_engine.step_label import step_label
from atom.model_engine.trace_files import trace_name, write_trace

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Recording:
    """A recording that has ended and is still in memory. elapsed: seconds from start to stop."""

    profile: profile
    file: Path
    elapsed: float


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace on disk: its folder, the file's name in it, and the seconds that it covers."""

    trace_dir: str
    file: str
    elapsed: float


class Profiler:
    """Records one worker's steps, one trace at a time."""

    def __init__(self, folder: Path | None, model: str, device: torch.device) -> None:
        """folder: where this worker's traces go, made when it is missing; None refuses every start.

        ValueError: the folder can not be made.
        """
        self._folder = None if folder is None else folder.resolve()
        self._model = model
        self._activities = [ProfilerActivity.CPU]
        if device.type == "cuda":
            self._activities.append(ProfilerActivity.CUDA)
        self._state = "idle"  # -> recording -> writing -> idle
        self._profile: profile | None = None
        self._file = Path()
        self._began = 0.0
        self._with_sums = False
        if self._folder is not None:
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise ValueError(f"--torch-profiler-dir: {self._folder} can not be made: {error.strerror}") from None

    def start(self) -> None:
        """Begin to record. EngineCallError: without a folder, while recording, or while the last trace is written."""
        folder = self._given_folder()
        if self._state == "recording":
            raise EngineCallError("the profiler is already running", "profiler_running")
        if self._state == "writing":
            raise EngineCallError("the profiler is still writing its last trace", "profiler_writing")
        more = envs.ATOM_PROFILER_MORE
        self._with_sums = envs.ATOM_ENABLE_DETAILED_ANNOTATION
        started = profile(activities=self._activities, record_shapes=more, profile_memory=more, with_stack=more)
        started.start()
        self._profile, self._state = started, "recording"
        self._file = folder / trace_name(self._model, datetime.now())
        self._began = time.monotonic()
        logger.info("the profiler records")

    def annotate(self, batch: ScheduledBatch, graph_batch_size: int | None = None) -> AbstractContextManager[Any]:
        """A context that names the step in the trace, if one is being recorded. graph_batch_size: as in step_label."""
        if self._profile is None:
            return nullcontext()
        return record_function(step_label(batch, graph_batch_size, self._with_sums))

    def stop(self) -> Recording:
        """End the recording; `write` must follow. EngineCallError when nothing is recorded."""
        self._given_folder()
        stopped, self._profile = self._profile, None
        if stopped is None:
            if self._state == "writing":
                raise EngineCallError("the profiler has stopped and is still writing its trace", "profiler_writing")
            raise EngineCallError("the profiler is not running", "profiler_not_running")
        elapsed = time.monotonic() - self._began
        self._state = "idle"  # should torch fail here, the next start is free to try
        stopped.stop()
        self._state = "writing"
        return Recording(stopped, self._file, elapsed)

    def write(self, recording: Recording) -> Trace:
        """Write the trace. OSError when that fails; the recording is lost then."""
        began = time.monotonic()
        try:
            write_trace(recording.profile, recording.file)
        finally:
            self._state = "idle"
        file, seconds = recording.file, time.monotonic() - began
        logger.info("%.1f s of trace in %s, written in %.1f s", recording.elapsed, file, seconds)
        return Trace(str(file.parent), file.name, round(recording.elapsed, 6))

    def _given_folder(self) -> Path:
        if self._folder is None:
            raise EngineCallError(
                "profiling is off: start with --torch-profiler-dir (or ATOM_TORCH_PROFILER_DIR)", "profiler_disabled"
            )
        return self._folder

    def close(self) -> None:
        """End a recording that nobody stopped; it is dropped. In the thread that runs the model."""
        abandoned, self._profile = self._profile, None
        if abandoned is not None:
            logger.warning("the profiler was never stopped; its trace is dropped")
            self._state = "idle"
            abandoned.stop()
