"""Running the benchmark against a scripted server."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from atom.benchmarks import benchmark_serving
from atom.benchmarks.benchmark_serving import main
from tests.benchmarks import virtual_time
from tests.benchmarks.sse_server import Script, SSEServer

Serve = Callable[..., SSEServer]
Bench = Callable[..., dict[str, Any]]
TimedBench = Callable[..., dict[str, Any]]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """serve(script, ...) starts a server: the n-th request gets the n-th script, the last one again and again."""
    with ExitStack() as stack:

        def start(*scripts: Script, by_request: Callable[[int, dict[str, Any]], Script] | None = None) -> SSEServer:
            choose = by_request or (lambda n, body: scripts[min(n, len(scripts) - 1)])
            return stack.enter_context(SSEServer(choose))

        yield start


@pytest.fixture
def timed_bench(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> TimedBench:
    """As `bench`, in virtual time and against a server of these scripts: times are exactly what the scripts say."""

    def run(scripts: Sequence[Script], *flags: str) -> dict[str, Any]:
        server = SSEServer(lambda n, body: scripts[min(n, len(scripts) - 1)])

        async def served(work: Coroutine[Any, Any, Any]) -> Any:
            async with server:
                return await work

        monkeypatch.setattr(benchmark_serving, "run_async", lambda work: virtual_time.run(monkeypatch, served(work)))
        return bench(server, *flags)

    return run


@pytest.fixture
def bench(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Bench:
    """bench(server, *flags) runs the command and gives the result file's content, and what was printed as `printed`."""

    def run(server: SSEServer, *flags: str) -> dict[str, Any]:
        defaults = ["--model", "atom-tiny", "--dataset-name", "random", "--random-input-len", "8"]
        places = ["--base-url", server.url, "--result-dir", str(tmp_path), "--result-filename", "result.json"]
        load = ["--num-prompts", "1", "--num-warmups", "0", "--disable-tqdm", "--save-detailed"]
        main([*defaults, *places, *load, *flags])
        result: dict[str, Any] = json.loads((tmp_path / "result.json").read_text())
        return {**result, "printed": capsys.readouterr().out}

    return run
