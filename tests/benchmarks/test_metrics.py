"""The formulas, on timestamps written by hand."""

from __future__ import annotations

import pytest

from atom.benchmarks.backend_request_func import RequestFuncOutput
from atom.benchmarks.metrics import BenchmarkMetrics, calculate_metrics, count_output_tokens, summarize


def answer(ttft: float, itl: list[float], tokens: int, **fields: object) -> RequestFuncOutput:
    latency = ttft + sum(itl)
    output = RequestFuncOutput(
        success=True, ttft=ttft, itl=itl, latency=latency, output_tokens=tokens, prompt_len=10, generated_text="x"
    )
    for name, value in fields.items():
        setattr(output, name, value)
    return output


def failure(error: str) -> RequestFuncOutput:
    return RequestFuncOutput(ttft=9.0, latency=99.0, itl=[50.0], output_tokens=1000, prompt_len=1000, error=error)


def ms(metrics: BenchmarkMetrics, name: str) -> tuple[float, float, float]:
    found = metrics.distribution(name)
    assert found is not None
    return found.mean, found.median, found.std


def test_every_figure_of_two_streams() -> None:
    outputs = [answer(0.1, [0.02] * 4, 5), answer(0.3, [0.04] * 2, 3)]
    metrics = calculate_metrics(outputs, 2.0, (50, 99.9))
    assert (metrics.completed, metrics.failed, metrics.total_input, metrics.total_output) == (2, 0, 20, 8)
    assert metrics.request_throughput == 1.0
    assert metrics.output_throughput == 4.0
    assert metrics.total_token_throughput == 14.0
    assert metrics.concurrency == pytest.approx((0.18 + 0.38) / 2)
    assert ms(metrics, "ttft") == pytest.approx((200, 200, 100))
    assert ms(metrics, "tpot") == pytest.approx((30, 30, 10))
    assert ms(metrics, "itl") == pytest.approx((160 / 6, 20, 9.428), rel=1e-3)
    assert ms(metrics, "e2el") == pytest.approx((280, 280, 100))
    assert metrics.merge_factor == pytest.approx(1.0)
    assert metrics.itl is not None
    assert [p for p, _ in metrics.itl.percentiles] == [50, 99.9]
    assert metrics.itl.percentiles[0][1] == pytest.approx(20)
    assert metrics.request_goodput is None


def test_merged_frames_move_itl_and_not_tpot() -> None:
    metrics = calculate_metrics([answer(0.03, [0.03] * 9, 30)], 1.0)
    assert ms(metrics, "tpot")[0] == pytest.approx(270 / 29)
    assert ms(metrics, "itl")[0] == pytest.approx(30)
    assert metrics.merge_factor == pytest.approx(29 / 9)


def test_the_merge_factor_of_unmerged_streams_of_unequal_length_is_one() -> None:
    metrics = calculate_metrics([answer(0.1, [0.01] * 100, 101), answer(0.1, [0.1] * 2, 3)], 1.0)
    assert metrics.merge_factor == pytest.approx(1.0)


def test_failed_requests_are_counted_named_and_in_no_figure() -> None:
    good = [answer(0.1, [0.02], 2)]
    with_failures = calculate_metrics([failure("a"), *good, failure("b"), failure("b")], 1.0, targets={"ttft": 1e9})
    alone = calculate_metrics(good, 1.0, targets={"ttft": 1e9})
    assert (with_failures.completed, with_failures.failed) == (1, 3)
    assert with_failures.failures == (("b", 2), ("a", 1))
    for name in ("total_input", "total_output", "ttft", "tpot", "itl", "e2el", "concurrency", "request_goodput"):
        assert getattr(with_failures, name) == getattr(alone, name), name


def test_nothing_completed_gives_no_figure_and_no_division_by_zero() -> None:
    for outputs in ([], [failure("a")]):
        metrics = calculate_metrics(outputs, 0.0, targets={"tpot": 1})
        assert (metrics.ttft, metrics.tpot, metrics.itl, metrics.e2el, metrics.merge_factor) == (None,) * 5
        assert (metrics.request_throughput, metrics.request_goodput) == (0.0, 0.0)


def test_answers_of_one_token_have_no_tpot() -> None:
    metrics = calculate_metrics([answer(0.1, [], 1), answer(0.1, [], 0)], 1.0, targets={"tpot": 0.0})
    assert metrics.tpot is None
    assert metrics.merge_factor is None
    assert metrics.request_goodput == 2.0


def test_an_answer_that_came_whole_has_no_time_per_token() -> None:
    assert calculate_metrics([answer(0.5, [], 20, streamed=False)], 1.0).tpot is None


def test_goodput_holds_each_request_to_its_own_figures() -> None:
    outputs = [answer(0.05, [0.01] * 10, 11), answer(0.05, [0.2] * 2, 3), answer(0.5, [0.01], 2)]
    assert calculate_metrics(outputs, 1.0, targets={"ttft": 100, "tpot": 50, "e2el": 1000}).request_goodput == 1.0
    assert calculate_metrics(outputs, 1.0, targets={"e2el": 450}).request_goodput == 2.0
    assert calculate_metrics(outputs, 0.5, targets={"ttft": 500}).request_goodput == 6.0


def test_input_tokens_are_the_servers_count_where_there_is_one() -> None:
    metrics = calculate_metrics([answer(0.1, [], 1, prompt_tokens=14), answer(0.1, [], 1)], 1.0)
    assert metrics.total_input == 24


def test_only_missing_counts_come_from_the_tokenizer() -> None:
    outputs = [
        answer(0.1, [], 7),
        answer(0.1, [], 0, output_tokens=None, generated_text="three"),
        answer(0.1, [], 0, output_tokens=None, generated_text=""),
        failure("a"),
    ]
    assert count_output_tokens(outputs, len) == 2
    assert [output.output_tokens for output in outputs] == [7, 5, 1, 1000]


def test_statistics_of_no_value() -> None:
    assert summarize([], (99,)) is None
