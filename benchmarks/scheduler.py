"""What the engine core costs on the host: scheduler, block manager and result handling, per sequence and step.

The executor is taken out of the time: its results are made up between two measurements. Two loads: a steady batch of
decodes, and one where sequences come and go as in serving (128 tokens in, 128 out, half of the prompt shared).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from atom.model_engine.batch import ScheduledBatch, StepResult
from atom.model_engine.block_manager import BlockManager
from atom.model_engine.messages import EngineRequest, StepOutput
from atom.model_engine.scheduler import Scheduler
from atom.model_engine.scheduler_limits import SchedulerLimits
from atom.sampling_params import SamplingParams

NUM_RUNNING = 256
BLOCK_SIZE = 16
PROMPT_LEN = 128
WARM_UP_STEPS = 100
BAR = 10.0


@dataclass
class Timing:
    """Seconds of each step: schedule, apply, and encoding plus decoding the step's message."""

    schedule: list[float] = field(default_factory=list)
    apply: list[float] = field(default_factory=list)
    message: list[float] = field(default_factory=list)
    num_rows: list[int] = field(default_factory=list)


class Load:
    """A scheduler with NUM_RUNNING sequences; one that ends is replaced by a new one."""

    def __init__(self, output_len: Callable[[int], int]) -> None:
        limits = SchedulerLimits(NUM_RUNNING, 16384, 4096, frozenset({0}))
        self.scheduler = Scheduler(limits, BlockManager(16384, BLOCK_SIZE))
        self.random = np.random.default_rng(0)
        self.shared = self.random.integers(1, 30000, PROMPT_LEN // 2).tolist()
        self.output_len = output_len
        self.num_requests = 0
        self.in_flight: list[ScheduledBatch] = []
        for _ in range(NUM_RUNNING):
            self.request()

    def request(self) -> None:
        """Queue one more request."""
        prompt = self.shared + self.random.integers(1, 30000, PROMPT_LEN // 2).tolist()
        sampling = SamplingParams(max_tokens=self.output_len(self.num_requests))
        self.scheduler.add(EngineRequest(f"cmpl-{self.num_requests:024x}-0", prompt, sampling))
        self.num_requests += 1

    def step(self, timing: Timing) -> None:
        """One overlapped step: schedule, then the result of the step before."""
        began = time.perf_counter()
        batch = self.scheduler.schedule()
        timing.schedule.append(time.perf_counter() - began)
        if batch is None:
            raise RuntimeError("a full scheduler had nothing to run")
        self.in_flight.append(batch)
        if len(self.in_flight) < 2:
            return
        result = self.result(self.in_flight.pop(0))
        began = time.perf_counter()
        deltas = self.scheduler.apply(result)
        timing.apply.append(time.perf_counter() - began)
        began = time.perf_counter()
        decode(encode(StepOutput(deltas, self.scheduler.stats())))
        timing.message.append(time.perf_counter() - began)
        timing.num_rows.append(len(result.num_tokens))
        for delta in deltas:
            if delta.finish_reason is not None:
                self.request()

    def result(self, batch: ScheduledBatch) -> StepResult:
        """What a device would return: random tokens."""
        tokens = self.random.integers(1, 30000, (batch.num_rows, 1)).astype(np.int32)
        return StepResult(batch.step, tokens, batch.samples.astype(np.int32))


encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(StepOutput).decode


def measure(load: Load, num_steps: int) -> Timing:
    """Times of `num_steps` steps, after a warm-up."""
    for _ in range(WARM_UP_STEPS):
        load.step(Timing())
    timing = Timing()
    for _ in range(num_steps):
        load.step(timing)
    return timing


def run() -> list[dict[str, Any]]:
    """Microseconds a sequence and step at NUM_RUNNING running sequences."""
    loads = {
        "decodes only": (Load(lambda _: 3000), 1000),
        "sequences come and go": (Load(lambda index: 64 + index % 129), 1000),
    }
    rows: list[dict[str, Any]] = []
    for name, (load, num_steps) in loads.items():
        timing = measure(load, num_steps)
        count = statistics.mean(timing.num_rows)
        parts = {key: 1e6 * statistics.mean(getattr(timing, key)) / count for key in ("schedule", "apply", "message")}
        total = parts["schedule"] + parts["apply"]
        rows.append({"name": f"{name}: schedule + apply", "value": total, "unit": "us/seq/step", "bar": BAR})
        rows += [{"name": f"{name}: {key}", "value": value, "unit": "us/seq/step"} for key, value in parts.items()]
    return rows
