"""When a waiting prompt may start: at once, held back by --scheduler-delay-factor, or when its burst is there.

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


# An idle engine waits for the rest of a burst as long as each request comes within so many seconds of the one before it
# (an API process reads some 700 a second), for a share of the time at most that the step will take, and for `_MOST`.
_GAP, _SHARE, _MOST = 0.003, 0.02, 0.05


class BurstPatience:
    """How long a step of prompts alone had better wait for more of them.

    Requests that are sent at once come one by one. Where the first one's prompt takes a hundred times as long as the
    others need to arrive, a step of its own costs all of them more than waiting: its products are small, and at the end
    the others take a step without it.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._prompts = (-1, 0.0, 0)  # the last step with prompts, when it began, and how many of their tokens it has
        self._seconds_per_token = 0.0

    def prompts_begin(self, step: int, num_tokens: int) -> None:
        """A step with so many tokens of prompts begins."""
        self._prompts = step, self._clock(), num_tokens

    def step_ends(self, step: int) -> None:
        """A step's result is there; it is timed if it had prompts."""
        prompts_step, began, num_tokens = self._prompts
        if step == prompts_step:
            self._seconds_per_token = (self._clock() - began) / num_tokens

    def seconds(self, num_tokens: int, oldest_arrival: float) -> float:
        """How long to wait for another request when prompts of so many tokens wait already; 0: begin."""
        limit = min(_MOST, _SHARE * num_tokens * self._seconds_per_token)
        return max(0.0, min(_GAP, oldest_arrival + limit - self._clock()))
