"""The contract: as JSON, and as a list for people.

Owns the list's HTML, which is plain and self-contained.
"""

from __future__ import annotations

from functools import cache
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atom.entrypoints.openai.endpoint import Handler
from atom.entrypoints.openai.page import DOCS_STYLE, secured

if TYPE_CHECKING:
    from atom.entrypoints.openai.serving import ServingContext


@cache
def contract_json() -> bytes:
    """spec/openapi.yaml as JSON, as it was generated into the package."""
    return files("atom_spec").joinpath("openapi.json").read_bytes()


async def get_openapi(serving: ServingContext, call: Request, body: None) -> Response:
    """The contract."""
    return Response(contract_json(), media_type="application/json")


async def get_docs(serving: ServingContext, call: Request, body: None) -> Response:
    """Every operation, with its request's fields."""
    return _page("ATOM: endpoints", _docs_html())


@cache
def _docs_html() -> str:
    contract = msgspec.json.decode(contract_json())
    parts = ['<p>The whole contract: <a href="/openapi.json">/openapi.json</a> (OpenAPI 3.1).</p>']
    for path, operations in contract["paths"].items():
        for method, operation in operations.items():
            parts.append(f"<h2><code>{method.upper()} {escape(path)}</code></h2>")
            parts.append(f"<p>{escape(operation.get('summary', ''))}</p>")
            parts.append(_fields_html(contract, operation))
    return "".join(parts)


def _fields_html(contract: dict[str, Any], operation: dict[str, Any]) -> str:
    """The fields of an operation's request body, as a table; nothing without one."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if content is None:
        return ""
    schema = _resolve(contract, content["schema"])
    rows = []
    for name, field in schema.get("properties", {}).items():
        field = _resolve(contract, field)
        default = f", default {field['default']}" if field.get("default") is not None else ""
        kind = field.get("type", "one of several")
        kind = " or ".join(kind) if isinstance(kind, list) else kind
        about = f"{kind}{default}. {field.get('description', '')}"
        rows.append(f"<tr><td><code>{escape(name)}</code></td><td>{escape(about)}</td></tr>")
    return f"<table>{''.join(rows)}</table>"


def _resolve(contract: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema:
        target: Any = contract
        for step in schema["$ref"].removeprefix("#/").split("/"):
            target = target[step]
        schema = target
    return schema


def _page(title: str, body: str) -> Response:
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{DOCS_STYLE}</style>"
    )
    text = f"<!doctype html><html lang=en><head>{head}</head><body><h1>{escape(title)}</h1>{body}</body>"
    return secured(text.encode(), "text/html; charset=utf-8")


HANDLERS: dict[str, Handler] = {
    "getDocs": get_docs,
    "getOpenapi": get_openapi,
}
