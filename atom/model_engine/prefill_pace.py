"""When a waiting prompt may start: at once, or held back by --scheduler-delay-factor.

Knows times only, neither blocks nor slots.
"""

from __future__ import annotations

from collections.abc import Callable

from atom.model_engine.waiting_queue import WaitingQueue


class PrefillPace:
    """scheduler_delay_factor: hold new prompts back so that more of them share a step, at the cost of their wait."""

    def __init__(self, factor: float, clock: Callable[[], float]) -> None:
        self.factor = factor
        self._clock = clock
        self._began = 0.0
        self._had_prefill = False
        self._last_duration = 0.0

    def step_begins(self, has_prefill: bool) -> None:
        """A step is put together now; times the prefill step before it."""
        if not self.factor:
            return
        now = self._clock()
        if self._had_prefill:
            self._last_duration = now - self._began
        self._began, self._had_prefill = now, has_prefill

    def may_start(self, waiting: WaitingQueue, num_running: int) -> bool:
        """Whether the first waiting prompt may start in this step."""
        if not self.factor or not num_running or not len(waiting):
            return True
        return self._clock() - waiting.oldest_arrival() > self.factor * self._last_duration
