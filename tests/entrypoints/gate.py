"""A gate in a scripted engine: its delays end when the test says so, however fast or slow the machine is.

Knows nothing of what is asked or answered.
"""

from __future__ import annotations

import asyncio
from typing import Any

import httpx

from atom.entrypoints.scripted.serving import ScriptedServing
from tests.entrypoints.live import LiveServer


class Gate:
    """Every delay of the server's scripts waits here, its seconds notwithstanding."""

    def __init__(self, live: LiveServer) -> None:
        assert isinstance(live.serving, ScriptedServing)
        self._live = live
        self._engine = live.serving.scripted_engine
        self._go_on = self._engine._pause
        self._passes = asyncio.Semaphore(0)
        self._engine._pause = self._pause

    def stream(self, path: str, body: Any, *marks: tuple[str, int]) -> httpx.Response:
        """A streamed answer, read to its end. A delay ends once the next (mark, n) has come n times."""
        text, ends = "", list(marks)
        with self._live.client.stream("POST", path, json={**body, "stream": True}) as response:
            for piece in response.iter_text():
                text += piece
                while ends and text.count(ends[0][0]) >= ends[0][1]:
                    del ends[0]
                    self.let_pass()
        return httpx.Response(response.status_code, headers=response.headers, text=text, request=response.request)

    def let_pass(self, number: int = 1) -> None:
        """End so many delays, those that are still to come included."""
        for _ in range(number):
            self._live.in_loop(self._passes.release)

    async def _pause(self, seconds: float) -> None:
        if seconds > 0:
            waiting = [asyncio.ensure_future(self._passes.acquire()), asyncio.ensure_future(self._engine.died.wait())]
            try:
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for one in waiting:
                    one.cancel()
        await self._go_on(0.0)
