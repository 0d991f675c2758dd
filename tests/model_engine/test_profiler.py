"""Traces: files and names, the states, the labels inside."""

from __future__ import annotations

import gzip
import json
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import torch

from atom.config import ParallelConfig
from atom.model_engine import trace_files as module
from atom.model_engine.messages import EngineCallError
from atom.model_engine.profiler import Profiler, Trace
from atom.model_engine.trace_files import trace_name, worker_folder
from tests.model_engine.test_step_label import batch_of

CPU = torch.device("cpu")
PREFILL = batch_of([], [(5, 0)])
DECODE = batch_of([(1, 5)], [])


@pytest.fixture
def profiler(tmp_path: Path) -> Iterator[Profiler]:
    made = Profiler(tmp_path / "made" / "rank_0", "org/some model@qwen", CPU)
    yield made
    made.close()


def events_of(folder: str | Path, file: str) -> list[dict[str, Any]]:
    with gzip.open(Path(folder) / file) as source:
        events: list[dict[str, Any]] = json.load(source)["traceEvents"]
    return events


def labels_of(events: list[dict[str, Any]]) -> list[str]:
    found = [event for event in events if event.get("cat") == "user_annotation"]
    return [event["name"] for event in sorted(found, key=lambda event: event["ts"])]


def record(profiler: Profiler) -> Trace:
    profiler.start()
    for batch in (PREFILL, DECODE):
        with profiler.annotate(batch):
            torch.ones(3, 5) @ torch.ones(5, 2)
    return profiler.write(profiler.stop())


def test_a_trace_holds_the_steps_and_their_operations(profiler: Profiler, tmp_path: Path) -> None:
    trace = record(profiler)
    folder = tmp_path / "made" / "rank_0"
    assert Path(trace.trace_dir) == folder.resolve() and trace.elapsed > 0
    assert [path.name for path in folder.iterdir()] == [trace.file]
    events = events_of(trace.trace_dir, trace.file)
    assert labels_of(events) == ["prefill[bs=1 tok=5 ctx=5]", "decode[bs=1 tok=1 d=1]"]
    products = [event for event in events if event.get("name") == "aten::mm"]
    assert len(products) == 2 and "Input Dims" not in products[0]["args"]


def test_one_trace_after_another(profiler: Profiler) -> None:
    traces = [record(profiler) for _ in range(2)]
    assert traces[0].file != traces[1].file
    assert all(len(labels_of(events_of(trace.trace_dir, trace.file))) == 2 for trace in traces)


def test_more_records_shapes(profiler: Profiler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATOM_PROFILER_MORE", "1")
    trace = record(profiler)
    product = next(e for e in events_of(trace.trace_dir, trace.file) if e.get("name") == "aten::mm")
    assert product["args"]["Input Dims"] == [[3, 5], [5, 2]]


def test_detailed_annotation_adds_the_sums(profiler: Profiler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATOM_ENABLE_DETAILED_ANNOTATION", "1")
    trace = record(profiler)
    assert labels_of(events_of(trace.trace_dir, trace.file)) == [
        "prefill[bs=1 tok=5 ctx=5 sqsq=25 sqsk=25 sk=5]",
        "decode[bs=1 tok=1 d=1 sqsq=1 sqsk=6 sk=6]",
    ]


def code_of(action: Any) -> str:
    with pytest.raises(EngineCallError) as caught:
        action()
    return caught.value.code


def test_what_is_refused_in_each_state(profiler: Profiler) -> None:
    assert code_of(profiler.stop) == "profiler_not_running"
    profiler.start()
    assert code_of(profiler.start) == "profiler_running"
    recording = profiler.stop()
    assert code_of(profiler.start) == code_of(profiler.stop) == "profiler_writing"
    profiler.write(recording)
    assert code_of(profiler.stop) == "profiler_not_running"
    record(profiler)


def test_without_a_folder_nothing_starts() -> None:
    profiler = Profiler(None, "m", CPU)
    for action in (profiler.start, profiler.stop):
        with pytest.raises(EngineCallError, match="--torch-profiler-dir") as caught:
            action()
        assert caught.value.code == "profiler_disabled"


def test_a_trace_may_be_written_in_another_thread(profiler: Profiler) -> None:
    with ThreadPoolExecutor(1) as model, ThreadPoolExecutor(1) as writer:
        model.submit(profiler.start).result()

        def step() -> None:
            with profiler.annotate(PREFILL):
                torch.ones(2).sum()

        model.submit(step).result()
        trace = writer.submit(profiler.write, model.submit(profiler.stop).result()).result()
    assert labels_of(events_of(trace.trace_dir, trace.file)) == ["prefill[bs=1 tok=5 ctx=5]"]


def test_a_trace_that_can_not_be_written_leaves_nothing_and_the_next_start_works(
    profiler: Profiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(*arguments: object) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as broken:
        broken.setattr(module.shutil, "copyfileobj", full_disk)
        with pytest.raises(OSError, match="no space left"):
            record(profiler)
    assert list((tmp_path / "made" / "rank_0").iterdir()) == []
    record(profiler)


def test_a_folder_that_went_away_is_made_again(profiler: Profiler, tmp_path: Path) -> None:
    (tmp_path / "made" / "rank_0").rmdir()
    record(profiler)


def test_a_folder_that_can_not_be_made_fails_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=r"--torch-profiler-dir: .*file.* can not be made: Not a directory"):
        Profiler(tmp_path / "file" / "rank_0", "m", CPU)


def test_a_recording_that_nobody_stopped_is_dropped(profiler: Profiler, caplog: pytest.LogCaptureFixture) -> None:
    profiler.start()
    with caplog.at_level(logging.WARNING):
        profiler.close()
        profiler.close()
    assert [record.message for record in caplog.records] == ["the profiler was never stopped; its trace is dropped"]
    record(profiler)


def test_steps_outside_a_recording_are_not_labelled(profiler: Profiler) -> None:
    with profiler.annotate(PREFILL):
        pass
    profiler.start()
    trace = profiler.write(profiler.stop())
    assert labels_of(events_of(trace.trace_dir, trace.file)) == []


@pytest.mark.parametrize(
    ("model", "base"),
    [
        ("atom-tiny", "atom-tiny"),
        ("atom-tiny@qwen", "atom-tiny_qwen"),
        ("Qwen/Qwen3-0.6B", "Qwen3-0.6B"),
        ("models/some model/", "some_model"),
        ("/", "model"),
    ],
)
def test_names_of_files(model: str, base: str) -> None:
    moment = datetime(2026, 3, 4, 5, 6, 7, 89_999)
    assert trace_name(model, moment) == f"{base}_ts_20260304_050607_089.pt.trace.json.gz"


def test_folders_of_workers() -> None:
    parent = Path("traces")
    assert worker_folder(None, ParallelConfig()) is None
    assert worker_folder(parent, ParallelConfig()) == parent / "rank_0"
    assert worker_folder(parent, ParallelConfig(tensor_parallel_size=4), tensor_rank=3) == parent / "rank_3"
    both = ParallelConfig(tensor_parallel_size=4, data_parallel_size=2)
    assert worker_folder(parent, both, tensor_rank=3, data_rank=1) == parent / "dp1_tp3"
