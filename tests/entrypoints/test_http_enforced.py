"""Enforced output over HTTP, from the shipped model, by the SDKs of both APIs. Right whatever the model knows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import anthropic
import httpx
import jsonschema
import openai
import pytest

from conformance.http.server import MODEL, started

WEATHER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 20},
        "days": {"type": "integer", "minimum": 1, "maximum": 9},
    },
    "required": ["city"],
    "additionalProperties": False,
}
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 12}, "big": {"type": "boolean"}},
    "required": ["city", "big"],
    "additionalProperties": False,
}
MESSAGES: list[Any] = [{"role": "user", "content": "What is the weather in Oslo?"}]
PROSE: list[Any] = [{"role": "user", "content": "Say hello."}]


def tool(name: str, parameters: dict[str, Any], **more: Any) -> Any:
    return {"type": "function", "function": {"name": name, "description": name, "parameters": parameters, **more}}


TOOLS = [tool("get_weather", WEATHER), tool("current_time", {"type": "object", "properties": {}})]
NAMED: Any = {"type": "function", "function": {"name": "current_time"}}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with started(tmp_path_factory.mktemp("server"), flags=("--max-num-seqs", "16")) as server:
        yield server.url


@pytest.fixture(scope="module")
def client(url: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0)


def ask(client: openai.OpenAI, **fields: Any) -> Any:
    fields = {"messages": MESSAGES, "max_tokens": 200, "temperature": 0, **fields}
    return client.chat.completions.create(model=MODEL, **fields)


def calls_of(choice: Any) -> list[tuple[str, dict[str, Any]]]:
    calls = choice.message.tool_calls or []
    return [(call.function.name, json.loads(call.function.arguments)) for call in calls]


@pytest.mark.parametrize("messages", [MESSAGES, PROSE])
@pytest.mark.parametrize("thinking", [True, False])
def test_a_required_call_comes_whatever_was_asked(client: openai.OpenAI, messages: Any, thinking: bool) -> None:
    switch = {"chat_template_kwargs": {"enable_thinking": thinking}}
    fields: dict[str, Any] = {"messages": messages, "tools": TOOLS, "tool_choice": "required", "extra_body": switch}
    whole = ask(client, **fields).choices[0]
    assert whole.finish_reason in ("tool_calls", "length")
    if whole.finish_reason == "tool_calls":
        schemas = {one["function"]["name"]: one["function"]["parameters"] for one in TOOLS}
        assert calls_of(whole)
        for name, arguments in calls_of(whole):
            jsonschema.validate(arguments, schemas[name])
    streamed: dict[int, list[str]] = {}
    for chunk in ask(client, stream=True, **fields):
        for call in chunk.choices[0].delta.tool_calls or [] if chunk.choices else []:
            entry = streamed.setdefault(call.index, ["", ""])
            entry[0] += call.function.name or ""
            entry[1] += call.function.arguments or ""
    assert [(name, json.loads(text)) for name, text in streamed.values()] == calls_of(whole)


def test_a_named_tool_is_the_one(client: openai.OpenAI) -> None:
    choice = ask(client, tools=TOOLS, tool_choice=NAMED, parallel_tool_calls=False).choices[0]
    assert calls_of(choice) == [("current_time", {})] and choice.finish_reason == "tool_calls"


def test_one_call_at_most_and_several_answers(client: openai.OpenAI) -> None:
    answer = ask(client, tools=TOOLS, tool_choice="required", parallel_tool_calls=False, n=4, temperature=1.0, seed=1)
    assert [len(calls_of(choice)) for choice in answer.choices] == [1] * 4


def test_a_call_cut_by_the_limit_says_so_and_is_json(client: openai.OpenAI) -> None:
    choice = ask(client, tools=TOOLS[:1], tool_choice="required", max_tokens=14).choices[0]
    assert choice.finish_reason == "length"
    assert all(isinstance(arguments, dict) for _, arguments in calls_of(choice))


@pytest.mark.parametrize("temperature", [0, 1.5])
def test_json_of_a_schema(client: openai.OpenAI, temperature: float) -> None:
    output: Any = {"type": "json_schema", "json_schema": {"name": "city", "strict": True, "schema": CITY}}
    for choice in ask(client, response_format=output, temperature=temperature, n=3, seed=5).choices:
        assert choice.finish_reason == "stop"
        jsonschema.validate(json.loads(choice.message.content), CITY)
    chunks = ask(client, response_format=output, stream=True)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    jsonschema.validate(json.loads(text), CITY)


def test_any_json_object(client: openai.OpenAI) -> None:
    choice = ask(client, response_format={"type": "json_object"}).choices[0]
    assert choice.message.content.lstrip().startswith("{")
    if choice.finish_reason == "stop":
        assert isinstance(json.loads(choice.message.content), dict)


def test_json_or_a_call_where_both_may_be(client: openai.OpenAI) -> None:
    output: Any = {"type": "json_schema", "json_schema": {"name": "city", "schema": CITY}}
    choice = ask(client, response_format=output, tools=TOOLS).choices[0]
    if choice.message.tool_calls:
        assert choice.message.content is None
    else:
        jsonschema.validate(json.loads(choice.message.content), CITY)
    none = ask(client, response_format=output, tools=TOOLS, tool_choice="none").choices[0]
    jsonschema.validate(json.loads(none.message.content), CITY)


def test_a_strict_tool_leaves_the_choice(client: openai.OpenAI) -> None:
    tools = [tool("get_weather", WEATHER, strict=True)]
    [(name, arguments)] = calls_of(ask(client, tools=tools).choices[0])
    jsonschema.validate(arguments, WEATHER)
    assert name == "get_weather"
    hello = ask(client, tools=tools, messages=[{"role": "user", "content": "Hello!"}]).choices[0]
    assert hello.finish_reason == "stop" and hello.message.content and not hello.message.tool_calls


def test_stop_strings_and_logprobs_as_ever(client: openai.OpenAI) -> None:
    output: Any = {"type": "json_schema", "json_schema": {"name": "city", "schema": CITY}}
    choice = ask(client, response_format=output, stop=["big"], logprobs=True, top_logprobs=2).choices[0]
    assert choice.finish_reason == "stop" and "big" not in choice.message.content
    # Probabilities are those of the model, which the grammar has not touched.
    first = choice.logprobs.content[0]
    assert sum(2.718281828**top.logprob for top in first.top_logprobs) <= 1.001
    assert "".join(entry.token for entry in choice.logprobs.content) == choice.message.content


def test_the_messages_api(url: str) -> None:
    client = anthropic.Anthropic(base_url=url, api_key="any", max_retries=0)
    tools: Any = [{"name": "get_weather", "description": "w", "input_schema": WEATHER}]
    for choice in ({"type": "any"}, {"type": "tool", "name": "get_weather", "disable_parallel_tool_use": True}):
        message = client.messages.create(
            model=MODEL, max_tokens=200, messages=PROSE, tools=tools, tool_choice=choice, extra_body={"temperature": 0}
        )
        [block] = [block for block in message.content if block.type == "tool_use"][:1]
        jsonschema.validate(block.input, WEATHER)
        assert message.stop_reason == "tool_use"
    body = {"model": MODEL, "max_tokens": 200, "messages": PROSE, "temperature": 0}
    body["output_config"] = {"format": {"type": "json_schema", "schema": CITY}}
    text = httpx.post(f"{url}/v1/messages", json=body, timeout=120).json()["content"][0]["text"]
    jsonschema.validate(json.loads(text), CITY)


def test_the_responses_api(client: openai.OpenAI) -> None:
    output: Any = {"format": {"type": "json_schema", "name": "city", "schema": CITY, "strict": True}}
    answer = client.responses.create(model=MODEL, input="Oslo", text=output, temperature=0, max_output_tokens=200)
    jsonschema.validate(json.loads(answer.output_text), CITY)
    tools: Any = [{"type": "function", "name": "get_weather", "parameters": WEATHER, "strict": True}]
    answer = client.responses.create(
        model=MODEL, input="Say hello.", tools=tools, tool_choice="required", temperature=0, max_output_tokens=200
    )
    call = next(item for item in answer.output if item.type == "function_call")
    jsonschema.validate(json.loads(call.arguments), WEATHER)


def test_a_refusal_does_not_repeat_a_long_schema(url: str) -> None:
    output = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"$ref": "#/" + "far" * 9999}}}
    answer = httpx.post(f"{url}/v1/chat/completions", json={"messages": MESSAGES, "response_format": output})
    assert answer.status_code == 400 and len(answer.text) < 1000


@pytest.mark.parametrize("number", [-(2**63), 1 - 2**63])
def test_a_number_that_the_grammar_library_dies_of_is_refused(url: str, number: int) -> None:
    output = {"type": "json_schema", "json_schema": {"name": "id", "schema": {"properties": {"id": {"const": number}}}}}
    answer = httpx.post(f"{url}/v1/chat/completions", json={"messages": MESSAGES, "response_format": output})
    assert answer.status_code == 400 and "'const' (at #/properties/id)" in answer.json()["error"]["message"]
    assert httpx.get(f"{url}/health").status_code == 200
