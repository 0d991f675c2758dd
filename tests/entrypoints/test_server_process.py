"""The server as it is started: a process, an engine process, a real (untrained) model."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.entrypoints.dummy_model import make_folder
from tests.entrypoints.live import PATIENCE, error_of, stream_json

MODULE = "atom.entrypoints.openai_server"
LIMIT_BYTES = 250 * 2**20
# 500 sequences, which are minutes of work: nothing of it ends before a test is done with it.
ENDLESS: dict[str, Any] = {"prompt": ["hi"] * 100, "n": 5, "max_tokens": 1900, "ignore_eos": True}


@dataclass
class ServerProcess:
    """A server in a process of its own."""

    process: psutil.Popen
    client: httpx.Client
    log: list[str] = field(default_factory=list)

    @property
    def engine(self) -> psutil.Process:
        (child,) = self.process.children()
        return child

    def complete(self, **fields: Any) -> httpx.Response:
        return self.client.post("/v1/completions", json={"prompt": "hi", **fields})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folder(tmp_path_factory.mktemp("model"))


@contextmanager
def started(folder: Path, *flags: str) -> Iterator[ServerProcess]:
    """Start a server and wait until it answers; killed at the end if it still runs."""
    command = [sys.executable, "-m", MODULE, "--model", str(folder), "--load_dummy", "xavier", "--host", "127.0.0.1"]
    command += ["--server-port", "0", "--kv-cache-memory", "16M", "--timeout-keep-alive", "600", *flags]
    process = psutil.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    log: list[str] = []
    found: list[str] = []
    ready = threading.Event()

    def read() -> None:
        for line in process.stderr:
            log.append(line)
            address = re.search(r"serving .* at (http://\S+)", line)
            if address:
                found.append(address[1])
                ready.set()
        ready.set()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        assert ready.wait(PATIENCE) and found, "".join(log)
        with httpx.Client(base_url=found[0], timeout=PATIENCE) as client:
            yield ServerProcess(process, client, log)
    finally:
        if process.is_running():  # its engine process ends with it
            process.kill()
        process.wait()
        reader.join(PATIENCE)


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[ServerProcess]:
    with started(folder, "--served-model-name", "tiny", "--max-num-batched-tokens", "64") as running:
        yield running


def test_it_answers(server: ServerProcess) -> None:
    body = server.complete(max_tokens=5, ignore_eos=True, temperature=0).json()
    assert body["usage"]["completion_tokens"] == 5 and body["model"] == "tiny"
    streamed = stream_json(server.complete(max_tokens=5, ignore_eos=True, temperature=0, stream=True))
    assert "".join(chunk["choices"][0]["text"] for chunk in streamed) == body["choices"][0]["text"]
    message = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 3}
    assert server.client.post("/v1/chat/completions", json=message).status_code == 200
    assert server.client.get("/health?deep=1").json() == {"status": "ok"}


def test_the_api_process_is_small_and_holds_no_torch(server: ServerProcess) -> None:
    server.complete(max_tokens=1)
    loaded = {Path(entry.path).name for entry in server.process.memory_maps()}
    assert not [name for name in loaded if re.search(r"torch|triton|cuda", name)]
    assert [entry for entry in server.engine.memory_maps() if "torch" in entry.path]
    assert server.process.memory_info().rss < LIMIT_BYTES


def test_scores_of_a_chunked_prompt(server: ServerProcess) -> None:
    """200 tokens in chunks of 64: every entry is there, and the first is null."""
    ids = [7 + place % 90 for place in range(200)]
    body = server.complete(prompt=ids, max_tokens=2, echo=True, logprobs=1, temperature=0, ignore_eos=True).json()
    logprobs = body["choices"][0]["logprobs"]
    assert {len(logprobs[key]) for key in ("tokens", "token_logprobs", "top_logprobs", "text_offset")} == {202}
    assert logprobs["token_logprobs"][0] is None and all(value < 0 for value in logprobs["token_logprobs"][1:])
    for token, top in zip(logprobs["token_logprobs"][-2:], logprobs["top_logprobs"][-2:], strict=True):
        assert token == max(top.values())


def test_seeds(server: ServerProcess) -> None:
    def text(**fields: Any) -> str:
        body = server.complete(max_tokens=24, ignore_eos=True, temperature=0.9, **fields).json()
        return str([choice["text"] for choice in body["choices"]])

    assert text(seed=11) == text(seed=11) != text(seed=12)
    assert text() != text()
    two = server.complete(max_tokens=24, ignore_eos=True, temperature=0.9, seed=11, n=2).json()["choices"]
    assert two[0]["text"] != two[1]["text"] and str([two[0]["text"]]) == text(seed=11)


def test_the_choices_of_a_prompt_share_its_prefill(server: ServerProcess) -> None:
    """200 tokens are read once, for each further choice only the 8 that fill no block; usage counts the prompt once."""

    def computed() -> float:
        text = server.client.get("/metrics").text
        values = [
            float(re.search(rf"^atom:{name}_total (\S+)$", text, re.M)[1])  # type: ignore[index]  # the metric is there, or the test fails
            for name in ("prompt_tokens", "prefix_cache_cached_tokens")
        ]
        return values[0] - values[1]

    before = computed()
    ids = [11 + place % 77 for place in range(200)]
    body = server.complete(prompt=ids, max_tokens=6, n=4, ignore_eos=True, temperature=0.9, seed=3).json()
    assert body["usage"]["prompt_tokens"] == 200 and body["usage"]["completion_tokens"] == 24
    assert body["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    assert len({choice["text"] for choice in body["choices"]}) > 1
    assert computed() - before == 200 + 3 * 8


def test_an_echoed_prompt_is_scored_once_for_all_its_choices(server: ServerProcess) -> None:
    ids = [13 + place % 71 for place in range(100)]
    fields = {"max_tokens": 2, "echo": True, "logprobs": 1, "temperature": 0, "ignore_eos": True}
    several = server.complete(prompt=[ids, ids[50:]], n=3, **fields).json()["choices"]
    for choice, prompt in zip(several, [ids] * 3 + [ids[50:]] * 3, strict=True):
        (alone,) = server.complete(prompt=prompt, **fields).json()["choices"]
        assert choice["logprobs"]["tokens"] == alone["logprobs"]["tokens"]
        scores, expected = choice["logprobs"]["token_logprobs"], alone["logprobs"]["token_logprobs"]
        assert scores[0] is None and scores[1:] == pytest.approx(expected[1:], abs=1e-4)


def gauge(server: ServerProcess, name: str) -> float:
    text = server.client.get("/metrics").text
    return float(re.search(rf"^atom:{name} (\S+)$", text, re.M)[1])  # type: ignore[index]  # the metric is there, or the test fails


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def test_leaving_frees_the_blocks(server: ServerProcess) -> None:
    with server.client.stream("POST", "/v1/completions", json={**ENDLESS, "stream": True}) as response:
        lines = response.iter_lines()  # kept: a dropped iterator would close the connection
        next(lines)
        until(lambda: gauge(server, "kv_cache_blocks_used") > 0)
    until(lambda: gauge(server, "kv_cache_blocks_used") == 0)


def test_sigterm_lets_a_stream_finish(folder: Path) -> None:
    with started(folder, "--drain-timeout", "600") as server:
        engine = server.engine
        body = {"prompt": "hi", "max_tokens": 300, "ignore_eos": True, "stream": True}
        with server.client.stream("POST", "/v1/completions", json=body) as response:
            lines = response.iter_lines()
            next(lines)
            server.process.send_signal(signal.SIGTERM)
            rest = list(lines)
        assert rest[-2:] == ["data: [DONE]", ""] or rest[-1] == "data: [DONE]"
        assert server.process.wait(PATIENCE) == 0
        assert not engine.is_running()
        assert "Traceback" not in "".join(server.log)


def test_a_killed_engine(folder: Path) -> None:
    """A stream that has begun ends in an error frame; a request with nothing answered yet gets an error status."""
    with started(folder) as server:
        whole: list[httpx.Response] = []
        thread = threading.Thread(target=lambda: whole.append(server.complete(**ENDLESS)))
        with server.client.stream("POST", "/v1/completions", json={**ENDLESS, "stream": True}) as streamed:
            lines = streamed.iter_lines()
            first = next(lines)
            thread.start()
            until(lambda: gauge(server, "requests_running") + gauge(server, "requests_waiting") > 500)  # both
            server.engine.kill()
            frames = [line.removeprefix("data: ") for line in (first, *lines) if line.startswith("data: ")]
        thread.join(PATIENCE)
        assert server.process.wait(PATIENCE) == 1
        assert streamed.status_code == 200
        assert json.loads(frames[-1])["error"]["code"] == "engine_dead"
        assert error_of(whole[0], 500)["code"] == "engine_dead"


def run(*flags: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", MODULE, *flags], capture_output=True, text=True, timeout=PATIENCE)


def test_wrong_command_lines_are_refused_before_anything_starts(folder: Path) -> None:
    unknown = run("--model", str(folder), "--tool-call-parser", "nonsense")
    assert unknown.returncode == 2 and "nonsense" in unknown.stderr and "qwen" in unknown.stderr
    assert "weights" not in unknown.stderr and "Traceback" not in unknown.stderr
    for flags in (["--model", "/no/such/folder"], ["--no-such-flag"], ["--tensor-parallel-size", "2"]):
        refused = run(*flags)
        assert refused.returncode == 2 and refused.stderr and "Traceback" not in refused.stderr


def test_a_server_that_can_not_start(folder: Path, tmp_path: Path) -> None:
    broken = make_folder(tmp_path)
    (broken / "chat_template.jinja").write_text("{% if %}")
    refused = run("--model", str(broken), "--load_dummy", "--server-port", "0")
    assert refused.returncode == 1 and "chat_template.jinja" in refused.stderr and "Traceback" not in refused.stderr
    bad = run("--model", str(folder), "--load_dummy", "--server-port", "0", "--host", "203.0.113.7")
    assert bad.returncode == 1 and "203.0.113.7" in bad.stderr and "Traceback" not in bad.stderr
