"""A scripted server: what it sends and when is written down, and when it really sent it is recorded.

`with SSEServer(...)` runs it on a thread with an event loop of its own, `async with` in the running event loop, where
no other thread comes between server and client. Times are readings of `clock`, which is the client's clock too.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

clock = time.perf_counter
CHUNKED = "Transfer-Encoding: chunked"


@dataclass(frozen=True)
class Script:
    """One answer. steps: (seconds or what to wait for, bytes to write). cut: close the connection after the last step.

    framing: the header that says where the body ends; other than chunks, the end of the connection does.
    """

    steps: Sequence[tuple[float | threading.Event, bytes]] = ()
    status: int = 200
    framing: str = CHUNKED
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
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> SSEServer:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(120)
        return self

    def __exit__(self, *exc: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(120)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(120)
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
        self._server = await asyncio.start_server(self._connect, sock=self._listening)

    async def _end(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while await self._handle(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the client left, or the test is over
        finally:
            self._connections.discard(task)
            writer.close()

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request; whether the connection stays open."""
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").strip().split("\r\n")
        method, path, _ = first.split(" ")
        headers = dict(line.split(": ", 1) for line in lines)
        body = await reader.readexactly(int(headers.get("Content-Length", 0)))
        received = clock()
        if method == "GET" or path in self.others:
            self.other_calls.append(f"{method} {path}")
            answer = self.others.get(path)
            value = json.dumps(answer.pop(0) if isinstance(answer, list) else answer).encode()
            writer.write(_head(200 if path in self.others else 404, f"Content-Length: {len(value)}") + value)
            return True
        value = json.loads(body) if body else {}
        script = self._script(len(self.log), value)
        exchange = Exchange(path, value, headers, received, script)
        self.log.append(exchange)
        writer.write(_head(script.status, script.framing))
        for delay, data in script.steps:
            if isinstance(delay, threading.Event):
                await asyncio.to_thread(delay.wait, 120)
            elif delay:
                await asyncio.sleep(delay)
            exchange.writes.append(clock())
            writer.write(b"%x\r\n%b\r\n" % (len(data), data) if script.framing == CHUNKED else data)
            await writer.drain()
        if script.cut or script.framing != CHUNKED:
            return False
        writer.write(b"0\r\n\r\n")
        return True


def _head(status: int, framing: str) -> bytes:
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n{framing}\r\n\r\n".encode("latin-1")


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
