"""The order of the events of /v1/responses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from conformance.http.sse import Event, is_object, need

Value = dict[str, Any]
_ENDS = ("response.completed", "response.incomplete")
# Kind of part -> the kind of its deltas, less their `.delta` and `.done`.
_PARTS = {"output_text": "response.output_text", "reasoning_text": "response.reasoning_text"}


def check_responses(events: Sequence[Event], request: Value) -> None:
    """Raise StreamError unless: created, in_progress, whole items one after the other, the end with the same items."""
    values = [event.json() for event in events]
    for number, (event, value) in enumerate(zip(events, values, strict=True)):
        need(event.name == value.get("type"), f"event {event.name} has data of type {value.get('type')}")
        need(value["sequence_number"] == number, f"event {number} has sequence_number {value['sequence_number']}")
    need(values[-1]["type"] in _ENDS, f"the stream ends with {values[-1]['type']}")
    rest = iter(values)
    for kind in ("response.created", "response.in_progress"):
        opened = _next(rest, kind)["response"]
        need(opened["output"] == [] and opened["status"] == "in_progress", f"{kind} has an answer already")
    items: list[Value] = []
    while (value := _next(rest))["type"] not in _ENDS:
        need(value["type"] == "response.output_item.added", f"{value['type']} outside of an item")
        need(value["output_index"] == len(items), f"item {len(items)} has output_index {value['output_index']}")
        items.append(_read_item(value["item"], len(items), rest))
    need(next(rest, None) is None, f"something follows {value['type']}")
    need(value["response"]["output"] == items, "the last event has other items than the stream")
    need(value["response"]["status"] == value["type"].removeprefix("response."), "the status is another than the end's")
    need(value["response"]["usage"] is not None, "the last event has no usage")
    need(value["response"]["id"] == opened["id"], "id changes within the stream")


def _read_item(begun: Value, index: int, rest: Iterator[Value]) -> Value:
    """Read an item to its end; the whole item."""
    if begun["type"] == "function_call":
        need(begun["arguments"] == "", f"item {index} begins with its arguments")
        text, done = _read_deltas("response.function_call_arguments", begun["id"], index, rest)
        need(done["arguments"] == text, f"item {index}: arguments are others than their deltas")
        item = _read_end(begun, index, _next(rest))
        need(item["arguments"] == text, f"item {index} ends with other arguments")
        need(is_object(text), f"item {index}: the arguments are no JSON object: {text[:200]!r}")
        return item
    need(begun["content"] == [], f"item {index} begins with its content")
    parts: list[Value] = []
    while (value := _next(rest))["type"] == "response.content_part.added":
        need(_place(value) == (begun["id"], index, len(parts)), f"a part of item {index} is elsewhere")
        kind = value["part"]["type"]
        need(value["part"]["text"] == "", f"a part of item {index} begins with its text")
        text, done = _read_deltas(_PARTS[kind], begun["id"], index, rest)
        need(done["text"] == text, f"item {index}: the text is another than its deltas")
        ended = _next(rest, "response.content_part.done")
        part = ended["part"]
        need((part["type"], part["text"]) == (kind, text), f"a part of item {index} ends as another")
        parts.append(part)
    item = _read_end(begun, index, value)
    need(item["content"] == parts, f"item {index} ends with other parts")
    return item


def _read_deltas(kind: str, item_id: str, index: int, rest: Iterator[Value]) -> tuple[str, Value]:
    """The joined deltas, and the event that says they are done."""
    text = ""
    while (value := _next(rest))["type"] == f"{kind}.delta":
        need(_place(value)[:2] == (item_id, index), f"a delta of another item inside item {index}")
        text += value["delta"]
    need(value["type"] == f"{kind}.done", f"{value['type']} where {kind}.done is due")
    need(_place(value)[:2] == (item_id, index), f"the end of another item's text inside item {index}")
    return text, value


def _read_end(begun: Value, index: int, value: Value) -> Value:
    need(value["type"] == "response.output_item.done", f"{value['type']} where item {index} should end")
    need(value["output_index"] == index, f"item {index} ends as item {value['output_index']}")
    item: Value = value["item"]
    need(item["id"] == begun["id"] and item["type"] == begun["type"], f"item {index} ends as another")
    return item


def _place(value: Value) -> tuple[Any, Any, Any]:
    return value.get("item_id"), value.get("output_index"), value.get("content_index")


def _next(rest: Iterator[Value], kind: str | None = None) -> Value:
    value = next(rest, None)
    need(value is not None, f"the stream ends where {kind or 'more'} is due")
    assert value is not None
    need(kind in (None, value["type"]), f"{value['type']} where {kind} is due")
    return value
