"""The life of one HTTP request around its handler.

Owns the order in which a request is checked (key, shutdown, content type, size, body), that a client who leaves or a
server that stops ends its work at once, and that every failure becomes an error of the API's own shape. Knows no
endpoint in particular.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from atom.entrypoints.openai.connection import chunk_writer
from atom.entrypoints.openai.errors import (
    ApiError,
    cut_short,
    draining,
    error_response,
    internal_error,
    payload_too_large,
    unauthorized,
    unavailable,
    unsupported_encoding,
    unsupported_media_type,
)
from atom.entrypoints.openai.sse import FrameStream, SseWriter

if TYPE_CHECKING:
    from atom_spec.routes import Route

    from atom.entrypoints.openai.serving import ServingContext

logger = logging.getLogger(__name__)

T = TypeVar("T")

# The third argument is the decoded body, an instance of the route's request model; None for a route without a body.
Handler = Callable[["ServingContext", Request, Any], Awaitable[Response | FrameStream]]


@dataclass(frozen=True, slots=True)
class Operation:
    """A route of the specification, its request model (None: it takes no body), and the function that answers it."""

    route: Route
    model: Any
    handler: Handler


class Endpoint:
    """The ASGI application of one path: a method each operation."""

    def __init__(self, serving: ServingContext, path: str, operations: Mapping[str, Operation]) -> None:
        """`path`: the contract's. `operations`: by method."""
        self._serving = serving
        self._path = path
        self._operations = operations

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, whatever happens."""
        method = scope["method"]
        scope["atom.path"] = self._path
        operation = self._operations.get(method) or self._operations["GET"]  # HEAD is answered as GET
        request = Request(scope, receive)
        try:
            await self._answer(operation, request, send)
        except ClientDisconnect:
            logger.debug("%s: the client left", request_id_of(scope))
        except ApiError as error:
            await as_response(error, scope)(scope, receive, send)
        except Exception:
            logger.exception("%s %s failed (%s)", method, scope["path"], request_id_of(scope))
            await as_response(internal_error(), scope)(scope, receive, send)

    async def _answer(self, operation: Operation, request: Request, send: Send) -> None:
        serving, write_chunk = self._serving, chunk_writer(request.scope)
        if not self._is_open(operation.route) and not serving.api_keys.accept(request.headers):
            raise unauthorized()
        if operation.model is None:
            answer = await operation.handler(serving, request, None)
            assert isinstance(answer, Response)  # only what has a body streams
            await answer(request.scope, request.receive, send)
            return
        if serving.is_draining:
            raise draining()
        if not serving.engine.is_alive:
            raise unavailable("The engine has stopped; the server is going down.", "engine_dead")
        body = await self._decoded_body(operation, request)
        serving.on_request(request)
        async with SseWriter(send, serving.server.sse_keep_alive, write_chunk) as writer:
            response: Response | None = None
            try:
                response = await serving.work.run(_respond(operation, serving, request, body, writer), request.receive)
            except Exception as error:
                if not writer.started or isinstance(error, ClientDisconnect):
                    raise
                await writer.write_error(self._shown(error, request), request_id_of(request.scope))
            if response is None:
                await writer.close()
                return
        await response(request.scope, request.receive, send)

    def _is_open(self, route: Route) -> bool:
        """Whether the route is answered without a key."""
        return not route.auth or (route.path == "/metrics" and self._serving.server.metrics_without_api_key)

    async def _decoded_body(self, operation: Operation, request: Request) -> Any:
        content_type = request.headers.get("content-type")
        if content_type is None or content_type.partition(";")[0].strip().lower() != "application/json":
            raise unsupported_media_type(content_type)
        encoding = request.headers.get("content-encoding", "identity")
        if encoding.strip().lower() not in ("", "identity"):
            raise unsupported_encoding(encoding)
        body = await read_body(request, self._serving.server.max_request_bytes)
        request.state.body_size = len(body)
        if self._serving.request_log is not None:
            self._serving.request_log.add("request", request_id_of(request.scope), body)
        return await self._serving.decode(operation.model, body)

    @staticmethod
    def _shown(error: Exception, request: Request) -> ApiError:
        if isinstance(error, ApiError):
            return error
        logger.error("a stream failed (%s)", request_id_of(request.scope), exc_info=error)
        return internal_error()


async def _respond(
    operation: Operation, serving: ServingContext, request: Request, body: Any, writer: SseWriter
) -> Response | None:
    """The handler's response; None when it was a stream, which is written by then."""
    answer = await operation.handler(serving, request, body)
    log, request_id = serving.request_log, request_id_of(request.scope)
    if isinstance(answer, Response):
        if log is not None:
            log.add("response", request_id, bytes(answer.body))
        return answer
    serving.metrics.open_streams.add(writer)
    try:
        await writer.write_all(answer, None if log is None else partial(log.add_frames, request_id))
        if log is not None:
            log.add("stream_done", request_id)
    finally:
        serving.metrics.open_streams.discard(writer)
    return None


class WorkInProgress:
    """The requests that are being worked on: each ends early when its client leaves, all of them by `cancel_all`."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._is_over = False

    def __len__(self) -> int:
        return len(self._tasks)

    async def run(self, work: Coroutine[Any, Any, T], receive: Receive) -> T:
        """The result of `work`. Raises ClientDisconnect, or ApiError 503 after `cancel_all`; work is over by then."""
        if self._is_over:  # the body was still being read when the server stopped
            work.close()
            raise cut_short()
        task = asyncio.create_task(work)
        watcher = asyncio.create_task(_wait_for_disconnect(receive))
        self._tasks.add(task)
        try:
            await asyncio.wait((task, watcher), return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise ClientDisconnect
            if task.cancelled():
                raise cut_short()
            return task.result()
        finally:
            self._tasks.discard(task)
            task.cancel()
            watcher.cancel()
            await asyncio.gather(task, watcher, return_exceptions=True)

    def cancel_all(self) -> None:
        """Give up everything that still runs, and what would begin from here on."""
        self._is_over = True
        for task in self._tasks:
            task.cancel()


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def read_body(request: Request, limit: int) -> bytes:
    """The request's body. Raises ApiError 413 as soon as it is known to exceed `limit` bytes, and ClientDisconnect."""
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limit:
        raise payload_too_large(limit)
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise payload_too_large(limit)
        chunks.append(chunk)
    return b"".join(chunks)


def request_id_of(scope: Scope) -> str:
    """The id that the request is known by; see middleware."""
    return str(scope.get("atom.request_id", ""))


def as_response(error: ApiError, scope: Scope) -> Response:
    """The error in the shape of the API that the path belongs to."""
    is_anthropic = scope["path"].startswith("/v1/messages")
    return error_response(error, anthropic=is_anthropic, request_id=request_id_of(scope))
