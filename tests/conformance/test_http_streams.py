"""The checks of a stream's order: real streams pass, and every structural fault in one is seen."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from atom_spec.routes import ROUTES

from atom.entrypoints.scripted.script import Script
from conformance.http.sse import Event, StreamError, read_events
from conformance.http.streams import ORDERS, check_stream
from tests.entrypoints.live import LiveServer, running, script, scripted

CALL = "<tool_call>\n<function=get_weather>\n<parameter=city>\nBern\n</parameter>\n</function>\n</tool_call>"
TEXT = f"<think>one</think>Before.{CALL}{CALL} After."
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
ASK = [{"role": "user", "content": "hi"}]

TEXT_DELTAS = ("text_delta", "thinking_delta")
PATHS = {route.operation_id: route.path for route in ROUTES}
REQUESTS: dict[str, dict[str, Any]] = {
    "createChatCompletion": {
        "messages": ASK,
        "n": 2,
        "stream_options": {"include_usage": True},
        "tools": [{"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}],
    },
    "createCompletion": {"prompt": ["a", "b"], "stream_options": {"include_usage": True}},
    "createMessage": {
        "messages": ASK,
        "max_tokens": 200,
        "tools": [{"name": "get_weather", "input_schema": SCHEMA}],
    },
    "createResponse": {
        "input": ASK,
        "tools": [{"type": "function", "name": "get_weather", "parameters": SCHEMA}],
    },
}


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    scripts = Script(id="whole", text=TEXT, format="qwen", chunk=9), Script(id="error", text="abc", fault_after=2)
    with running(scripted(*scripts)) as live:
        yield live


def stream_of(server: LiveServer, operation: str, name: str = "whole") -> tuple[str, dict[str, Any]]:
    request = {**REQUESTS[operation], "stream": True}
    response = server.post(PATHS[operation], request, headers=script(name))
    assert response.status_code == 200, response.text
    return response.text, request


def written(events: Sequence[Event]) -> str:
    """The events as a server writes them."""
    names = ["" if event.name == "message" else f"event: {event.name}\n" for event in events]
    return "".join(f"{name}data: {event.data}\n\n" for name, event in zip(names, events, strict=True))


def is_free(operation: str, kind: str, event: Event) -> bool:
    """Whether the fault can't be seen by somebody who does not know the answer, at this event."""
    if event.data == "[DONE]" or operation == "createResponse":
        return False
    data = json.loads(event.data)
    if operation == "createMessage":
        delta = data.get("delta", {}).get("type")
        # A call without arguments has no delta.
        return kind != "first" and (delta in TEXT_DELTAS or (kind, delta) == ("dropped", "input_json_delta"))
    if not data["choices"]:
        return False
    if operation == "createCompletion":
        return data["choices"][0]["finish_reason"] is None
    delta = data["choices"][0]["delta"]
    if kind == "first":
        return "role" in delta  # either choice may begin
    return bool(delta) and set(delta) <= {"content", "reasoning_content", "reasoning"}


def test_every_streaming_operation_has_an_order() -> None:
    assert {route.operation_id for route in ROUTES if route.streams} == set(ORDERS) == set(REQUESTS)


@pytest.mark.parametrize("operation", ORDERS)
def test_a_real_stream_passes(server: LiveServer, operation: str) -> None:
    text, request = stream_of(server, operation)
    check_stream(operation, text, request)
    assert written(read_events(text)) == text


@pytest.mark.parametrize("operation", ORDERS)
def test_an_event_too_few_or_too_many_or_too_early_is_seen(server: LiveServer, operation: str) -> None:
    text, request = stream_of(server, operation)
    events = read_events(text)
    missed = []
    for place, event in enumerate(events):
        faults = {"dropped": [*events[:place], *events[place + 1 :]], "twice": [*events[: place + 1], *events[place:]]}
        if place > 0:
            faults["first"] = [event, *events[:place], *events[place + 1 :]]
        for kind, broken in faults.items():
            try:
                check_stream(operation, written(broken), request)
            except StreamError:
                continue
            if not is_free(operation, kind, event):
                missed.append((kind, event.data))
    assert not missed


@pytest.mark.parametrize("operation", ORDERS)
def test_a_stream_that_ends_in_an_error_is_seen(server: LiveServer, operation: str) -> None:
    text, request = stream_of(server, operation, "error")
    with pytest.raises(StreamError):
        check_stream(operation, text, request)


@pytest.mark.parametrize(
    "text", ["data: {}", "data:{}\n\n", "data: \n\n", "event: a\n\n", "data: 1\ndata: 2\n\n", "\n\n"]
)
def test_other_framing_is_seen(text: str) -> None:
    with pytest.raises(StreamError):
        read_events(text)
