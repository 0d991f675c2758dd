"""Server-sent events: frames of one line of JSON, comments, and the writer of a stream.

Owns the bytes between an answer's JSON and the socket, as plain ASGI: one call a chunk, nothing between. Knows nothing
of chats or tokens.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress

from starlette.types import Send

DONE = b"data: [DONE]\n\n"
KEEP_ALIVE = b": keep-alive\n\n"

STREAM_HEADERS: list[tuple[bytes, bytes]] = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
]


class FrameStream:
    """What a streaming handler returns; each item of `frames` is one or more complete frames."""

    __slots__ = ("frames",)

    def __init__(self, frames: AsyncGenerator[bytes, None]) -> None:
        self.frames = frames


def frame(json_text: bytes) -> bytes:
    """One event without a name. `json_text` must hold no line break, as encoders write it."""
    return b"data: " + json_text + b"\n\n"


class SseWriter:
    """Writes the frames of one response; the status line goes out with the first of them, not before.

    So a failure that comes before the first frame can still be a plain JSON error. While nothing has been written for
    `keep_alive` seconds (0: never), a comment goes out, and starts the response where it has to: proxies and clients
    keep waiting for a long prompt, and for a long call whose arguments are held.
    """

    def __init__(self, send: Send, keep_alive: float) -> None:
        self._send = send
        self._keep_alive = keep_alive
        self._last_write = self.last_frame = time.monotonic()
        self._ticker: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()
        self.started = False

    async def __aenter__(self) -> SseWriter:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        if self._ticker is not None:
            self._ticker.cancel()
            with suppress(asyncio.CancelledError):
                await self._ticker

    async def write_all(self, frames: AsyncGenerator[bytes, None], log: Callable[[bytes], None] | None = None) -> None:
        """Write frames as they come, to the last. The generator is closed whatever happens. `log` sees them too."""
        if self._keep_alive > 0:
            self._ticker = asyncio.create_task(self._tick())
        async with aclosing(frames):
            async for chunk in frames:
                await self.write(chunk)
                self.last_frame = self._last_write
                if log is not None:
                    log(chunk)

    async def write(self, frames: bytes) -> None:
        """Write complete frames."""
        async with self._lock:
            self._last_write = time.monotonic()
            if not self.started:
                self.started = True
                await self._send({"type": "http.response.start", "status": 200, "headers": list(STREAM_HEADERS)})
            await self._send({"type": "http.response.body", "body": frames, "more_body": True})

    async def close(self) -> None:
        """End the response."""
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _tick(self) -> None:
        while True:
            silence = time.monotonic() - self._last_write
            if silence >= self._keep_alive:
                await self.write(KEEP_ALIVE)
                silence = 0.0
            await asyncio.sleep(self._keep_alive - silence)
