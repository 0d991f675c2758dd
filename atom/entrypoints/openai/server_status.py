"""`/status`: what is served and how busy it is, in one small answer for the page and for people.

Owns the choice of what to tell; every figure is the engine's, the metrics' or the chat profile's own. Rates are the
reader's to make, from two answers.
"""

from __future__ import annotations

import logging
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Literal

import msgspec
from atom_spec.ops import ChatStatus, DurationTotal, LoadStatus, ServerStatus
from starlette.requests import Request
from starlette.responses import Response

from atom.entrypoints.openai.endpoint import Handler

if TYPE_CHECKING:
    from atom.entrypoints.openai.serving import ServingContext


def quiet_polls() -> None:
    """Keep the page's questions, one every other second, out of the access log; refused ones stay."""
    logging.getLogger("uvicorn.access").addFilter(_is_worth_a_line)


def _is_worth_a_line(record: logging.LogRecord) -> bool:
    # Uvicorn's arguments: client, method, path, version, status.
    return not (isinstance(record.args, tuple) and record.args[1:3] == ("GET", "/status") and record.args[4:] == (200,))


async def get_status(serving: ServingContext, call: Request, body: None) -> Response:
    """The state at this moment."""
    return Response(msgspec.json.encode(server_status(serving)), media_type="application/json")


def server_status(serving: ServingContext) -> ServerStatus:
    """All of it."""
    info = serving.engine.info
    return ServerStatus(
        state=_state(serving),
        version=package_version(),
        models=list(serving.served_model_names),
        architecture=info.architecture,
        device=info.device,
        dtype=info.dtype,
        max_model_len=serving.max_model_len,
        kernels=info.kernels,
        chat=_chat_status(serving),
        load=_load_status(serving),
    )


@cache
def package_version() -> str:
    """The installed package's version; "unknown" where the code runs without being installed."""
    try:
        return version("atom")
    except PackageNotFoundError:
        return "unknown"


def _state(serving: ServingContext) -> Literal["ok", "draining", "dead"]:
    if not serving.engine.is_alive:
        return "dead"
    return "draining" if serving.is_draining else "ok"


def _chat_status(serving: ServingContext) -> ChatStatus | None:
    if serving.chat_template is None:
        return None
    profile = serving.chat_model().profile
    return ChatStatus(
        tool_call_format=None if profile.format is None else profile.format.name,
        reasoning_dialect=None if profile.dialect is None else profile.dialect.name,
        thinking_switch=None if profile.thinking_switch is None else profile.thinking_switch.keyword,
        reasoning_efforts=list(profile.efforts),
    )


def _load_status(serving: ServingContext) -> LoadStatus:
    stats = serving.engine.stats
    return LoadStatus(
        requests_running=stats.num_running,
        requests_waiting=stats.num_waiting,
        kv_cache_blocks_used=stats.num_blocks_used,
        kv_cache_blocks_total=stats.num_blocks_total,
        prompt_tokens=stats.prompt_tokens,
        cached_prompt_tokens=stats.cached_prompt_tokens,
        generation_tokens=stats.generation_tokens,
        time_to_first_token=_duration(serving, "atom:time_to_first_token_seconds"),
        inter_token_latency=_duration(serving, "atom:inter_token_latency_seconds"),
    )


def _duration(serving: ServingContext, name: str) -> DurationTotal:
    count, seconds = serving.metrics.total(name)
    return DurationTotal(count=count, seconds=seconds)


HANDLERS: dict[str, Handler] = {"getStatus": get_status}
