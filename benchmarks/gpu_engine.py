"""Cells of one model in the engine: start, prefills, mixed steps, decoded tokens, a decode step's kernels.

A decoded token's time lies between the last sequence's first token and the first sequence's last; a prefill's is host
time from the request to its first token.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from atom.config import Config
from atom.model_engine.engine_core import EngineCore
from atom.model_engine.messages import EngineRequest
from atom.sampling_params import SamplingParams
from benchmarks.gpu_shapes import PROMPT, Shape

_PROFILED_STEPS = 20
_MIXED_STEPS, _MIXED_BEFORE = 16, 4
_LISTED_KERNELS = 14


@contextlib.contextmanager
def engine(shape: Shape, device: torch.device, max_num_seqs: int, **settings: Any) -> Iterator[EngineCore]:
    """A core with random weights, ended afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "config.json").write_text(json.dumps(shape.config()))
        given = {
            "max_model_len": 9216, "max_num_batched_tokens": 16384, "enable_prefix_caching": False,
            "enable_log_stats": False, "quantization": shape.quantization, "kv_cache_dtype": shape.kv_cache_dtype,
            "max_num_seqs": max_num_seqs,
        }  # fmt: skip
        core = EngineCore.create(
            Config.resolve(folder, load_dummy="xavier", device=device.type, **{**given, **settings})
        )
    try:
        yield core
    finally:
        core.shutdown()


def requests(shape: Shape, count: int, length: int, answer: int, is_random: bool = False) -> list[EngineRequest]:
    """Random prompts, greedy answers or such as most clients ask for."""
    ids = np.random.default_rng().integers(0, shape.vocab, (count, length))
    given = {"temperature": 0.7, "top_p": 0.9, "top_k": 50} if is_random else {"temperature": 0.0}
    sampling = SamplingParams(max_tokens=answer, ignore_eos=True, **given)
    return [EngineRequest(f"{time.monotonic_ns()}-{i}", prompt.tolist(), sampling) for i, prompt in enumerate(ids)]


def prefill_seconds(core: EngineCore, shape: Shape, count: int, length: int) -> float:
    """From the first request to the last one's only token, median of three after one."""
    return statistics.median([_prefill(core, shape, count, length) for _ in range(4)][1:])


def _prefill(core: EngineCore, shape: Shape, count: int, length: int) -> float:
    given = requests(shape, count, length, 1)
    start = time.perf_counter()
    for request in given:
        core.add(request)
    left = count
    while left:
        left -= sum(delta.finish_reason is not None for delta in core.step())
    return time.perf_counter() - start


def decode_seconds(
    core: EngineCore, shape: Shape, batch: int, answer: int, prompt: int = PROMPT, is_random: bool = False
) -> float:
    """A token's time."""
    for request in requests(shape, batch, prompt, answer, is_random):
        core.add(request)
    counts: dict[str, int] = {}
    begin = begun = ended = 0.0
    left = batch
    while left:
        deltas = core.step()
        now = time.perf_counter()
        for delta in deltas:
            counts[delta.request_id] = counts.get(delta.request_id, 0) + len(delta.token_ids)
            left -= delta.finish_reason is not None
        if not begin and len(counts) == batch:
            begin, begun = now, max(counts.values())
        if not ended and begin and counts and max(counts.values()) == answer:
            ended = now
    return (ended - begin) / max(1, answer - begun)


def mixed_seconds(core: EngineCore, shape: Shape, batch: int, length: int) -> float:
    """A step's time in which `batch` sequences decode and a prompt of `length` tokens is computed."""
    steps = _MIXED_BEFORE + _MIXED_STEPS
    for request in requests(shape, batch, length, steps + 16):
        core.add(request)
    seen: set[str] = set()
    while len(seen) < batch:
        seen.update(delta.request_id for delta in core.step())
    start = 0.0
    for step, request in enumerate(requests(shape, steps, length, 1)):
        if step == _MIXED_BEFORE:
            start = time.perf_counter()
        core.add(request)
        core.step()
    found = (time.perf_counter() - start) / _MIXED_STEPS
    while core.has_work:
        core.step()
    return found


def decode_kernels(core: EngineCore, shape: Shape, batch: int, answer: int, prompt: int = PROMPT) -> dict[str, float]:
    """Seconds a decode step by kernel, the longest first, with their sum and the step's own time."""
    for request in requests(shape, batch, prompt, answer):
        core.add(request)
    seen: set[str] = set()
    while len(seen) < batch:
        seen.update(delta.request_id for delta in core.step())
    recorded = Recorded(core)
    with recorded.profile:
        start = time.perf_counter()
        for _ in range(_PROFILED_STEPS):
            core.step()
        wall = time.perf_counter() - start
    while core.has_work:
        core.step()
    return recorded.seconds(wall, _PROFILED_STEPS)


def prefill_kernels(core: EngineCore, shape: Shape, count: int, length: int) -> dict[str, float]:
    """The same of prompts that were computed once before, without a decode step."""
    _prefill(core, shape, count, length)
    recorded = Recorded(core)
    with recorded.profile:
        wall = _prefill(core, shape, count, length)
    return recorded.seconds(wall, 1)


class Recorded:
    """Times of kernels, by name."""

    def __init__(self, core: EngineCore) -> None:
        on_gpu, kind = core.info.device == "cuda", torch.profiler.ProfilerActivity
        self.profile = torch.profiler.profile(activities=[kind.CUDA if on_gpu else kind.CPU])
        self._own = "self_device_time_total" if on_gpu else "self_cpu_time_total"

    def seconds(self, wall: float, steps: int) -> dict[str, float]:
        """A step of `steps` that took `wall` in all: its own time, the kernels' sum, and the longest kernels."""
        times = {event.key: getattr(event, self._own) / 1e6 for event in self.profile.key_averages()}
        listed = sorted(times.items(), key=lambda item: -item[1])[:_LISTED_KERNELS]
        whole = {"the step": wall, "all kernels": sum(times.values())}
        return {name: value / steps for name, value in (*whole.items(), *listed)}
