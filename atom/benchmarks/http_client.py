"""A small HTTP/1.1 client that reads the clock where bytes arrive.

Owns connections, requests and the parsing of answers (httptools). Does not know protocols or metrics.

Why not a library: with 256 streams on one core, aiohttp took 21 microseconds of a core for each frame and 200 for each
request, because a frame wakes a task before it is timed; in that time other frames wait. Here a frame is timed and
handed on inside the event loop's own callback. docs/benchmarking.md has the figures. Only what a benchmark needs is
here: no redirects, no proxies, no compression.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

import httptools

from atom.benchmarks.frames import error_message

clock = time.perf_counter
Receive = Callable[[bytes, float], None]
"""(a piece of a successful answer's body, the reading of the clock when it arrived)."""

REQUEST_TIMEOUT_S = 6 * 3600.0
# Shorter than any server's own, so that no request goes out on a connection which the server is about to close.
KEEP_ALIVE_S = 2.0


class ServerCallError(RuntimeError):
    """A call beside the load failed; the message names the address and the server's reason."""


class BrokenAnswerError(ConnectionError):
    """The connection ended, or held something that is no HTTP, before the answer was complete."""


class UnreachableError(ConnectionError):
    """No connection to the server."""


class Origin(NamedTuple):
    """Where a connection goes."""

    host: str
    port: int
    is_secure: bool


@dataclass(slots=True)
class Answer:
    """A complete answer. body: of an answer other than 200, and of 200 where nobody received it as it came."""

    status: int = 0
    body: bytes = b""

    @property
    def refusal(self) -> str:
        """One line about an answer that is no success: its status and the server's message."""
        try:
            value = json.loads(self.body)
        except ValueError:
            value = None
        text = self.body.decode("utf-8", "replace").strip()
        message = error_message(value.get("error") or value) if isinstance(value, dict) else text
        reason = HTTPStatus(self.status).phrase if self.status in HTTPStatus._value2member_map_ else ""
        return f"HTTP {self.status}: {message[:300] or reason}"


class _Connection(asyncio.Protocol):
    """One connection, with one request on it at a time. Its methods with `on_` are httptools' callbacks."""

    def __init__(self) -> None:
        self.idle_since = 0.0
        self.is_open = False
        self.can_be_kept = False
        self._transport: asyncio.Transport | None = None
        self._parser: Any = None
        self._future: asyncio.Future[Answer] | None = None
        self._answer = Answer()
        self._receive: Receive | None = None
        self._now = 0.0
        self._ends_with_connection = False

    def send(self, request: bytes, receive: Receive | None) -> asyncio.Future[Answer]:
        """Write a request; the future is done with the end of its answer."""
        assert self._transport is not None
        self._answer = Answer()
        self._receive = receive
        self._ends_with_connection = True
        self._parser = httptools.HttpResponseParser(self)
        self._future = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return self._future

    def close(self) -> None:
        """Close at once, whatever is under way."""
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's has another base
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        self._now = clock()
        if self._parser is None:
            self.close()  # nothing was asked for
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(BrokenAnswerError(f"the server's answer is no HTTP: {error}"))

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        if self._answer.status and self._ends_with_connection and exc is None:
            self._finish()
        else:
            reason = str(exc) if exc else "the server closed the connection"
            self._fail(BrokenAnswerError(f"{reason} before the answer was complete"))

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() in (b"content-length", b"transfer-encoding"):
            self._ends_with_connection = False

    def on_headers_complete(self) -> None:
        self._answer.status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        if self._answer.status != HTTPStatus.OK or self._receive is None:
            self._answer.body += body
            return
        try:
            self._receive(body, self._now)
        except Exception as error:  # whatever it is, it belongs to the one who waits for the answer
            self._fail(error)

    def on_message_complete(self) -> None:
        self.can_be_kept = self._parser.should_keep_alive()
        self._finish()

    def _finish(self) -> None:
        if self._future is not None and not self._future.done():
            self._future.set_result(self._answer)
        self._parser = None

    def _fail(self, error: Exception) -> None:
        self._receive = self._parser = None
        if self._future is not None and not self._future.done():
            self._future.set_exception(error)
        self.close()


class Session:
    """Connections that requests share: as many as there are requests in flight, kept open between them.

    OPENAI_API_KEY, where set, goes along as a bearer token. Answers are asked for uncompressed: a server that
    compressed would hold frames back. To be used inside one event loop, with `async with`.
    """

    def __init__(self) -> None:
        self._idle: dict[Origin, list[_Connection]] = {}
        self._in_use: set[_Connection] = set()
        api_key = os.environ.get("OPENAI_API_KEY")
        self._headers = "Accept: */*\r\nAccept-Encoding: identity\r\nUser-Agent: atom-bench\r\n"
        if api_key:
            self._headers += f"Authorization: Bearer {api_key}\r\n"

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(self, *exc: object) -> None:
        for connection in [*self._in_use, *(one for kept in self._idle.values() for one in kept)]:
            connection.close()
        await asyncio.sleep(0)  # the transports close in the loop's next round

    async def request(
        self,
        method: str,
        url: str,
        body: bytes = b"",
        receive: Receive | None = None,
        on_send: Callable[[float], None] | None = None,
    ) -> Answer:
        """Send a request and wait for the end of the answer.

        receive: gets a successful answer's body as it comes, in place of Answer.body; what it raises is raised here.
        on_send: is told the reading of the clock when the request is written, on a connection that is open then. Raises
        OSError (ConnectionError and TimeoutError are such) for an answer that does not come whole.
        """
        origin, path = _split(url)
        head = f"{method} {path} HTTP/1.1\r\nHost: {_host_header(origin)}\r\n{self._headers}"
        if body or method == "POST":
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        data = head.encode("latin-1") + b"\r\n" + body
        connection = self._take(origin) or await self._connect(origin)
        self._in_use.add(connection)
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                if on_send is not None:
                    on_send(clock())
                answer = await connection.send(data, receive)
        except BaseException:
            connection.close()
            raise
        finally:
            self._in_use.discard(connection)
        if connection.is_open and connection.can_be_kept:
            connection.idle_since = clock()
            self._idle.setdefault(origin, []).append(connection)
        else:
            connection.close()
        return answer

    def _take(self, origin: Origin) -> _Connection | None:
        """A connection that is open and was used a moment ago."""
        kept = self._idle.get(origin, [])
        while kept:
            connection = kept.pop()
            if connection.is_open and clock() - connection.idle_since < KEEP_ALIVE_S:
                return connection
            connection.close()
        return None

    async def _connect(self, origin: Origin) -> _Connection:
        context = ssl.create_default_context() if origin.is_secure else None
        loop = asyncio.get_running_loop()
        try:
            _, connection = await loop.create_connection(_Connection, origin.host, origin.port, ssl=context)
        except OSError as error:
            raise UnreachableError(f"{_host_header(origin)} can not be reached: {error.strerror or error}") from error
        return connection


async def call(session: Session, method: str, url: str) -> Any:
    """The JSON answer of a small call; None for a path that the server does not have. Raises ServerCallError."""
    try:
        answer = await session.request(method, url)
        if answer.status in (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED):
            return None
        if answer.status != HTTPStatus.OK:
            raise ServerCallError(f"{method} {url}: {answer.refusal}")
        return json.loads(answer.body)
    except (OSError, ValueError) as error:
        raise ServerCallError(f"{method} {url}: {describe(error)}") from error


def describe(error: BaseException) -> str:
    """One line about an exception, also where it has no text of its own."""
    text = str(error).strip()
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


@functools.lru_cache(maxsize=64)
def _split(url: str) -> tuple[Origin, str]:
    """Where a request goes, and its path with the query. Raises ValueError for what is no address."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url!r} is no address of the form http://host:port/path")
    is_secure = parts.scheme == "https"
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Origin(parts.hostname, parts.port or (443 if is_secure else 80), is_secure), path


def _host_header(origin: Origin) -> str:
    host = f"[{origin.host}]" if ":" in origin.host else origin.host
    return f"{host}:{origin.port}"
