"""The official Python client against a live server, streamed and whole."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from atom.entrypoints.scripted.script import Script
from tests.entrypoints.live import MODEL, LiveServer, running, script, scripted

CALL = "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n</tool_call>"
TOOL: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
MESSAGES: Any = [{"role": "user", "content": "Say hello."}]


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    scripts = [
        Script(id="plain", text="Hello there."),
        Script(id="thought", text="<think>One and one.</think>Two."),
        Script(id="call", text=f"<think>t</think>{CALL}", format="qwen"),
        Script(id="fault", text="abcdef", fault_after=2),
    ]
    with running(scripted(*scripts)) as live:
        yield live


def client(server: LiveServer, name: str, strict: bool = True) -> openai.OpenAI:
    return openai.OpenAI(
        base_url=server.url + "/v1",
        api_key="any",
        max_retries=0,
        default_headers=script(name),
        _strict_response_validation=strict,
    )


def test_answers_pass_strict_validation(server: LiveServer) -> None:
    sdk = client(server, "plain")
    assert [model.id for model in sdk.models.list()] == [MODEL]
    assert sdk.models.retrieve(MODEL).id == MODEL
    answer = sdk.chat.completions.create(model=MODEL, messages=MESSAGES, logprobs=True, top_logprobs=2)
    assert answer.choices[0].message.content == "Hello there." and answer.usage
    assert answer._request_id
    text = sdk.completions.create(model=MODEL, prompt=["a", "b"], max_tokens=4, logprobs=1)
    assert text.choices[1].text == "Hell"
    lenient = client(server, "plain", strict=False)  # its types know no null for an echoed prompt's first token
    text = lenient.completions.create(model=MODEL, prompt=["a", "b"], max_tokens=4, logprobs=1, echo=True)
    assert [choice.index for choice in text.choices] == [0, 1] and text.choices[0].text == "aHell"


def test_streams_pass_strict_validation(server: LiveServer) -> None:
    sdk = client(server, "plain")
    options: Any = {"include_usage": True}
    chunks = list(sdk.chat.completions.create(model=MODEL, messages=MESSAGES, stream=True, stream_options=options))
    assert chunks[0].choices[0].delta.role == "assistant" and chunks[-1].usage and not chunks[-1].choices
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks[:-1]) == "Hello there."
    texts = list(client(server, "plain", strict=False).completions.create(model=MODEL, prompt="a", stream=True))
    assert "".join(chunk.choices[0].text for chunk in texts) == "Hello there."


def test_the_stream_helper_adds_up_to_the_whole(server: LiveServer) -> None:
    for name in ("plain", "thought", "call"):
        sdk = client(server, name)
        whole = sdk.chat.completions.create(model=MODEL, messages=MESSAGES, tools=[TOOL])
        with sdk.chat.completions.stream(model=MODEL, messages=MESSAGES, tools=[TOOL]) as stream:
            for _ in stream:
                pass
            final = stream.get_final_completion()
        ours, theirs = whole.choices[0], final.choices[0]
        assert (ours.message.content or "") == (theirs.message.content or "")
        assert ours.finish_reason == theirs.finish_reason
        assert getattr(ours.message, "reasoning", None) == getattr(theirs.message, "reasoning", None)
        calls = [[call.function for call in choice.message.tool_calls or []] for choice in (ours, theirs)]
        assert [(f.name, f.arguments) for f in calls[0]] == [(f.name, f.arguments) for f in calls[1]]
        if name == "call":
            assert json.loads(calls[0][0].arguments) == {"city": "Paris"} and ours.finish_reason == "tool_calls"


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"model": "nope"}, openai.NotFoundError),
        ({"temperature": -1}, openai.BadRequestError),
        ({"messages": []}, openai.BadRequestError),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_errors_are_the_clients_own(server: LiveServer, fields: Any, kind: Any, stream: bool) -> None:
    request = {"model": MODEL, "messages": MESSAGES, "stream": stream, **fields}
    with pytest.raises(kind) as caught:
        client(server, "plain").chat.completions.create(**request)
    assert set(caught.value.body) == {"message", "type", "param", "code"}


def test_a_failure_in_mid_stream_is_raised(server: LiveServer) -> None:
    with pytest.raises(openai.APIError, match="fault"):
        list(client(server, "fault").chat.completions.create(model=MODEL, messages=MESSAGES, stream=True))


def test_many_streams_of_one_client(server: LiveServer) -> None:
    async def run() -> list[str]:
        sdk = openai.AsyncOpenAI(base_url=server.url + "/v1", api_key="x", max_retries=0)

        async def one() -> str:
            headers = script("plain")
            stream = await sdk.chat.completions.create(
                model=MODEL, messages=MESSAGES, stream=True, extra_headers=headers
            )
            return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

        return await asyncio.gather(*[one() for _ in range(8)])

    assert asyncio.run(run()) == ["Hello there."] * 8
