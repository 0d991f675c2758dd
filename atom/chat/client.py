"""The client of an OpenAI-compatible server: its models, and streamed chat answers.

Owns HTTP and what a failure means to the person in front of the terminal. The standard library is enough: one request
at a time, and an interrupt (KeyboardInterrupt) anywhere closes the connection, by which a server knows that nobody
waits any more. Knows nothing of terminals or conversations.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from contextlib import suppress
from http.client import HTTPException, HTTPMessage, HTTPResponse
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from atom.chat.chunks import read_chunk

LOOPBACK = ("127.0.0.1", "localhost", "::1")


class ChatError(Exception):
    """The server can not be reached, refused, or broke off; the message is for people. status: 0 without an answer."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


def api_base(url: str) -> str:
    """The URL that paths such as /models are added to: a bare host means /v1. Raises ValueError for what is no URL."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ValueError(f"{url!r} is no address of a server; write it as http://HOST:PORT")
    path = parts.path.rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path or '/v1'}"


class _NoRedirects(HTTPRedirectHandler):
    """A key and a conversation go to the server that was named, and to no other that it names."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        return None


class ChatClient:
    """One server. `base`: as api_base gives it."""

    def __init__(self, base: str, api_key: str | None = None) -> None:
        self._base = base
        self._headers = {"User-Agent": "atom-chat", "Accept": "application/json"}
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        # A proxy of the environment is for the world outside.
        is_local = urlsplit(base).hostname in LOOPBACK
        self._opener = build_opener(_NoRedirects, *([ProxyHandler({})] if is_local else []))

    def models(self) -> list[str]:
        """The names under which models are served. Raises ChatError."""
        with self._send("/models") as response:
            try:
                return [str(model["id"]) for model in json.load(response)["data"]]
            except (OSError, HTTPException) as error:
                raise _broken(error) from error
            except (ValueError, TypeError, KeyError, RecursionError):
                raise ChatError(f"{self._base}/models is no list of models; is --base-url right?") from None

    def stream(self, request: dict[str, Any]) -> Generator[dict[str, Any], None, None]:
        """The chunks of the answer to a chat request; closing the generator ends the request. Raises ChatError."""
        body = {**request, "stream": True, "stream_options": {"include_usage": True}}
        with self._send("/chat/completions", body) as response:
            try:
                yield from _chunks(response)
            except (OSError, HTTPException) as error:
                raise _broken(error) from error

    def _send(self, path: str, body: dict[str, Any] | None = None) -> HTTPResponse:
        data = None if body is None else json.dumps(body).encode()
        headers = self._headers if body is None else {**self._headers, "Content-Type": "application/json"}
        try:
            response: HTTPResponse = self._opener.open(Request(self._base + path, data, headers))
        except HTTPError as error:
            with error:
                raise self._refusal(error) from None
        except (OSError, HTTPException, UnicodeError) as error:  # UnicodeError: a host that can not be one
            reason = error.reason if isinstance(error, URLError) else error
            text = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
            raise ChatError(
                f"No server answers at {self._base} ({text}). `atom serve` starts one; --base-url names another."
            ) from None
        return response

    def _refusal(self, error: HTTPError) -> ChatError:
        body = b""
        with suppress(OSError, HTTPException):
            body = error.read()
        message = _error_text(body)
        if error.code == 401:
            said = f" It says: {message}" if message else ""
            return ChatError(f"The server wants a valid key: --api-key, or OPENAI_API_KEY.{said}", 401)
        if message is None:
            message = f"{error.url} answers with status {error.code}."
        if error.code == 404 and error.url.endswith("/models"):
            message += " Is --base-url right?"
        return ChatError(message, error.code)


def _chunks(response: HTTPResponse) -> Iterator[dict[str, Any]]:
    for line in response:
        if not line.startswith(b"data:"):
            continue
        data = line[5:].strip()
        if data == b"[DONE]":
            return
        try:
            chunk = read_chunk(data)
        except ValueError as error:
            raise ChatError(f"The server sent something that is {error}.") from None
        if chunk.get("error"):
            raise ChatError(_error_text(data) or "The answer failed.", response.status)
        yield chunk
    raise ChatError("The stream ended before the answer did.")


def _broken(error: Exception) -> ChatError:
    return ChatError(f"The connection broke: {error or type(error).__name__}.")


def _error_text(body: bytes) -> str | None:
    """The message of an error in OpenAI's shape, or what other servers put in its place; None without one."""
    try:
        error = json.loads(body)["error"]
        return str(error["message"] if isinstance(error, dict) else error)
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
