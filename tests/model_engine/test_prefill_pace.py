"""How long an idle engine waits for the rest of a burst: the numbers, the conditions, the loop that waits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from atom.model_engine.batch import ScheduledBatch
from atom.model_engine.engine_core import serve
from atom.model_engine.messages import EngineRequest, FromEngine, Shutdown, StepOutput, ToEngine
from atom.model_engine.prefill_pace import BurstPatience
from atom.sampling_params import SamplingParams
from tests.fakes.clock import ManualClock
from tests.fakes.engine_driver import EngineDriver
from tests.fakes.uniform_executor import UniformConfig

# A token of a prompt takes so long; times are sums of powers of two, so that they are exact.
TOKEN_SECONDS = 1 / 32


def driver_of(**settings: Any) -> EngineDriver:
    """An engine whose clock moves with the tokens that it computes."""
    clock = ManualClock(100.0)
    driver = EngineDriver(UniformConfig(waits_for_prompts=True, **settings), clock)

    def take(batch: ScheduledBatch) -> None:
        driver.batches.append(batch)
        clock.advance(batch.num_tokens * TOKEN_SECONDS)

    driver.executor.on_batch = take
    return driver


def request(name: str, num_tokens: int, arrival_time: float, max_tokens: int = 1) -> EngineRequest:
    return EngineRequest(name, [ord(name) - ord("a")] * num_tokens, SamplingParams(max_tokens=max_tokens), arrival_time)


def test_patience_is_a_share_of_what_the_step_will_take() -> None:
    clock = ManualClock(100.0)
    patience = BurstPatience(clock)
    assert patience.seconds(1000, oldest_arrival=100.0) == 0.0  # nothing was timed yet
    patience.prompts_begin(step=7, num_tokens=16)
    clock.advance(0.25)
    patience.step_ends(6)  # another step
    assert patience.seconds(1000, oldest_arrival=clock()) == 0.0
    patience.step_ends(7)
    # 2% of 4 and of 8 tokens of 1/64 s, and a gap of 3 ms at most; 50 ms in all at most
    assert patience.seconds(4, oldest_arrival=clock()) == pytest.approx(0.00125, rel=1e-6)
    assert patience.seconds(100, oldest_arrival=clock()) == 0.003
    assert patience.seconds(8, oldest_arrival=clock() - 0.002) == pytest.approx(0.0005, rel=1e-6)
    assert patience.seconds(8, oldest_arrival=clock() - 0.003) == 0.0
    assert patience.seconds(10**6, oldest_arrival=clock() - 0.049) == pytest.approx(0.001, rel=1e-6)
    assert patience.seconds(10**6, oldest_arrival=clock() - 0.051) == 0.0


def test_a_step_waits_only_for_prompts_alone_and_only_while_there_is_room() -> None:
    driver = driver_of(max_num_seqs=3, max_num_batched_tokens=32)
    core, now = driver.core, driver.scheduler._clock
    assert core.patience == 0.0
    core.add(request("a", 16, now()))
    assert core.patience == 0.0  # no prompt was timed yet
    driver.run()
    core.add(request("b", 16, now(), max_tokens=5))
    assert core.patience == 0.003
    core.add(request("c", 16, now()))
    assert core.patience == 0.0  # as many tokens as a step may have
    driver.run()
    for name in "def":
        assert core.patience == (0.0 if name == "d" else 0.003)
        core.add(request(name, 1 if name == "f" else 8, now(), max_tokens=5))
    assert core.patience == 0.0  # as many sequences as may run
    core.abort(["f"])
    assert core.patience == 0.003
    driver.executor.waits_for_prompts = False
    assert core.patience == 0.0
    driver.executor.waits_for_prompts = True
    driver.step()
    core.add(request("g", 16, now()))
    assert core.patience == 0.0  # others run


class ArrivingSockets:
    """Sockets where messages arrive while they are waited at, one part of `parts` a time: None is a wait in vain."""

    def __init__(self, parts: list[list[ToEngine] | None]) -> None:
        self.parts = iter(parts)
        self.arrived: list[ToEngine] = []
        self.timeouts: list[float | None] = []
        self.sent: list[FromEngine] = []

    def wait(self, timeout: float | None) -> bool:
        self.timeouts.append(timeout)
        part = next(self.parts)
        self.arrived += part or []
        return part is not None

    def receive_all(self) -> Iterator[ToEngine]:
        arrived, self.arrived = self.arrived, []
        return iter(arrived)

    def send(self, message: FromEngine) -> None:
        self.sent.append(message)


def test_a_burst_that_comes_one_by_one_is_one_step() -> None:
    driver = driver_of()
    first = request("a", 8, 100.0)
    burst: list[list[ToEngine] | None] = [[request(name, 8, 100.25)] for name in "bcd"]
    sockets = ArrivingSockets([[first], *burst, None, [Shutdown(drain_timeout=9.0)]])
    serve(driver.core, sockets)  # type: ignore[arg-type]  # what it uses of EngineSockets
    assert [batch.num_rows for batch in driver.batches] == [1, 3]
    assert sockets.timeouts == [None, None, 0.003, 0.003, 0.003, None]
    ended = [delta.request_id for sent in sockets.sent if isinstance(sent, StepOutput) for delta in sent.deltas]
    assert ended == ["a", "b", "c", "d"]


def test_a_shutdown_ends_the_wait_for_a_burst() -> None:
    driver = driver_of()
    sockets = ArrivingSockets([[request("a", 8, 100.0)], [request("b", 8, 100.25)], [Shutdown(drain_timeout=9.0)]])
    serve(driver.core, sockets)  # type: ignore[arg-type]  # as above
    assert [batch.num_rows for batch in driver.batches] == [1, 1]
