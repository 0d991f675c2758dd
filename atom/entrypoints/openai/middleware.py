"""What wraps every response: request ids, CORS with errors of our shape, and the framework's own errors.

Knows no endpoint.
"""

from __future__ import annotations

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from atom.entrypoints.openai.endpoint import as_response
from atom.entrypoints.openai.errors import ApiError, error_response, internal_error, method_not_allowed, route_not_found
from atom.entrypoints.openai.ids import request_id_for
from atom.entrypoints.openai.metrics import ServerMetrics


class EnvelopeMiddleware:
    """Names every request and counts every response.

    The name goes into the response: x-request-id, and request-id on /v1/messages.
    """

    def __init__(self, app: ASGIApp, metrics: ServerMetrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGIApp."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = request_id_for(Headers(scope=scope).get("x-request-id"))
        scope["atom.request_id"] = request_id

        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["x-request-id"] = request_id
                if scope["path"].startswith("/v1/messages"):
                    headers["request-id"] = request_id
                self._metrics.http_response(scope.get("atom.path", "other"), message["status"])
            await send(message)

        await self._app(scope, receive, send_named)


class Cors(CORSMiddleware):
    """Starlette's CORS rules; a preflight that is refused gets a JSON error."""

    def preflight_response(self, request_headers: Headers) -> Response:
        """See CORSMiddleware."""
        response = super().preflight_response(request_headers)
        if response.status_code < 400:
            return response
        message = "Cross-origin requests of this kind are not allowed here; see --allowed-origins."
        return error_response(ApiError(403, message, type="permission_error", code="cors"))


async def http_exception(request: Request, error: Exception) -> Response:
    """An error that Starlette raises itself: no such route, or no such method."""
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        shown = route_not_found(request.url.path)
    elif error.status_code == 405:
        shown = method_not_allowed(request.method, (error.headers or {}).get("Allow", "").split(", "))
    else:
        shown = ApiError(error.status_code, error.detail)
    return as_response(shown, request.scope)


async def unexpected_error(request: Request, error: Exception) -> Response:
    """Anything that escaped an endpoint; Starlette logs it."""
    return as_response(internal_error(), request.scope)
