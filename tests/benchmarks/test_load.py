from __future__ import annotations

import asyncio
import itertools
import math
import statistics

import pytest

from atom.benchmarks import load
from atom.benchmarks.load import arrival_times, run_load
from tests.benchmarks import virtual_time


def gaps(rate: float, burstiness: float, number: int = 20_000) -> list[float]:
    times = arrival_times(number, rate, burstiness, seed=0)
    return [later - earlier for earlier, later in itertools.pairwise(times)]


@pytest.mark.parametrize("burstiness", [0.3, 1.0, 4.0])
def test_gaps_have_the_rates_mean_and_the_shapes_deviation(burstiness: float) -> None:
    found = gaps(5.0, burstiness)
    assert statistics.fmean(found) == pytest.approx(0.2, rel=0.05)
    assert statistics.pstdev(found) / statistics.fmean(found) == pytest.approx(1 / math.sqrt(burstiness), rel=0.05)


def test_the_first_request_goes_out_at_once_and_inf_sends_all_at_once() -> None:
    assert arrival_times(4, math.inf, 1.0, 0) == [0.0] * 4
    times = arrival_times(4, 2.0, 1.0, 0)
    assert times[0] == 0.0
    assert times == sorted(times)
    assert times == arrival_times(4, 2.0, 1.0, 0) != arrival_times(4, 2.0, 1.0, 1)
    assert arrival_times(1, 2.0, 1.0, 0) == [0.0]


@pytest.mark.parametrize(("bound", "peak"), [(None, 12), (3, 3), (1, 1)])
def test_the_bound_holds_and_answers_keep_their_order(bound: int | None, peak: int) -> None:
    running, seen = 0, 0

    async def send(request: int) -> int:
        nonlocal running, seen
        running += 1
        seen = max(seen, running)
        await asyncio.sleep(0.001 * (12 - request))
        running -= 1
        return request * 10

    answers, duration = asyncio.run(run_load(range(12), send, [0.0] * 12, bound))
    assert answers == [request * 10 for request in range(12)]
    assert seen == peak
    assert duration > 0


def test_requests_wait_for_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async def send(request: int) -> float:
        return load.clock()

    async def work() -> tuple[float, list[float], float]:
        return load.clock(), *await run_load(range(3), send, [0.0, 0.05, 0.15])

    start, answers, duration = virtual_time.run(monkeypatch, work())
    assert answers == [pytest.approx(start + time) for time in (0.0, 0.05, 0.15)]
    assert duration == pytest.approx(0.15)
