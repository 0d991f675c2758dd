"""The offline profiling example, and the engine calls that it is made of, over the model that ships."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from atom import LLMEngine, SamplingParams
from atom.examples import profile_offline
from atom.model_engine import profiler
from atom.model_engine.messages import EngineCallError
from tests.model_engine.test_profiler import events_of, labels_of

SMALL = ["--model", "atom-tiny", "--device", "cpu", "--kv-cache-memory", "16M", "--max-model-len", "256"]


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def labels_in(folder: Path) -> list[str]:
    [file] = folder.iterdir()
    assert re.fullmatch(r"atom-tiny_ts_\d{8}_\d{6}_\d{3}\.pt\.trace\.json\.gz", file.name)
    return labels_of(events_of(folder, file.name))


@pytest.mark.parametrize("flags", [[], ["--random-input"]])
def test_a_batch(tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: list[str]) -> None:
    batch = ["--bs", "3", "--input-length", "40", "--output-length", "5"]
    profile_offline.main([*SMALL, *batch, *flags, "--torch-profiler-dir", str(tmp_path)])
    labels = labels_in(tmp_path / "rank_0")
    assert labels[0] == "prefill[bs=3 tok=120 ctx=[40, 40, 40]]"
    assert labels[1:5] == ["decode[bs=3 tok=3 d=3]"] * 4
    printed = capsys.readouterr().out
    assert "3 prompts of 40 tokens, 15 tokens generated" in printed and str(tmp_path) in printed
    assert "note" not in printed


def test_the_default_folder_is_said_aloud(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    profile_offline.main([*SMALL, "--output-length", "2"])
    assert labels_in(tmp_path / "profiler_traces" / "rank_0")[0] == "prefill[bs=1 tok=128 ctx=128]"
    assert "note: no --torch-profiler-dir given; traces go to ./profiler_traces\n" in capsys.readouterr().out


def test_the_variable_stands_for_the_flag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATOM_TORCH_PROFILER_DIR", str(tmp_path / "by variable"))
    profile_offline.main([*SMALL, "--output-length", "2", "--input-length", "8"])
    assert len(labels_in(tmp_path / "by variable" / "rank_0")) >= 2


def test_prompts_do_not_begin_alike() -> None:
    with LLMEngine("atom-tiny", device="cpu", kv_cache_memory=16 << 20, max_model_len=256) as engine:
        for make in (profile_offline.text_prompts, profile_offline.random_prompts):
            prompts = make(engine.tokenizer, 40, 16)
            assert len({tuple(prompt) for prompt in prompts}) == 40 and {len(prompt) for prompt in prompts} == {16}
            assert prompts == make(engine.tokenizer, 40, 16)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--input-length", "300"], "the prompt has 300 tokens, the model's context holds 256"),
        (["--model", "no/such/model"], "no/such/model"),
    ],
)
def test_what_can_not_run_ends_with_one_line(tmp_path: Path, flags: list[str], words: str) -> None:
    with pytest.raises(SystemExit, match=f"^error: .*{words}"):
        profile_offline.main([*SMALL, "--torch-profiler-dir", str(tmp_path), *flags])


@pytest.mark.parametrize("flag", ["--bs", "--input-length", "--output-length"])
def test_sizes_are_positive(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        profile_offline.parse_args([flag, "0"])
    assert "'0' is not a whole number above 0" in capsys.readouterr().err


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[LLMEngine]:
    settings = {"device": "cpu", "kv_cache_memory": 16 << 20, "max_model_len": 256}
    with LLMEngine("atom-tiny", torch_profiler_dir=str(tmp_path), **settings) as made:
        yield made


def test_calls_out_of_turn(engine: LLMEngine) -> None:
    with pytest.raises(EngineCallError, match="not running"):
        engine.stop_profile()
    engine.start_profile()
    with pytest.raises(EngineCallError, match="already running"):
        engine.start_profile()
    [trace] = engine.stop_profile()
    assert set(trace) == {"trace_dir", "file", "elapsed"} and trace["elapsed"] > 0


def test_an_engine_without_a_folder() -> None:
    with (
        LLMEngine("atom-tiny", device="cpu", kv_cache_memory=16 << 20, max_model_len=256) as engine,
        pytest.raises(EngineCallError, match="--torch-profiler-dir"),
    ):
        engine.start_profile()


def test_a_call_that_takes_too_long_leaves_a_usable_engine(engine: LLMEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    may_write = threading.Event()
    write = profiler.write_trace

    def slow_write(*arguments: Any) -> None:
        assert may_write.wait(120)
        write(*arguments)

    monkeypatch.setattr(profiler, "write_trace", slow_write)
    engine.start_profile()
    engine.generate(["hello"], SamplingParams(max_tokens=8, ignore_eos=True))
    monkeypatch.setenv("ATOM_PROFILER_TIMEOUT", "0.01")
    with pytest.raises(TimeoutError, match=r"stop_profile has taken longer than ATOM_PROFILER_TIMEOUT, 0\.01 s"):
        engine.stop_profile()
    [answer] = engine.generate(["hello"], SamplingParams(max_tokens=4, ignore_eos=True))
    assert answer["num_tokens_output"] == 4
    may_write.set()
