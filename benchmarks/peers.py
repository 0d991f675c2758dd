"""Output tokens a second over HTTP on this CPU: our server and vLLM's CPU build in turn, under one load client.

About 127 tokens in, 64 out, greedy, streamed, at 1, 4 and 16 at once. Both servers are up all the time and only one is
asked; they take turns, and the median of each turn's ratio counts. A turn begins when both have been idle for half a
second: vLLM's workers keep a core busy for a second after its last answer. CPU seconds of a server's processes are read
too: with PEER_THREADS=1 they say which side does less work, however busy the machine is (with more threads they hold
the time that threads wait for each other). The project does not need vLLM: without the variables nothing is run.

PEER_VENV   the virtual environment that holds vLLM (docs/performance.md says how it is made)
PEER_MODEL  a checkpoint of the 0.6B shape with a tokenizer; random weights will do
PEER_PRELOAD, PEER_FLAGS, OUR_FLAGS, PEER_THREADS   vLLM's LD_PRELOAD, more flags of either server, threads of both
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shlex
import statistics
import subprocess
import sys
import time
import urllib.request
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from atom.benchmarks.backend_request_func import RequestFuncInput, RequestFuncOutput, async_request_openai_completions
from atom.benchmarks.load import run_load
from benchmarks.live_server import free_port

NUM_WORDS, NUM_OUTPUT = 120, 64
CONCURRENCY = (1, 4, 16)
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
# vLLM compiles at its first start, and a busy machine takes its time.
START_TIMEOUT_S = 900.0
# A turn begins when each server has used less than this share of a core for so long, and fails if that never comes.
IDLE_SHARE, IDLE_S, IDLE_TIMEOUT_S = 0.1, 0.5, 60.0
BAR = 1.0
WORDS = ("river", "stone", "house", "farmer", "basket", "green", "apple", "market", "slow", "train", "bridge", "music")


@dataclass(frozen=True, slots=True)
class Server:
    """A running server: its address, and the process that began it."""

    url: str
    pid: int

    def cpu_seconds(self) -> float:
        """What its processes have used so far."""
        process = psutil.Process(self.pid)
        times = [each.cpu_times() for each in (process, *process.children(recursive=True))]
        return float(sum(used.user + used.system for used in times))


@dataclass(frozen=True, slots=True)
class Turn:
    """One measurement of one side. rate: output tokens a second; cpu_ms: CPU milliseconds an output token."""

    rate: float
    cpu_ms: float


def run() -> list[dict[str, Any]]:
    """The rows of `make bench PART=peers`; none, with the reason printed, where there is no peer."""
    missing = [name for name in ("PEER_VENV", "PEER_MODEL") if not os.environ.get(name)]
    if missing:
        print(f"peers      skipped: {' and '.join(missing)} not set; see benchmarks/peers.py", flush=True)
        return []
    with contextlib.ExitStack() as stack:
        turns = measure(*_servers(stack))
    rows: list[dict[str, Any]] = [{"name": "load, mean of 5 min", "value": os.getloadavg()[1], "unit": "processes"}]
    for size in CONCURRENCY:
        ours, theirs = turns["ours", size], turns["vLLM", size]
        for side, found in (("ours", ours), ("vLLM", theirs)):
            rate, cpu = (statistics.median(getattr(turn, name) for turn in found) for name in ("rate", "cpu_ms"))
            rows.append({"name": f"{side}, {size} at once", "value": rate, "unit": "tokens/s"})
            rows.append({"name": f"{side}, {size} at once, CPU of a token", "value": cpu, "unit": "ms"})
        pairs = list(zip(ours, theirs, strict=True))
        rate = statistics.median(mine.rate / peers.rate for mine, peers in pairs)
        cpu = statistics.median(peers.cpu_ms / mine.cpu_ms for mine, peers in pairs)
        rows.append({"name": f"ours / vLLM, {size} at once", "value": rate, "unit": "x", "bar": BAR})
        rows.append({"name": f"CPU of vLLM / ours, {size} at once", "value": cpu, "unit": "x"})
    return rows


def measure(ours: Server, theirs: Server) -> dict[tuple[str, int], list[Turn]]:
    """Every round's turn, by side and requests at once. The sides take turns in going first, too."""
    turns: dict[tuple[str, int], list[Turn]] = defaultdict(list)
    sides = {"ours": ours, "vLLM": theirs}
    for server in sides.values():
        _wait_until_idle(sides.values())
        _take_turn(server, 4, seed=-1)
    for number in range(ROUNDS):
        for size in CONCURRENCY:
            for side in sorted(sides, reverse=number % 2 == 1):
                _wait_until_idle(sides.values())
                turns[side, size].append(_take_turn(sides[side], size, seed=number))
            found = {side: turns[side, size][-1] for side in sides}
            told = ", ".join(f"{side} {turn.rate:.1f} tokens/s {turn.cpu_ms:.0f} ms" for side, turn in found.items())
            print(f"peers      round {number + 1}, {size} at once: {told}; load {os.getloadavg()[0]:.1f}", flush=True)
    return turns


def _wait_until_idle(servers: Collection[Server]) -> None:
    deadline = time.monotonic() + IDLE_TIMEOUT_S
    used = [server.cpu_seconds() for server in servers]
    while time.monotonic() < deadline:
        time.sleep(IDLE_S)
        before, used = used, [server.cpu_seconds() for server in servers]
        if max(now - then for now, then in zip(used, before, strict=True)) < IDLE_SHARE * IDLE_S:
            return
    raise RuntimeError(f"a server is still busy {IDLE_TIMEOUT_S:g} s after its last answer")


def _take_turn(server: Server, size: int, seed: int) -> Turn:
    before = server.cpu_seconds()
    num_tokens, seconds = asyncio.run(_ask(server.url, size, seed))
    return Turn(num_tokens / seconds, 1000 * (server.cpu_seconds() - before) / num_tokens)


async def _ask(url: str, size: int, seed: int) -> tuple[int, float]:
    """Output tokens, and the seconds that they took, of `size` requests at once."""
    requests = [
        RequestFuncInput(
            prompt(seed, size, index), f"{url}/v1/completions", NUM_WORDS, NUM_OUTPUT, "m", ignore_eos=True
        )
        for index in range(size)
    ]
    answers, seconds = await run_load(requests, async_request_openai_completions, [0.0] * size, size)
    return sum(_num_tokens(answer) for answer in answers), seconds


def _num_tokens(answer: RequestFuncOutput) -> int:
    if not answer.success or answer.output_tokens != NUM_OUTPUT:
        raise RuntimeError(f"a request failed: {answer.error or answer.output_tokens}")
    return answer.output_tokens


def prompt(seed: int, size: int, index: int) -> str:
    """Words that no other request of any round begins with, so that nobody's prefix cache helps."""
    draw = random.Random(f"{seed} {size} {index}")
    return f"{draw.randrange(10**9)}: " + " ".join(draw.choice(WORDS) for _ in range(NUM_WORDS))


def _servers(stack: contextlib.ExitStack) -> tuple[Server, Server]:
    """Start both."""
    model, venv = os.environ["PEER_MODEL"], Path(os.environ["PEER_VENV"])
    num_threads = int(os.environ.get("PEER_THREADS") or os.cpu_count() or 1)
    common = ["--model", model, "--host", "127.0.0.1", "--dtype", "bfloat16", "--max-model-len", "4096"]
    common += ["--served-model-name", "m"]
    vllm = [str(venv / "bin/python"), "-m", "vllm.entrypoints.openai.api_server", *common, *_flags("PEER_FLAGS")]
    atom = [sys.executable, "-m", "atom.entrypoints.openai_server", *common, *_flags("OUR_FLAGS")]
    peers_environment = {
        "LD_PRELOAD": os.environ.get("PEER_PRELOAD", str(venv / "lib/libiomp5.so")),
        "VLLM_CPU_OMP_THREADS_BIND": f"0-{num_threads - 1}",
        "VLLM_CPU_KVCACHE_SPACE": "2",
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
    }
    theirs = stack.enter_context(_server(vllm, "--port", peers_environment))
    ours = stack.enter_context(_server(atom, "--server-port", {"ATOM_CPU_THREADS": str(num_threads)}))
    return ours, theirs


def _flags(variable: str) -> list[str]:
    return shlex.split(os.environ.get(variable, ""))


@contextlib.contextmanager
def _server(command: list[str], port_flag: str, environment: dict[str, str]) -> Iterator[Server]:
    """Run a server, wait until it answers, end it after the block."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    process = subprocess.Popen(
        [*command, port_flag, str(port)], env={**os.environ, **environment}, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        started = time.monotonic()
        while not _answers(url):
            if process.poll() is not None:
                raise RuntimeError(f"{command[2]} ended with status {process.returncode}; run it by hand to see why")
            if time.monotonic() - started > START_TIMEOUT_S:
                raise RuntimeError(f"{command[2]} did not start in {START_TIMEOUT_S:g} s")
            time.sleep(0.5)
        yield Server(url, process.pid)
    finally:
        process.terminate()
        process.wait()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/v1/models", timeout=10) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
