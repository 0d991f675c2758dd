"""Requests to /v1/messages for tests, and what their streams add up to."""

from __future__ import annotations

import json
from typing import Any

import httpx

from atom.entrypoints.scripted.serving import ScriptedServing
from tests.entrypoints.live import LiveServer, named_events, script

WEATHER: dict[str, Any] = {
    "name": "get_weather",
    "description": "Weather of a city",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
CLOCK: dict[str, Any] = {"name": "clock", "input_schema": {"type": "object", "properties": {}}}
WEATHER_CALL = "<tool_call>\n<function=get_weather>\n<parameter=city>\nBern\n</parameter>\n</function>\n</tool_call>"
CLOCK_CALL = "<tool_call>\n<function=clock>\n</function>\n</tool_call>"

# Kind of a block -> kinds of its deltas.
KINDS = {"text": ("text_delta",), "tool_use": ("input_json_delta",), "thinking": ("thinking_delta", "signature_delta")}


def ask(server: LiveServer, name: str | None = None, **fields: Any) -> httpx.Response:
    """A request of one user turn, unless `messages` says otherwise; `name` chooses a script."""
    body = {"max_tokens": 256, "messages": [{"role": "user", "content": "hi"}], **fields}
    return server.post("/v1/messages", body, headers=script(name) if name else None)


def content_of(response: httpx.Response) -> list[dict[str, Any]]:
    """The blocks of a whole answer, which must have been one."""
    assert response.status_code == 200, response.text
    blocks: list[dict[str, Any]] = response.json()["content"]
    return blocks


def last_prompt(server: LiveServer) -> str:
    """The prompt of the latest request that reached the engine."""
    assert isinstance(server.serving, ScriptedServing)
    return server.serving.tokenizer.decode(server.serving.scripted_engine.requests[-1].prompt_token_ids, False)


def fold(response: httpx.Response) -> dict[str, Any]:
    """The message that a stream adds up to, read the way Anthropic documents it; every rule of its order is checked."""
    events = [event for event in named_events(response) if event[0] != "ping"]
    (first, start), *between, (before_last, delta), (last, _) = events
    assert (first, before_last, last) == ("message_start", "message_delta", "message_stop")
    message: dict[str, Any] = start["message"]
    assert message["content"] == [] and message["stop_reason"] is None and message["stop_sequence"] is None
    parts: list[str] | None = None  # of the open block
    for name, data in between:
        if name == "content_block_start":
            assert parts is None and data["index"] == len(message["content"])
            message["content"].append(data["content_block"])
            parts = []
            continue
        assert parts is not None and data["index"] == len(message["content"]) - 1
        if name == "content_block_delta":
            _add(message["content"][-1], parts, data["delta"])
        else:
            assert name == "content_block_stop"
            _end(message["content"][-1], parts)
            parts = None
    assert parts is None
    return {**message, **delta["delta"], "usage": {**message["usage"], **delta["usage"]}}


def _add(block: dict[str, Any], parts: list[str], delta: dict[str, Any]) -> None:
    kinds = {
        "text": ["text_delta"],
        "tool_use": ["input_json_delta"],
        "thinking": ["thinking_delta", "signature_delta"],
    }
    assert delta["type"] in kinds[block["type"]]
    if delta["type"] == "signature_delta":
        assert block["signature"] == ""
        block["signature"] = delta["signature"]
        return
    assert not block.get("signature")
    parts.append(delta[{"text_delta": "text", "input_json_delta": "partial_json"}.get(delta["type"], "thinking")])


def _end(block: dict[str, Any], parts: list[str]) -> None:
    text = "".join(parts)
    if block["type"] == "tool_use":
        assert block["input"] == {}
        block["input"] = json.loads(text)
    else:
        assert block[block["type"]] == ""
        block[block["type"]] = text


def without_ids(message: dict[str, Any]) -> dict[str, Any]:
    """The message without what is new in every answer."""
    blocks = [{key: value for key, value in block.items() if key != "id"} for block in message["content"]]
    return {**message, "id": "", "content": blocks}
