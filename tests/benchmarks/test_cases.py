"""Faults that benchmark clients had: one test each, through the command line."""

from __future__ import annotations

from typing import Any

import pytest

from atom.benchmarks.benchmark_serving import main
from tests.benchmarks.conftest import Bench, Serve, TimedBench
from tests.benchmarks.sse_server import DONE, Script, at_once, delta, text, usage


def test_time_per_token_does_not_depend_on_how_tokens_are_packed(timed_bench: TimedBench) -> None:
    packed = Script(
        [*((0.03, delta(content="a b c")) for _ in range(10)), (0, delta("length")), (0, usage(30)), (0, DONE)]
    )
    result = timed_bench([packed], "--backend", "openai-chat")
    assert result["total_output_tokens"] == 30
    expected = (result["latencies"][0] - result["ttfts"][0]) / 29 * 1000
    assert result["mean_tpot_ms"] == pytest.approx(expected)
    gap_ms = sum(result["itls"][0]) / 9 * 1000
    assert result["mean_itl_ms"] == pytest.approx(gap_ms)
    assert result["merge_factor"] == pytest.approx(result["mean_itl_ms"] / result["mean_tpot_ms"])
    assert result["merge_factor"] == pytest.approx(29 / 9)
    assert "Merge factor (ITL/TPOT):" in result["printed"]
    assert "compare TPOT, not ITL" in result["printed"]


def test_the_first_token_is_no_gap(timed_bench: TimedBench) -> None:
    steps = [(0.5, text("a")), *((0.01, text("b")) for _ in range(4)), (0.0, text("", "stop")), (0.0, DONE)]
    result = timed_bench([Script(steps)])
    assert result["itls"] == [pytest.approx([0.01] * 4)]
    assert result["ttfts"] == [pytest.approx(0.5)]


@pytest.mark.parametrize(
    ("ratio", "shortest"), [("1.0", 40), ("0.8", 32), ("0", 1)], ids=["fixed", "from 80 %", "from one token"]
)
def test_the_range_ratio_is_the_lower_end_of_the_lengths(serve: Serve, bench: Bench, ratio: str, shortest: int) -> None:
    server = serve(at_once(text("a", "stop"), DONE))
    flags = ["--random-input-len", "40", "--random-output-len", "40", "--num-prompts", "150"]
    result = bench(server, *flags, "--random-range-ratio", ratio)
    asked = [exchange.body["max_tokens"] for exchange in server.log]
    for lengths in (result["input_lens"], asked):
        assert (min(lengths), max(lengths)) == (shortest, 40)
    assert all(exchange.body["prompt"] for exchange in server.log)


def test_length_one(serve: Serve, bench: Bench) -> None:
    server = serve(at_once(text("a", "length"), usage(1), DONE))
    result = bench(server, "--random-input-len", "1", "--random-output-len", "1")
    assert (result["input_lens"], result["completed"], result["mean_tpot_ms"]) == ([1], 1, None)


@pytest.mark.parametrize(
    "frames",
    [
        [text("a"), text("b"), usage(2), DONE],
        [text("a"), text("b"), b'data: {"choices":[{"text":""}],"usage":{"completion_tokens":2}}\n\n', DONE],
    ],
    ids=["a frame of its own", "a frame with an empty text"],
)
def test_the_count_is_the_servers_wherever_it_stands(serve: Serve, bench: Bench, frames: list[bytes]) -> None:
    result = bench(serve(at_once(*frames)), "--random-output-len", "128")
    assert result["output_lens"] == [2]
    assert result["output_lens_from_tokenizer"] == 0


def test_an_answer_without_a_token_is_a_failure(serve: Serve, bench: Bench) -> None:
    result = bench(
        serve(at_once(DONE), at_once(text("a", "stop"), DONE)), "--num-prompts", "2", "--max-concurrency", "1"
    )
    assert (result["completed"], result["failed"]) == (1, 1)
    assert result["failures"] == {"no token in the answer": 1}
    assert result["ttfts"][0] is None
    assert "FAILED requests:" in result["printed"]
    assert "1 x no token in the answer" in result["printed"]


def test_the_role_is_no_token(timed_bench: TimedBench) -> None:
    role = delta(role="assistant", content="")
    steps = [(0.0, role), (0.3, delta("stop", content="a")), (0.0, DONE)]
    result = timed_bench([Script(steps)], "--backend", "openai-chat")
    assert result["ttfts"] == [pytest.approx(0.3)]
    assert result["itls"] == [[]]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_output(timed_bench: TimedBench, field: str) -> None:
    first: dict[str, Any] = {field: "x"}
    steps = [(0.0, delta(**first)), (0.3, delta("stop", content="y")), (0.0, usage(12)), (0.0, DONE)]
    result = timed_bench([Script(steps)], "--backend", "openai-chat")
    assert result["output_lens"] == [12]
    assert result["itls"] == [[pytest.approx(0.3)]]
    assert (result["ttfts"], result["latencies"]) == ([pytest.approx(0.0)], [pytest.approx(0.3)])


def test_answers_of_at_most_one_token_divide_by_nothing(serve: Serve, bench: Bench) -> None:
    result = bench(serve(at_once(text("a", "stop"), usage(1), DONE)), "--num-prompts", "3")
    assert (result["mean_tpot_ms"], result["p99_itl_ms"], result["merge_factor"]) == (None, None, None)
    assert "n/a" in result["printed"]


def test_blanks_are_counted_by_the_server(serve: Serve, bench: Bench) -> None:
    result = bench(serve(at_once(*[text(" ")] * 20, text("", "stop"), usage(20), DONE)))
    assert result["output_lens"] == [20]
    assert len(result["itls"][0]) == 19


def test_goodput_counts_each_request_by_its_own_figures(timed_bench: TimedBench) -> None:
    good = at_once(*[text("a")] * 10, text("", "stop"), usage(10), DONE)
    slow = Script([(0.0, text("a")), (0.7, text("b", "stop")), (0.0, usage(2)), (0.0, DONE)])
    flags = ["--num-prompts", "2", "--max-concurrency", "1", "--goodput", "ttft:5000", "tpot:600", "e2el:9000"]
    result = timed_bench([good, slow], *flags)
    assert result["request_goodput"] == pytest.approx(1 / result["duration"])
    assert "Request goodput (req/s):" in result["printed"]


@pytest.mark.parametrize("target", ["tpot:abc", "nosuch:1", "itl:1", "ttft:-1", "ttft"])
def test_a_wrong_target_ends_before_any_load(serve: Serve, target: str, capsys: pytest.CaptureFixture[str]) -> None:
    server = serve(at_once(text("a", "stop"), DONE))
    with pytest.raises(SystemExit) as stopped:
        main(["--base-url", server.url, "--dataset-name", "random", "--model", "atom-tiny", "--goodput", target])
    assert stopped.value.code == 2
    assert "--goodput" in capsys.readouterr().err
    assert server.log == []


def test_each_metric_named_gets_its_percentiles(serve: Serve, bench: Bench) -> None:
    server = serve(at_once(text("a"), text("b", "stop"), usage(2), DONE))
    result = bench(server, "--percentile-metrics", "ttft,tpot,itl,e2el", "--metric-percentiles", "50,99.9")
    for name in ("ttft", "tpot", "itl", "e2el"):
        assert result[f"p50_{name}_ms"] >= 0
        assert result[f"p99.9_{name}_ms"] >= 0
        assert f"P99.9 {name.upper()} (ms):" in result["printed"]
