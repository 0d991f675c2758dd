"""The HTTP session that requests share, and the few calls beside the load itself.

Owns aiohttp's settings and the small GET and POST calls (models, draft statistics, profiler). Does not time anything.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from atom.benchmarks.extras import need
from atom.benchmarks.frames import error_message

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

REQUEST_TIMEOUT_S = 6 * 3600.0
# Shorter than any server's own, so that no request goes out on a connection which the server is about to close.
KEEP_ALIVE_S = 2.0


class ServerCallError(RuntimeError):
    """A call beside the load failed; the message names the address and the server's reason."""


def open_session() -> ClientSession:
    """A session without a limit on connections. Must be opened and closed inside a running event loop.

    OPENAI_API_KEY, where set, goes along as a bearer token. Answers are asked for uncompressed: a server that
    compressed would hold frames back.
    """
    aiohttp = need("aiohttp", "the serving benchmark")
    headers = {"Accept-Encoding": "identity"}
    api_key = os.environ.get("OPENAI_API_KEY")
    if api_key:
        headers["Authorization"] = f"Bearer {api_key}"
    session: ClientSession = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_S),
        timeout=aiohttp.ClientTimeout(total=REQUEST_TIMEOUT_S),
        headers=headers,
    )
    return session


async def call(session: ClientSession, method: str, url: str) -> Any:
    """The JSON answer of a small call; None for a path that the server does not have. Raises ServerCallError."""
    aiohttp = need("aiohttp", "the serving benchmark")
    try:
        async with session.request(method, url) as response:
            if response.status in (404, 405):
                return None
            if response.status != 200:
                raise ServerCallError(f"{method} {url}: {await refusal(response)}")
            return await response.json(content_type=None)
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
        raise ServerCallError(f"{method} {url}: {describe(error)}") from error


async def refusal(response: ClientResponse) -> str:
    """One line about an answer that is no success: its status and the server's message."""
    text = (await response.text(errors="replace")).strip()
    try:
        body = await response.json(content_type=None)
    except ValueError:
        body = None
    message = error_message(body.get("error") or body) if isinstance(body, dict) else text
    return f"HTTP {response.status}: {message[:300] or response.reason}"


def describe(error: BaseException) -> str:
    """One line about an exception, also where it has no text of its own."""
    text = str(error).strip()
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
