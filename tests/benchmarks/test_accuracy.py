"""Every metric within 2 % of the truth, which the scripted server recorded as it wrote.

The truth is worked out here, from the server's own times, in other words than the benchmark's. Server and client share
one event loop and its virtual time, so that no busy machine comes between a write and the reading of it.
"""

from __future__ import annotations

import argparse
import statistics
from dataclasses import dataclass

import numpy as np
import pytest

from atom import builtin_model
from atom.benchmarks.benchmark_serving import Measurement, measure
from atom.benchmarks.flags import parse_flags
from atom.benchmarks.metrics import calculate_metrics, count_output_tokens
from atom.benchmarks.prompts import SampleRequest
from atom.benchmarks.results import make_result
from atom.benchmarks.run_data import Run
from atom.tokenizer import Tokenizer
from tests.benchmarks import virtual_time
from tests.benchmarks.sse_server import DONE, Exchange, Script, SSEServer, delta, text, usage

TOLERANCE = 0.02
TTFT_S, GAP_S = 0.4, 0.1
INPUT_LEN = 8
GOOD_TPOT_MS = 150.0
TOKENIZER = Tokenizer.load(builtin_model.resolve("atom-tiny").path)


@dataclass(frozen=True)
class Plan:
    """An answer, and which of its steps carry a token. end: the step that ends the answer."""

    script: Script
    token_steps: tuple[int, ...]
    end: int
    num_tokens: int


def plain(num_tokens: int) -> Plan:
    steps = [(TTFT_S if i == 0 else GAP_S, text(" a")) for i in range(num_tokens)]
    steps += [(0.0, text("", "length")), (0.0, usage(num_tokens, INPUT_LEN)), (0.0, DONE)]
    return Plan(Script(steps), tuple(range(num_tokens)), num_tokens, num_tokens)


def merged(num_frames: int, tokens_a_frame: int) -> Plan:
    steps = [(TTFT_S if i == 0 else 3 * GAP_S, text(" a" * tokens_a_frame)) for i in range(num_frames)]
    steps += [(0.0, text("", "length")), (0.0, usage(num_frames * tokens_a_frame)), (0.0, DONE)]
    return Plan(Script(steps), tuple(range(num_frames)), num_frames, num_frames * tokens_a_frame)


def with_empty_frames() -> Plan:
    """An empty frame before the first token and between tokens; the usage comes late."""
    steps = [(0.1, text("")), (TTFT_S, text(" a")), (GAP_S, text("")), (GAP_S, text(" b")), (GAP_S, text(" c", "stop"))]
    return Plan(Script([*steps, (0.3, usage(3)), (0.0, DONE)]), (1, 3, 4), 4, 3)


def without_usage() -> Plan:
    steps = [(TTFT_S, text("name")), *((GAP_S, text(word)) for word in (" ", "name", " ", "name")), (0.0, DONE)]
    return Plan(Script(steps), (0, 1, 2, 3, 4), 4, len(TOKENIZER.encode("name name name")))


def failing() -> Plan:
    return Plan(Script([(TTFT_S, text(" a")), (GAP_S, text(" a"))], cut=True), (), 1, 0)


def reasoning_only() -> Plan:
    steps = [(0.1, delta(role="assistant", content="")), (TTFT_S, delta(reasoning_content="r"))]
    steps += [(GAP_S, delta(reasoning_content="r")) for _ in range(4)]
    return Plan(Script([*steps, (0.0, delta("length")), (0.0, usage(5)), (0.0, DONE)]), (1, 2, 3, 4, 5), 6, 5)


def truth(log: list[Exchange], plans: dict[int, Plan]) -> dict[str, float]:
    """The figures by the server's record. All requests run at once."""
    good = [(plans[id(exchange.script)], exchange) for exchange in log if plans[id(exchange.script)].num_tokens]
    duration = max(exchange.writes[-1] for exchange in log) - min(exchange.received for exchange in log)
    ttfts, tpots, itls, latencies = [], [], [], []
    for plan, exchange in good:
        times = [exchange.writes[step] for step in plan.token_steps]
        end = exchange.writes[plan.end]
        ttfts.append(times[0] - exchange.received)
        latencies.append(end - exchange.received)
        tpots.append((end - times[0]) / (plan.num_tokens - 1))
        itls += list(np.diff(times))
    num_tokens = sum(plan.num_tokens for plan, _ in good)
    expected: dict[str, float] = {
        "completed": len(good),
        "failed": len(log) - len(good),
        "total_input_tokens": INPUT_LEN * len(good),
        "total_output_tokens": num_tokens,
        "duration": duration,
        "request_throughput": len(good) / duration,
        "output_throughput": num_tokens / duration,
        "total_token_throughput": (num_tokens + INPUT_LEN * len(good)) / duration,
        "concurrency": sum(latencies) / duration,
        "request_goodput": sum(tpot * 1000 <= GOOD_TPOT_MS for tpot in tpots) / duration,
    }
    for name, seconds in (("ttft", ttfts), ("tpot", tpots), ("itl", itls), ("e2el", latencies)):
        values = [1000 * value for value in seconds]
        expected[f"mean_{name}_ms"] = statistics.fmean(values)
        expected[f"median_{name}_ms"] = statistics.median(values)
        expected[f"p90_{name}_ms"] = float(np.percentile(values, 90))
        if statistics.pstdev(values) > 0.2 * statistics.fmean(values):  # otherwise it is noise and nothing else
            expected[f"std_{name}_ms"] = statistics.pstdev(values)
    return expected


async def run(options: argparse.Namespace, plans: list[Plan]) -> tuple[Measurement, list[Exchange]]:
    """The load, all at once, after as many warm-ups at once, so that every connection is open before it."""
    warm_up = plain(2).script
    scripts = [warm_up] * len(plans) + [plan.script for plan in plans]
    requests = [SampleRequest("one two", INPUT_LEN, 16)] * len(plans)
    async with SSEServer(lambda n, body: scripts[n]) as server:
        options.base_url = server.url
        measured = await measure(options, "atom-tiny", requests, requests)
        return measured, server.log[len(plans) :]


def far_off(monkeypatch: pytest.MonkeyPatch, plans: list[Plan], backend: str) -> dict[str, tuple[float, float]]:
    """One run: the figures of the result that are more than the tolerance from the truth, (measured, true)."""
    flags = ["--backend", backend, "--dataset-name", "random", "--disable-tqdm", "--goodput", f"tpot:{GOOD_TPOT_MS}"]
    options = parse_flags([*flags, "--percentile-metrics", "ttft,tpot,itl,e2el", "--metric-percentiles", "90"], "test")
    measured, log = virtual_time.run(monkeypatch, run(options, plans))
    count_output_tokens(measured.outputs, lambda text: len(TOKENIZER.encode(text)))
    metrics = calculate_metrics(measured.outputs, measured.duration, (90.0,), dict(options.goodput))
    record = Run("date", "model", "tokenizer", measured.start, [], measured.outputs, metrics, None, 0)
    result = make_result(record, options)
    expected = truth(log, {id(plan.script): plan for plan in plans})
    pairs = {name: (result[name], value) for name, value in expected.items()}
    return {name: pair for name, pair in pairs.items() if pair[0] != pytest.approx(pair[1], rel=TOLERANCE)}


@pytest.mark.parametrize(
    ("backend", "plans"),
    [
        ("vllm", [plain(5), plain(8), plain(11)]),
        ("vllm", [merged(4, 3), merged(6, 3), plain(9)]),
        ("vllm", [with_empty_frames(), plain(6)]),
        ("vllm", [without_usage(), plain(8)]),
        ("vllm", [plain(6), failing(), plain(9), failing()]),
        ("openai-chat", [reasoning_only(), reasoning_only()]),
    ],
    ids=["plain", "merged frames", "empty frames", "usage missing", "failures", "reasoning alone"],
)
def test_every_metric_is_within_two_percent(monkeypatch: pytest.MonkeyPatch, backend: str, plans: list[Plan]) -> None:
    assert far_off(monkeypatch, plans, backend) == {}, "(measured, true)"
