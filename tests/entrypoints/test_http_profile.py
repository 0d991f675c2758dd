"""/start_profile and /stop_profile: over an engine that answers as told, and over the real one in a process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from atom.benchmarks import benchmark_serving
from atom.model_engine.messages import EngineCallError
from atom.model_engine.token_stream import EngineDeadError
from tests.entrypoints.live import LiveServer, error_of, running, scripted
from tests.entrypoints.test_server_process import ServerProcess, folder, started
from tests.model_engine.test_profiler import events_of, labels_of

__all__ = ["folder"]

Call = Callable[..., Any]


@pytest.fixture
def live() -> Iterator[LiveServer]:
    with running(scripted()) as server:
        yield server


def replace_call(live: LiveServer, monkeypatch: pytest.MonkeyPatch, call: Call) -> None:
    monkeypatch.setattr(live.serving.engine, "call", call)


def test_an_engine_without_a_profiler(live: LiveServer) -> None:
    for path in ("/start_profile", "/stop_profile"):
        error = error_of(live.client.post(path), 400)
        assert error["code"] == "profiler_disabled" and error["message"] == "The scripted engine has no profiler."


@pytest.mark.parametrize(
    ("failure", "status", "code"),
    [
        (EngineCallError("off", "profiler_disabled"), 400, "profiler_disabled"),
        (EngineCallError("already running", "profiler_running"), 409, "profiler_running"),
        (EngineCallError("not running", "profiler_not_running"), 409, "profiler_not_running"),
        (EngineCallError("still writing", "profiler_writing"), 409, "profiler_writing"),
        (EngineCallError("no space left on device"), 500, "profiler_failed"),
        (EngineDeadError("gone"), 503, "engine_dead"),
    ],
)
def test_what_the_engine_says_becomes_a_status(
    live: LiveServer, monkeypatch: pytest.MonkeyPatch, failure: Exception, status: int, code: str
) -> None:
    async def fail(name: str) -> Any:
        raise failure

    replace_call(live, monkeypatch, fail)
    for path in ("/start_profile", "/stop_profile"):
        error = error_of(live.client.post(path), status)
        assert error["code"] == code
        if status != 503:
            assert str(failure) in error["message"].lower()


def test_the_server_answers_while_a_trace_is_written(live: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    entered, written = threading.Event(), asyncio.Event()

    async def slow(name: str) -> Any:
        entered.set()
        await written.wait()
        return [{"trace_dir": "t/rank_0", "file": "x.gz", "elapsed": 1.5}]

    replace_call(live, monkeypatch, slow)
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(live.client.post("/stop_profile").json()))
    thread.start()
    assert entered.wait(120)
    assert live.client.get("/health").json() == {"status": "ok"}
    assert live.complete().status_code == 200 and not answers
    live.in_loop(written.set)
    thread.join(120)
    assert answers[0]["status"] == "success"
    assert answers[0]["traces"] == [{"trace_dir": "t/rank_0", "file": "x.gz", "elapsed": 1.5}]


def test_a_profiler_that_takes_too_long(live: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(name: str) -> Any:
        await asyncio.Event().wait()

    monkeypatch.setenv("ATOM_PROFILER_TIMEOUT", "0.05")
    replace_call(live, monkeypatch, never)
    for path in ("/start_profile", "/stop_profile"):
        error = error_of(live.client.post(path), 504)
        assert error["code"] == "profiler_timeout" and "0.05 s (ATOM_PROFILER_TIMEOUT)" in error["message"]
    assert live.complete().status_code == 200


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("traces")


@pytest.fixture(scope="module")
def server(folder: Path, traces: Path) -> Iterator[ServerProcess]:
    with started(folder, "--torch-profiler-dir", str(traces / "new")) as process:
        yield process


def test_a_profile_of_a_request(server: ServerProcess, traces: Path) -> None:
    """The whole cycle twice, with every call out of turn refused, /health alive throughout and the engine usable."""
    client, others = server.client, set(traces.glob("new/rank_0/*"))
    assert error_of(client.post("/stop_profile"), 409)["code"] == "profiler_not_running"
    for _ in range(2):
        assert client.post("/start_profile").json()["status"] == "success"
        assert error_of(client.post("/start_profile"), 409)["code"] == "profiler_running"
        assert server.complete(max_tokens=4, ignore_eos=True).status_code == 200
        codes = during(lambda: client.get("/health").status_code, lambda: stop(server))
        assert set(codes) == {200}
        assert error_of(client.post("/stop_profile"), 409)["code"] == "profiler_not_running"
    assert server.complete(max_tokens=2).status_code == 200
    assert [path.name for path in traces.glob("new/*")] == ["rank_0"]
    files = set(traces.glob("new/rank_0/*")) - others
    assert len(files) == 2 and all(path.name.endswith(".pt.trace.json.gz") for path in files)


def test_the_benchmark_records_its_load(
    server: ServerProcess, folder: Path, traces: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = set(traces.glob("new/rank_0/*"))
    flags = ["--dataset-name", "random", "--num-prompts", "3", "--random-input-len", "20", "--random-output-len", "4"]
    url = str(server.client.base_url)
    benchmark_serving.main(["--model", str(folder), "--base-url", url, "--ignore-eos", "--profile", *flags])
    printed = capsys.readouterr().out
    assert "Profiler: started" in printed and "Profiler: stopped" in printed
    [file] = set(traces.glob("new/rank_0/*")) - before
    assert file.name in printed
    kinds = {label.partition("[")[0] for label in labels_of(events_of(file.parent, file.name))}
    assert kinds == {"prefill", "decode"}


def stop(server: ServerProcess) -> None:
    body = server.client.post("/stop_profile").json()
    [trace] = body["traces"]
    labels = labels_of(events_of(trace["trace_dir"], trace["file"]))
    assert labels[0].startswith("prefill[bs=1 tok=2 ") and labels[1:4] == ["decode[bs=1 tok=1 d=1]"] * 3


def during(question: Callable[[], Any], work: Callable[[], None]) -> list[Any]:
    """What `question` answers while `work` runs: at least once, and as often as there is time."""
    failures: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=guarded)
    thread.start()
    answers = [question()]
    while thread.is_alive():
        answers.append(question())
    thread.join()
    if failures:
        raise failures[0]
    return answers


def test_a_server_that_was_given_no_folder(folder: Path) -> None:
    with started(folder) as process:
        for path in ("/stop_profile", "/start_profile"):
            error = error_of(process.client.post(path), 400)
            assert error["code"] == "profiler_disabled" and "--torch-profiler-dir" in error["message"]
        assert process.complete(max_tokens=2).status_code == 200
