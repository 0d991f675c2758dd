"""Server-sent events: frames of one line of JSON, comments, and the writer of a stream.

Owns the bytes between an answer's JSON and the socket: as plain ASGI, and past it where the server has a shorter way.
Knows nothing of chats or tokens.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass

from starlette.types import Send

from atom.entrypoints.openai.errors import ApiError, error_bytes

DONE = b"data: [DONE]\n\n"
KEEP_ALIVE = b": keep-alive\n\n"

STREAM_HEADERS: list[tuple[bytes, bytes]] = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
]


def frame(json_text: bytes) -> bytes:
    """One event without a name. `json_text` must hold no line break, as encoders write it."""
    return b"data: " + json_text + b"\n\n"


def named_frame(name: str, json_text: bytes) -> bytes:
    """One event with a name."""
    return b"event: " + name.encode() + b"\ndata: " + json_text + b"\n\n"


def openai_error(error: ApiError, request_id: str) -> bytes:
    """The last frame of a stream of OpenAI's chat or completions that failed."""
    return frame(error_bytes(error))


def anthropic_error(error: ApiError, request_id: str) -> bytes:
    """The last frame of a stream of /v1/messages that failed."""
    return named_frame("error", error_bytes(error, anthropic=True, request_id=request_id))


@dataclass(frozen=True, slots=True)
class FrameStream:
    """What a streaming handler returns.

    frames: each item is one or more complete frames. keep_alive: what goes out while a further frame is waited for.
    error_frame: the frame that ends the stream when it fails, from the error and the request's id.
    """

    frames: AsyncGenerator[bytes, None]
    keep_alive: bytes = KEEP_ALIVE
    error_frame: Callable[[ApiError, str], bytes] = openai_error


class SseWriter:
    """Writes the frames of one response; the status line goes out with the first of them, not before.

    So a failure that comes before the first frame can still be a plain JSON error. While nothing has been written for
    `keep_alive` seconds (0: never), a comment goes out, and starts the response where it has to: proxies and clients
    keep waiting for a long prompt, and for a long call whose arguments are held. Behind the first frame it is the
    stream's own kind of keep-alive instead.
    """

    def __init__(self, send: Send, keep_alive: float, write_chunk: Callable[[bytes], bool]) -> None:
        """`write_chunk`: see connection.chunk_writer."""
        self._send = send
        self._write_chunk = write_chunk
        self._keep_alive = keep_alive
        self._last_write = self.last_frame = time.monotonic()
        self._ticker: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()
        self._keep_alive_frame = KEEP_ALIVE
        self._error_frame: Callable[[ApiError, str], bytes] = openai_error
        self.started = False

    async def __aenter__(self) -> SseWriter:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        if self._ticker is not None:
            self._ticker.cancel()
            with suppress(asyncio.CancelledError):
                await self._ticker

    async def write_all(self, stream: FrameStream, log: Callable[[bytes], None] | None = None) -> None:
        """Write frames as they come, to the last. The generator is closed whatever happens. `log` sees them too."""
        self._error_frame = stream.error_frame
        if self._keep_alive > 0:
            self._ticker = asyncio.create_task(self._tick())
        async with aclosing(stream.frames) as frames:
            async for chunk in frames:
                if not self._write_at_once(chunk):
                    await self.write(chunk)
                self.last_frame = self._last_write
                self._keep_alive_frame = stream.keep_alive
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

    def _write_at_once(self, frames: bytes) -> bool:
        """Write complete frames the short way, unless the head is not out yet or something else waits to be written."""
        if not self.started or self._lock.locked() or not self._write_chunk(frames):
            return False
        self._last_write = time.monotonic()
        return True

    async def write_error(self, error: ApiError, request_id: str) -> None:
        """Write that the stream has failed, the way its API says so."""
        await self.write(self._error_frame(error, request_id))

    async def close(self) -> None:
        """End the response."""
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _tick(self) -> None:
        while True:
            silence = time.monotonic() - self._last_write
            if silence >= self._keep_alive:
                await self.write(self._keep_alive_frame)
                silence = 0.0
            await asyncio.sleep(self._keep_alive - silence)
