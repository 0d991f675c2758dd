"""The HTTP application: the routes of the specification, bound to their handlers.

Owns the binding (a route without a handler, or a handler without a route, fails when this module is imported) and the
order of the middleware. Knows no endpoint's inside.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Mapping

from atom_spec.routes import ROUTES, Route
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Route as HttpRoute

from atom.entrypoints.openai import admin, chat, completions, messages, page, pages, responses, server_status
from atom.entrypoints.openai import models as model_list
from atom.entrypoints.openai.endpoint import Endpoint, Handler, Operation
from atom.entrypoints.openai.middleware import Cors, EnvelopeMiddleware, http_exception, unexpected_error
from atom.entrypoints.openai.serving import ServingContext

HANDLERS: dict[str, Handler] = {
    **chat.HANDLERS,
    **completions.HANDLERS,
    **messages.HANDLERS,
    **responses.HANDLERS,
    **model_list.HANDLERS,
    **admin.HANDLERS,
    **server_status.HANDLERS,
    **page.HANDLERS,
    **pages.HANDLERS,
}


def bind(routes: Iterable[Route], handlers: Mapping[str, Handler]) -> dict[str, dict[str, Operation]]:
    """Path to method to operation. Raises LookupError unless routes and handlers match one to one."""
    routes = tuple(routes)
    missing = [route.operation_id for route in routes if route.operation_id not in handlers]
    surplus = sorted(set(handlers) - {route.operation_id for route in routes})
    if missing or surplus:
        raise LookupError(f"routes without a handler: {missing}; handlers without a route: {surplus}")
    paths: dict[str, dict[str, Operation]] = {}
    for route in routes:
        model = None
        if route.request is not None:
            model = getattr(importlib.import_module(f"atom_spec.{route.module}"), route.request)
        operation = Operation(route, model, handlers[route.operation_id])
        paths.setdefault(route.path, {})[route.method.upper()] = operation
    return paths


OPERATIONS = bind(ROUTES, HANDLERS)


def create_app(serving: ServingContext) -> Starlette:
    """The ASGI application over an engine and a model."""
    routes = [
        HttpRoute(_with_slashes(path), Endpoint(serving, path, operations), methods=list(operations))
        for path, operations in OPERATIONS.items()
    ]
    middleware = [Middleware(EnvelopeMiddleware, metrics=serving.metrics)]
    if serving.server.allowed_origins:
        middleware.append(
            Middleware(
                Cors,
                allow_origins=serving.server.allowed_origins,
                allow_methods=["GET", "HEAD", "POST"],
                allow_headers=["*"],
                expose_headers=["x-request-id", "request-id", "retry-after"],
            )
        )
    app = Starlette(
        routes=routes,
        middleware=middleware,
        exception_handlers={HTTPException: http_exception, Exception: unexpected_error},
    )
    app.router.redirect_slashes = False
    server_status.quiet_polls()
    return app


def _with_slashes(path: str) -> str:
    """A parameter at a path's end takes slashes too: names of models have them."""
    return re.sub(r"\{(\w+)\}$", r"{\1:path}", path)
