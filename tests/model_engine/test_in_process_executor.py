"""The in-process executor: order, errors, the end."""

from __future__ import annotations

import gc
import json
import threading
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from atom.config import Config
from atom.model_engine import profiler
from atom.model_engine.batch import ScheduledBatch, SlotAdmission
from atom.model_engine.executor import in_process
from atom.model_engine.executor.in_process import InProcessExecutor
from atom.model_engine.kv_cache import CacheSizeError
from atom.model_engine.messages import EngineCallError
from tests.model_engine.test_profiler import events_of, labels_of
from tests.models.drive import GREEDY
from tests.models.tiny import make_model, save_model


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Config:
    torch.set_num_threads(1)
    folder = save_model(make_model("llama"), Path(tmp_path_factory.mktemp("model")))
    return Config.resolve(str(folder), device="cpu", max_num_seqs=2, kv_cache_memory=1 << 20, max_model_len=64)


@pytest.fixture
def executor(config: Config) -> Iterator[InProcessExecutor]:
    made = InProcessExecutor(config)
    made.start()
    yield made
    made.shutdown()


def prefill(step: int, slot: int = 0) -> ScheduledBatch:
    tokens = np.array([5, 6, 7], dtype=np.int32)
    admission = SlotAdmission(slot, tokens.tolist(), 3, [slot], GREEDY, 0)
    lens, none = np.array([3], dtype=np.int32), np.empty((0, 3), dtype=np.int32)
    slots, yes = np.array([slot], dtype=np.int32), np.array([True])
    return ScheduledBatch(step, slots, lens, lens * 0, yes, 0, tokens, none, [admission])


def decode(step: int, context: int) -> ScheduledBatch:
    one, none = np.ones(1, dtype=np.int32), np.empty((0, 3), dtype=np.int32)
    return ScheduledBatch(step, one * 0, one, one * context, np.array([True]), 1, one[:0], none)


def test_steps_can_be_launched_ahead_of_their_results(executor: InProcessExecutor) -> None:
    executor.launch(prefill(0))
    executor.launch(decode(1, 3))
    executor.launch(decode(2, 4))
    ahead = [executor.collect() for _ in range(3)]
    assert [result.step for result in ahead] == [0, 1, 2]
    one_by_one = []
    for batch in (prefill(3), decode(4, 3), decode(5, 4)):
        executor.launch(batch)
        one_by_one.append(executor.collect())
    for first, second in zip(ahead, one_by_one, strict=True):
        assert first.token_ids.tolist() == second.token_ids.tolist()
        assert first.num_tokens.tolist() == [1]


def test_a_failed_step_raises_where_it_is_collected(executor: InProcessExecutor) -> None:
    executor.launch(prefill(0, slot=77))
    executor.launch(prefill(1))
    with pytest.raises(IndexError):
        executor.collect()
    assert executor.collect().step == 1


def test_unknown_operations_are_refused(executor: InProcessExecutor) -> None:
    with pytest.raises(ValueError, match="'dance'"):
        executor.call("dance", {})
    with pytest.raises(TypeError, match="tempo"):
        executor.call("start_profile", {"tempo": 1}).result()


def test_a_profile_covers_the_steps_between_start_and_stop(config: Config, tmp_path: Path) -> None:
    executor = InProcessExecutor(replace(config, torch_profiler_dir=tmp_path))
    executor.start()
    executor.launch(prefill(0))
    executor.collect()
    assert json.loads(executor.call("start_profile", {}).result()) is None
    with pytest.raises(EngineCallError, match="already running"):
        executor.call("start_profile", {}).result()
    for step in (1, 2):
        executor.launch(decode(step, 2 + step))
        executor.collect()
    [trace] = json.loads(executor.call("stop_profile", {}).result())
    executor.launch(decode(3, 5))
    executor.collect()
    executor.shutdown()
    assert Path(trace["trace_dir"]) == tmp_path / "rank_0"
    assert labels_of(events_of(trace["trace_dir"], trace["file"])) == ["decode[bs=1 tok=1 d=1]"] * 2


def test_steps_run_while_a_trace_is_written(config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writing, may_write = threading.Event(), threading.Event()
    write = profiler.write_trace

    def slow_write(*arguments: Any) -> None:
        writing.set()
        assert may_write.wait(120)
        write(*arguments)

    monkeypatch.setattr(profiler, "write_trace", slow_write)
    executor = InProcessExecutor(replace(config, torch_profiler_dir=tmp_path))
    executor.start()
    executor.call("start_profile", {}).result()
    stop = executor.call("stop_profile", {})
    assert writing.wait(120)
    executor.launch(prefill(0))
    assert executor.collect().step == 0
    for name in ("start_profile", "stop_profile"):
        with pytest.raises(EngineCallError, match="still writing"):
            executor.call(name, {}).result()
    assert not stop.done()
    may_write.set()
    assert len(json.loads(stop.result())) == 1
    executor.shutdown()


def test_a_shutdown_while_recording_leaves_the_profiler_to_the_next_engine(config: Config, tmp_path: Path) -> None:
    for _ in range(2):
        executor = InProcessExecutor(replace(config, torch_profiler_dir=tmp_path))
        executor.start()
        executor.call("start_profile", {}).result()
        executor.shutdown()
    assert list((tmp_path / "rank_0").iterdir()) == []


def test_shutdown_ends_the_worker_and_may_come_twice(config: Config) -> None:
    executor = InProcessExecutor(config)
    info, space = executor.start()
    assert info.num_blocks == space.num_blocks
    executor.shutdown()
    executor.shutdown()
    assert not any(thread.name == "model-runner" and thread.is_alive() for thread in threading.enumerate())
    InProcessExecutor(config).shutdown()


def test_a_start_that_fails_says_why(config: Config) -> None:
    executor = InProcessExecutor(replace(config, kv_cache_memory=1000))
    with pytest.raises(CacheSizeError, match="--max-model-len"):
        executor.start()
    executor.shutdown()


def test_the_end_gives_the_memory_back(executor: InProcessExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a garbage collector at hand, though graphs call their runner."""
    runner = executor._runner
    assert runner is not None
    runner.graphs = (SimpleNamespace(forward=runner._forward),)  # type: ignore[assignment]  # holds what graphs hold
    alive = weakref.ref(runner.model)
    runner.device = torch.device("cuda")
    del runner
    was_alive: list[bool] = []
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: was_alive.append(alive() is not None))
    gc.disable()
    try:
        executor.shutdown()
    finally:
        gc.enable()
    assert was_alive == [False]


@pytest.mark.parametrize("owns_process", [True, False])
def test_threads_are_bound_in_a_process_of_the_engines_own_only(
    config: Config, owns_process: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    bound: list[bool] = []
    monkeypatch.setattr(in_process, "has_thread_for_each_core", lambda *_: True)
    monkeypatch.setattr(in_process, "prepare_environment", bound.append)
    executor = InProcessExecutor(config)
    executor.owns_process = owns_process
    executor.start()
    executor.shutdown()
    assert bound == [owns_process]
