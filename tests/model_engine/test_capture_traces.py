"""Traces of captures: the files, what they cover, and when the flag is refused. The captures themselves need a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from atom.config import Config
from atom.model_engine.capture_traces import CaptureTraces
from atom.model_engine.decode_graphs import DecodeGraphs
from atom.model_engine.model_runner import ModelRunner
from tests.model_engine.test_profiler import events_of

_CPU = torch.device("cpu")


class Recorded(DecodeGraphs):
    """Decode graphs whose capture only multiplies; one size fails."""

    def __init__(self, sizes: list[int], traces: CaptureTraces | None, broken: int = 0) -> None:
        self._broken = broken
        super().__init__(sizes, lambda step: (torch.empty(0), torch.empty(0)), FakeInputs(), None, traces)  # type: ignore[arg-type]  # a stand-in

    def _capture(self, size: int) -> Any:
        if size == self._broken:
            raise torch.OutOfMemoryError("none left")
        return torch.ones(size, 8) @ torch.ones(8, 8)


class FakeInputs:
    device = _CPU
    padding_slot = 4


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: None)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device=None: (1 << 30, 8 << 30))


def test_one_file_a_graph_covers_its_capture(tmp_path: Path) -> None:
    Recorded([1, 4], CaptureTraces(tmp_path / "rank_2", 2, _CPU))
    folder = tmp_path / "rank_2" / "capture_traces"
    assert sorted(file.name for file in folder.iterdir()) == ["bs_1_q_1_rank2.json.gz", "bs_4_q_1_rank2.json.gz"]
    events = {event.get("name"): event for event in events_of(folder, "bs_4_q_1_rank2.json.gz")}
    span, product = events["capture_graph_bs_4"], events["aten::mm"]
    assert span["ts"] <= product["ts"] <= product["ts"] + product["dur"] <= span["ts"] + span["dur"]
    assert "capture_graph_bs_1" not in events


def test_without_the_flag_nothing_is_written(tmp_path: Path) -> None:
    Recorded([1, 4], None)
    assert list(tmp_path.iterdir()) == []


def test_a_capture_that_fails_leaves_no_file_and_the_next_recording_works(tmp_path: Path) -> None:
    traces = CaptureTraces(tmp_path, 0, _CPU)
    with pytest.raises(torch.OutOfMemoryError):
        Recorded([1, 4], traces, broken=4)
    assert not traces.folder.exists()
    Recorded([1], traces)
    assert [file.name for file in traces.folder.iterdir()] == ["bs_1_q_1_rank0.json.gz"]


def test_a_device_without_graphs_refuses_the_flag(tmp_path: Path) -> None:
    config = Config.resolve("atom-tiny", device="cpu", mark_trace=True, torch_profiler_dir=str(tmp_path))
    with pytest.raises(ValueError, match=r"--mark-trace: there are no graphs .* \(a CPU has none\)"):
        ModelRunner(config)
