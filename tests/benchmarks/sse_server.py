"""A scripted server: what it sends and when is written down, and when it really sent it is recorded.

`with SSEServer(...)` runs it on a thread with an event loop of its own, `async with` in the running event loop, where
no other thread comes between server and client. Times are readings of time.perf_counter, the client's clock too.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web


@dataclass(frozen=True)
class Script:
    """One answer. steps: (seconds to wait, bytes to write). cut: break the connection after the last step."""

    steps: Sequence[tuple[float, bytes]] = ()
    status: int = 200
    content_type: str = "text/event-stream"
    cut: bool = False


@dataclass
class Exchange:
    """What happened: the request, when it was read, and when each step was written."""

    path: str
    body: dict[str, Any]
    headers: dict[str, str]
    received: float
    script: Script
    writes: list[float] = field(default_factory=list)


class SSEServer:
    """Answers the n-th POST (from 0) with `script(n, body)`. GET and profiler answers are in `others` by path."""

    def __init__(self, script: Callable[[int, dict[str, Any]], Script]) -> None:
        self._script = script
        self.log: list[Exchange] = []
        self.others: dict[str, Any] = {"/v1/models": {"data": [{"id": "atom-tiny"}]}}
        self.other_calls: list[str] = []
        self.port = 0
        self._runner: web.AppRunner | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> SSEServer:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(20)
        return self

    def __exit__(self, *exc: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(20)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(20)
        self._loop.close()

    async def __aenter__(self) -> SSEServer:
        self._loop.close()  # the running one serves
        await self._start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._end()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def _start(self) -> None:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.port = self._runner.addresses[0][1]

    async def _end(self) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if request.method == "GET" or request.path in self.others:
            self.other_calls.append(f"{request.method} {request.path}")
            if request.path not in self.others:
                return web.Response(status=404)
            answer = self.others[request.path]
            return web.json_response(answer.pop(0) if isinstance(answer, list) else answer)
        received = time.perf_counter()
        body = await request.json() if request.can_read_body else {}
        script = self._script(len(self.log), body)
        exchange = Exchange(request.path, body, dict(request.headers), received, script)
        self.log.append(exchange)
        response = web.StreamResponse(status=script.status, headers={"Content-Type": script.content_type})
        await response.prepare(request)
        for delay, data in script.steps:
            if delay:
                await asyncio.sleep(delay)
            exchange.writes.append(time.perf_counter())
            await response.write(data)
        if script.cut:
            assert request.transport is not None
            request.transport.abort()
        else:
            await response.write_eof()
        return response


def event(value: Any) -> bytes:
    """One event with a JSON value, or with text as it is."""
    return b"data: " + (value.encode() if isinstance(value, str) else json.dumps(value).encode()) + b"\n\n"


DONE = event("[DONE]")


def text(content: str, finish: str | None = None) -> bytes:
    """A frame of /v1/completions."""
    return event({"choices": [{"index": 0, "text": content, "finish_reason": finish}]})


def delta(finish: str | None = None, **fields: Any) -> bytes:
    """A frame of /v1/chat/completions."""
    return event({"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]})


def usage(completion: int, prompt: int | None = None) -> bytes:
    """The frame with the token counts alone."""
    return event({"choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": completion}})


def at_once(*frames: bytes, **fields: Any) -> Script:
    """All frames, one write each, without waiting."""
    return Script([(0.0, frame) for frame in frames], **fields)
