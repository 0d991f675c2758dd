"""One HTTP connection: uvicorn's protocol, with two things added.

Owns the answer to bytes that are no HTTP, in our shape, and the evidence that clients reuse connections which the
server has closed: an idle connection is closed on our side first, and read for a moment longer. Knows no requests.
"""

from __future__ import annotations

import logging
import time

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from atom.entrypoints.openai.errors import bad_request, error_bytes

logger = logging.getLogger(__name__)

# How long a connection that was closed for being idle is still read, and how often the log speaks of what arrives.
LINGER = 2.0
LOG_INTERVAL = 60.0


class Connection(HttpToolsProtocol):
    """A connection of the server."""

    _last_hint = -LOG_INTERVAL  # of all connections
    _is_ended = False

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
