from __future__ import annotations

from typing import Any

import pytest

from atom.benchmarks.speculation import Speculation, speculation_between
from tests.benchmarks.conftest import Bench, Serve
from tests.benchmarks.sse_server import DONE, at_once, text


def stats(drafts: int, accepted: int, distribution: dict[str, int], **more: Any) -> dict[str, Any]:
    return {
        "enabled": True,
        "total_draft_tokens": drafts,
        "total_accepted_tokens": accepted,
        "distribution": distribution,
        "acceptance_rate": 0.5,
        "average_tokens_per_forward": 2.5,
        **more,
    }


def test_the_runs_own_acceptance_is_the_difference() -> None:
    before, after = stats(100, 90, {"1": 50}), stats(160, 120, {"0": 5, "1": 60, "2": 5})
    assert speculation_between(before, after) == Speculation(accept_length=1 + 30 / 20, acceptance_rate=0.5)
    assert speculation_between(None, stats(10, 4, {"0": 1, "2": 2})) == Speculation(1 + 4 / 3, 0.4)


def test_without_a_distribution_the_servers_average_stands() -> None:
    assert speculation_between(None, stats(10, 4, {})) == Speculation(2.5, 0.4)


def test_counters_that_do_not_move() -> None:
    still = stats(100, 50, {"1": 50})
    assert speculation_between(still, still) == Speculation(2.5, 0.5, since_start=True)
    assert speculation_between(still, None) is None


def test_the_report_and_the_result_have_it(serve: Serve, bench: Bench) -> None:
    server = serve(at_once(text("a", "stop"), DONE))
    server.others["/debug/mtp_stats"] = [stats(0, 0, {}), stats(40, 30, {"3": 10})]
    result = bench(server)
    assert (result["accept_length"], result["acceptance_rate"]) == (4.0, 0.75)
    assert "Accept length:                           4.00" in result["printed"]
    assert "Acceptance rate (%):                     75.00" in result["printed"]


@pytest.mark.parametrize("answer", [None, {"enabled": False, "total_draft_tokens": 0}])
def test_a_server_that_does_not_speculate(serve: Serve, bench: Bench, answer: Any) -> None:
    server = serve(at_once(text("a", "stop"), DONE))
    if answer:
        server.others["/debug/mtp_stats"] = answer
    result = bench(server)
    assert (result["accept_length"], result["acceptance_rate"]) == (None, None)
    assert "Accept length" not in result["printed"]
    assert server.other_calls == ["GET /debug/mtp_stats"] * 2
