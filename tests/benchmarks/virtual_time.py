"""Time that passes only while everyone waits: seconds of a script take none, and none are lost on a busy machine.

Owns an event loop with such a clock, and its way into the benchmark and the scripted server, which must share the loop.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from atom.benchmarks import backend_request_func, benchmark_serving, http_client, load
from tests.benchmarks import sse_server

T = TypeVar("T")

# Seconds that bytes may take from one end of a connection to the other, and how often is looked meanwhile: a process
# that is stopped in a look is told that nothing has come.
SETTLING, LOOKS = 0.05, 5
CLOCKS = (backend_request_func, benchmark_serving, http_client, load, sse_server)


class _Selector(selectors.DefaultSelector):  # type: ignore[misc,valid-type]  # which one it is depends on the system
    """Where nothing can be read or written, the wait for the next timer is over at once."""

    now = 1000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        for _ in range(LOOKS):
            if events := super().select(SETTLING / LOOKS):
                return events
        self.now += timeout
        return []


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now


def run(monkeypatch: pytest.MonkeyPatch, work: Coroutine[Any, Any, T]) -> T:
    """As asyncio.run, with every clock of the benchmark and of the scripted server the loop's own."""
    loop = VirtualTimeLoop()
    with monkeypatch.context() as patched, asyncio.Runner(loop_factory=lambda: loop) as runner:
        for module in CLOCKS:
            patched.setattr(module, "clock", loop.time)
        return runner.run(work)
