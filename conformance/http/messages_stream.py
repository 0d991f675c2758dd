"""The order of the events of /v1/messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from conformance.http.sse import Event, is_object, need

_DELTAS = {"text": {"text_delta"}, "thinking": {"thinking_delta", "signature_delta"}, "tool_use": {"input_json_delta"}}
_EMPTY = {"text": ("text", ""), "thinking": ("thinking", ""), "tool_use": ("input", {})}


def check_messages(events: Sequence[Event], request: dict[str, Any]) -> None:
    """Raise StreamError unless: message_start, whole blocks with indexes from 0, one message_delta, message_stop."""
    data = [event.json() for event in events]
    for event, value in zip(events, data, strict=True):
        need(event.name == value.get("type"), f"event {event.name} has data of type {value.get('type')}")
    rest = iter([value for value in data if value["type"] != "ping"])
    start = _next(rest, "message_start")["message"]
    need(start["content"] == [] and start["stop_reason"] is None, "message_start has an answer already")
    num_blocks, following = 0, _next(rest)
    while following["type"] == "content_block_start":
        need(following["index"] == num_blocks, f"block {num_blocks} has index {following['index']}")
        _read_block(following["content_block"], num_blocks, rest)
        num_blocks, following = num_blocks + 1, _next(rest)
    need(num_blocks > 0, "the answer has no block")
    need(following["type"] == "message_delta", f"{following['type']} where message_delta is due")
    reason = following["delta"]["stop_reason"]
    need(reason is not None, "message_delta has no stop_reason")
    matched = following["delta"]["stop_sequence"]
    need((reason == "stop_sequence") == (matched is not None), f"{reason} with stop_sequence {matched!r}")
    _next(rest, "message_stop")
    need(next(rest, None) is None, "something follows message_stop")


def _read_block(block: dict[str, Any], index: int, rest: Iterator[dict[str, Any]]) -> None:
    """Read a block to its stop. The input of a call is JSON of an object, cut or not."""
    kind = block["type"]
    key, empty = _EMPTY[kind]
    need(block[key] == empty, f"block {index} begins with its content")
    kinds, text = [], ""
    while (value := _next(rest))["type"] == "content_block_delta":
        need(value["index"] == index, f"a delta of block {value['index']} inside block {index}")
        kinds.append(value["delta"]["type"])
        need(kinds[-1] in _DELTAS[kind], f"{kinds[-1]} in a block of {kind}")
        text += value["delta"].get("partial_json", "")
    need(value["type"] == "content_block_stop" and value["index"] == index, f"block {index} is not stopped")
    if kind == "thinking":
        is_signed = kinds.count("signature_delta") == 1 and kinds[-1] == "signature_delta"
        need(is_signed, f"block {index}: the thought does not end with its signature")
    need(kind != "tool_use" or is_object(text or "{}"), f"block {index}: the input is no JSON object: {text[:200]!r}")


def _next(rest: Iterator[dict[str, Any]], kind: str | None = None) -> dict[str, Any]:
    value = next(rest, None)
    need(value is not None, f"the stream ends where {kind or 'more'} is due")
    assert value is not None
    need(kind in (None, value["type"]), f"{value['type']} where {kind} is due")
    return value
