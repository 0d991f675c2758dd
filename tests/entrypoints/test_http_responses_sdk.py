"""The official Python client's Responses API against a live server, streamed and whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from atom.entrypoints.scripted.script import Script
from tests.entrypoints.anthropic_requests import WEATHER_CALL
from tests.entrypoints.live import MODEL, LiveServer, running, script, scripted

TOOLS: Any = [
    {
        "type": "function",
        "name": "get_weather",
        "description": "Weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        "strict": False,
    }
]


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    scripts = [
        Script(id="plain", text="Hello there."),
        Script(id="thought", text="<think>One and one.</think>Two."),
        Script(id="call", text=f"<think>t</think>I look. {WEATHER_CALL} done"),
        Script(id="empty", text=""),
        Script(id="fault", text="abcdef", fault_after=2),
    ]
    with running(scripted(*scripts)) as live:
        yield live


def client(server: LiveServer, name: str) -> openai.OpenAI:
    return openai.OpenAI(
        base_url=server.url + "/v1",
        api_key="any",
        max_retries=0,
        default_headers=script(name),
        _strict_response_validation=True,
    )


@pytest.mark.parametrize("name", ["plain", "thought", "call", "empty"])
def test_the_stream_helper_adds_up_to_the_whole(server: LiveServer, name: str) -> None:
    sdk = client(server, name)
    whole = sdk.responses.create(model=MODEL, input="Say hello.", tools=TOOLS)
    with sdk.responses.stream(model=MODEL, input="Say hello.", tools=TOOLS) as stream:
        texts = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
        final = stream.get_final_response()
    assert final.output_text == whole.output_text == texts
    assert [item.type for item in final.output] == [item.type for item in whole.output]
    assert final.status == whole.status == "completed" and final.usage and final.usage == whole.usage
    if name == "call":
        assert [item.type for item in final.output] == ["reasoning", "message", "function_call", "message"]
        call: Any = whole.output[2]
        assert json.loads(call.arguments) == {"city": "Bern"} and call.name == "get_weather"


def test_a_conversation_goes_on_with_its_own_items(server: LiveServer) -> None:
    items: Any = [{"role": "user", "content": "Weather?"}]
    first = client(server, "call").responses.create(model=MODEL, input=items, tools=TOOLS, store=False)
    items += first.output
    items += [
        {"type": "function_call_output", "call_id": item.call_id, "output": "sunny"}
        for item in first.output
        if item.type == "function_call"
    ]
    second = client(server, "plain").responses.create(model=MODEL, input=items, tools=TOOLS)
    assert second.output_text == "Hello there."


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"model": "nope"}, openai.NotFoundError),
        ({"temperature": -1}, openai.BadRequestError),
        ({"previous_response_id": "resp_1"}, openai.BadRequestError),
    ],
)
def test_errors_are_the_clients_own(server: LiveServer, fields: Any, kind: Any, stream: bool) -> None:
    request = {"model": MODEL, "input": "hi", "stream": stream, **fields}
    with pytest.raises(kind) as caught:
        client(server, "plain").responses.create(**request)
    assert set(caught.value.body) == {"message", "type", "param", "code"}


def test_a_failure_in_mid_stream_is_an_event(server: LiveServer) -> None:
    events = list(client(server, "fault").responses.create(model=MODEL, input="hi", stream=True))
    last = events[-1]
    assert last.type == "response.failed" and last.response.error and "fault" in last.response.error.message
