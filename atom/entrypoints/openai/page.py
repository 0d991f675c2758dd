"""The page at `/`: its files, and the headers that keep a browser to them.

Owns which files there are and what a browser may do with them: nothing comes from elsewhere, no script or style stands
in the HTML, so that text of a model can never become either. What the page shows is `server_status`'s; what it does is
in the files, atom/entrypoints/page.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from atom.entrypoints.openai.endpoint import Handler
from atom.entrypoints.openai.errors import route_not_found

if TYPE_CHECKING:
    from atom.entrypoints.openai.serving import ServingContext

MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
INDEX = "index.html"
# Stands in index.html where the served model's name belongs.
MODEL_MARK = b"{model}"

# The only inline style there is, /docs; named by its hash in the policy.
DOCS_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:50em;margin:2em auto;padding:0 1em}"
    "table{border-collapse:collapse}td,th{text-align:left;padding:.2em 1em .2em 0;vertical-align:top}"
    "@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}a{color:#8bf}}"
)
_DOCS_STYLE_HASH = base64.b64encode(hashlib.sha256(DOCS_STYLE.encode()).digest()).decode()
POLICY = (
    f"default-src 'none'; script-src 'self'; style-src 'self' 'sha256-{_DOCS_STYLE_HASH}'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# The files change with the server's version and are small: a browser asks each time.
_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}


@cache
def page_files() -> dict[str, bytes]:
    """Every file of the page by its name."""
    folder = files("atom.entrypoints").joinpath("page")
    return {file.name: file.read_bytes() for file in folder.iterdir() if _suffix(file.name) in MEDIA_TYPES}


def secured(body: bytes, media_type: str) -> Response:
    """A response that a browser must not let reach for anything but this server's own files."""
    return Response(body, media_type=media_type, headers=_HEADERS)


async def get_page(serving: ServingContext, call: Request, body: None) -> Response:
    """The page. It needs no key, so it names the model only where nothing does."""
    name = "" if serving.server.api_key else serving.served_model_names[0]
    text = page_files()[INDEX].replace(MODEL_MARK, escape(name).encode())
    return secured(text, MEDIA_TYPES[".html"])


async def get_asset(serving: ServingContext, call: Request, body: None) -> Response:
    """A file that the page refers to."""
    name = call.path_params["name"]
    content = page_files().get(name)
    if content is None or name == INDEX:
        raise route_not_found(call.url.path)
    return secured(content, MEDIA_TYPES[_suffix(name)])


def _suffix(name: str) -> str:
    return name[name.rfind(".") :]


HANDLERS: dict[str, Handler] = {
    "getPage": get_page,
    "headPage": get_page,
    "getAsset": get_asset,
    "headAsset": get_asset,
}
