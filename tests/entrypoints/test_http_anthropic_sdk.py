"""Anthropic's own Python client against a live server, streamed and whole."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import anthropic
import pytest

from atom.entrypoints.scripted.script import Script
from tests.entrypoints.anthropic_requests import CLOCK, CLOCK_CALL, WEATHER, WEATHER_CALL
from tests.entrypoints.live import MODEL, LiveServer, running, script, scripted

MESSAGES: Any = [{"role": "user", "content": "Say hello."}]
TOOLS: Any = [WEATHER, CLOCK]
THINK: Any = {"type": "enabled", "budget_tokens": 1024}


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    scripts = [
        Script(id="plain", text="Hello there."),
        Script(id="thought", text="<think>One and one.</think>Two."),
        Script(id="calls", text=f"<think>t</think>I look. {WEATHER_CALL} and {CLOCK_CALL} done"),
        Script(id="empty", text=""),
        Script(id="fault", text="abcdef", fault_after=2),
    ]
    with running(scripted(*scripts, sse_keep_alive=0.0)) as live:
        yield live


@pytest.fixture(scope="module")
def pinging() -> Iterator[LiveServer]:
    with running(scripted(Script(id="slow", text="abc", delay=0.25), sse_keep_alive=0.1)) as live:
        yield live


def client(server: LiveServer, name: str, strict: bool = True) -> anthropic.Anthropic:
    return anthropic.Anthropic(
        base_url=server.url,
        api_key="any",
        max_retries=0,
        default_headers=script(name),
        _strict_response_validation=strict,
    )


@pytest.mark.parametrize("name", ["plain", "thought", "calls", "empty", "slow"])
def test_the_stream_helper_adds_up_to_the_whole(server: LiveServer, pinging: LiveServer, name: str) -> None:
    sdk = client(pinging if name == "slow" else server, name)
    whole = sdk.messages.create(model=MODEL, max_tokens=2048, messages=MESSAGES, tools=TOOLS, thinking=THINK)
    with sdk.messages.stream(model=MODEL, max_tokens=2048, messages=MESSAGES, tools=TOOLS, thinking=THINK) as stream:
        texts = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert texts == "".join(block.text for block in final.content if block.type == "text")
    left, right = whole.to_dict(exclude_none=True), final.to_dict(exclude_none=True)
    for message in (left, right):
        message["id"] = ""
        for block in message["content"]:  # type: ignore[attr-defined]  # the SDK's typed dict
            block.pop("id", None)
            block.pop("parsed_output", None)
    assert left == right
    if name == "calls":
        assert [block.type for block in final.content] == ["thinking", "text", "tool_use", "text", "tool_use", "text"]
        assert final.stop_reason == "tool_use"
    if name == "thought":
        assert final.content[0].type == "thinking" and final.content[0].thinking == "One and one."


def test_raw_events_pass_strict_validation(server: LiveServer) -> None:
    sdk = client(server, "calls")
    events = [
        event.type
        for event in sdk.messages.create(model=MODEL, max_tokens=512, messages=MESSAGES, tools=TOOLS, stream=True)
    ]
    assert events[0] == "message_start" and events[-2:] == ["message_delta", "message_stop"]
    assert events.count("content_block_start") == events.count("content_block_stop") == 6


def test_a_conversation_goes_on_with_what_was_answered(server: LiveServer) -> None:
    first = client(server, "calls").messages.create(model=MODEL, max_tokens=512, messages=MESSAGES, tools=TOOLS)
    results: Any = [
        {"type": "tool_result", "tool_use_id": block.id, "content": "sunny"}
        for block in first.content
        if block.type == "tool_use"
    ]
    messages: Any = [*MESSAGES, first.to_param(), {"role": "user", "content": results}]
    second = client(server, "plain").messages.create(model=MODEL, max_tokens=16, messages=messages, tools=TOOLS)
    assert second.content[0].type == "text" and second.content[0].text == "Hello there."


def test_counting(server: LiveServer) -> None:
    sdk = client(server, "plain")
    count = sdk.messages.count_tokens(model=MODEL, messages=MESSAGES, tools=TOOLS, system="s").input_tokens
    answer = sdk.beta.messages.create(
        model=MODEL, max_tokens=1, messages=MESSAGES, tools=TOOLS, system="s", betas=["context-1m-2025-08-07"]
    )
    assert answer.usage.input_tokens == count and answer.stop_reason == "max_tokens"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("fields", "kind", "name"),
    [
        ({"model": "nope"}, anthropic.NotFoundError, "not_found_error"),
        ({"max_tokens": 0}, anthropic.BadRequestError, "invalid_request_error"),
        ({"messages": []}, anthropic.BadRequestError, "invalid_request_error"),
    ],
)
def test_errors_are_the_clients_own(server: LiveServer, fields: Any, kind: Any, name: str, stream: bool) -> None:
    request = {"model": MODEL, "max_tokens": 4, "messages": MESSAGES, "stream": stream, **fields}
    with pytest.raises(kind) as caught:
        client(server, "plain").messages.create(**request)
    assert caught.value.body["type"] == "error" and caught.value.body["error"]["type"] == name
    assert caught.value.request_id == caught.value.body["request_id"]


def test_a_failure_in_mid_stream_is_raised(server: LiveServer) -> None:
    with pytest.raises(anthropic.APIStatusError, match="fault"):
        list(client(server, "fault").messages.create(model=MODEL, max_tokens=9, messages=MESSAGES, stream=True))


def test_many_streams_of_one_client(server: LiveServer) -> None:
    async def run() -> list[str]:
        sdk = anthropic.AsyncAnthropic(base_url=server.url, api_key="x", max_retries=0)

        async def one() -> str:
            async with sdk.messages.stream(
                model=MODEL, max_tokens=64, messages=MESSAGES, extra_headers=script("plain")
            ) as stream:
                return "".join([text async for text in stream.text_stream])

        return await asyncio.gather(*[one() for _ in range(8)])

    assert asyncio.run(run()) == ["Hello there."] * 8
