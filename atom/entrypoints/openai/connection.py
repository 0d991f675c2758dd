"""One HTTP connection: uvicorn's protocol, with three things added.

Owns the answer to bytes that are no HTTP, in our shape, the short way from a stream's frame to the socket, and the
evidence that clients reuse connections which the server has closed: an idle connection is closed on our side first, and
read for a moment longer. Knows no requests.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any, cast

from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from atom.entrypoints.openai.errors import bad_request, error_bytes

logger = logging.getLogger(__name__)

# How long a connection that was closed for being idle is still read, and how often the log speaks of what arrives.
LINGER = 2.0
LOG_INTERVAL = 60.0

# Where a request's scope has its `write_chunk`.
_WRITE_CHUNK = "atom.write_chunk"


def chunk_writer(scope: Scope) -> Callable[[bytes], bool]:
    """What writes a piece of the body of the response to a request, of which the head is out, without awaiting.

    It says whether it took the piece. It does not where the piece has to go through `send`: it may not be written now
    (the client reads too slowly, or has left), or the server is none that knows the short way. To be asked for once a
    request: what is left in the scope would keep the request and its connection alive.
    """
    writer: Callable[[bytes], bool] = scope.pop(_WRITE_CHUNK, _takes_nothing)
    return writer


def _takes_nothing(body: bytes) -> bool:
    return False


def _write_chunk(cycle: RequestResponseCycle, body: bytes) -> bool:
    """As uvicorn's `send` writes a body of unknown length, which is the fourth call between us and the socket there."""
    if cycle.flow.write_paused or cycle.disconnected or not cycle.chunked_encoding or not body:
        return False
    cycle.transport.write(b"%x\r\n%b\r\n" % (len(body), body))
    return True


class Connection(HttpToolsProtocol):
    """A connection of the server."""

    _last_hint = -LOG_INTERVAL  # of all connections
    _is_ended = False

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Where uvicorn begins a request; a uvicorn that does so elsewhere leaves all writing to `send`."""
        scope = cast(Scope, cycle.scope)
        scope[_WRITE_CHUNK] = partial(_write_chunk, cycle)
        super()._start_asgi_task(cycle, app)

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        if not self._is_ended:
            super().data_received(data)
            return
        self.transport.close()
        now = time.monotonic()
        if now - Connection._last_hint >= LOG_INTERVAL:
            Connection._last_hint = now
            logger.warning(
                "a client sent a request on a connection that was closed after %g idle seconds; "
                "raise --timeout-keep-alive above the client's own limit (75 suits most)",
                self.timeout_keep_alive,
            )

    def timeout_keep_alive_handler(self) -> None:
        """The connection has been idle for --timeout-keep-alive: send the end, and see what still comes."""
        if self.transport.is_closing():
            return
        if not self.transport.can_write_eof():
            self.transport.close()
            return
        self._is_ended = True
        self.transport.write_eof()
        self.timeout_keep_alive_task = self.loop.call_later(LINGER, self.transport.close)

    def send_400_response(self, msg: str) -> None:
        """Bytes that are no HTTP."""
        body = error_bytes(bad_request(msg, code="invalid_http"))
        lines = [STATUS_LINE[400]]
        lines += [name + b": " + value + b"\r\n" for name, value in self.server_state.default_headers]
        lines += [
            b"content-type: application/json\r\n",
            b"content-length: %d\r\n" % len(body),
            b"connection: close\r\n\r\n",
            body,
        ]
        self.transport.write(b"".join(lines))
        self.transport.close()
