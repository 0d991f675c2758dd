"""What a request to /v1/responses makes of the prompt, and what it is refused for, over a live server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.entrypoints.anthropic_requests import last_prompt
from tests.entrypoints.live import LiveServer, error_of, running, scripted

WEATHER = {"type": "function", "name": "get_weather", "parameters": {"type": "object", "properties": {}}}
USER = {"role": "user", "content": "U"}
CALL = {"type": "function_call", "call_id": "c1", "name": "get_weather", "arguments": '{"city": "Bonn"}'}


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with running(scripted("fine")) as live:
        yield live


def prompt_of(server: LiveServer, given: Any, **fields: Any) -> str:
    response = server.post("/v1/responses", {"input": given, **fields})
    assert response.status_code == 200, response.text
    return last_prompt(server).removesuffix("<|role|>assistant\n")


def turn(role: str, text: str) -> str:
    """A turn as the test template writes it: jinja's trim_blocks takes the line break behind a tag."""
    return f"<|role|>{role}{text}<|end|>\n"


def test_a_text_is_a_users_message(server: LiveServer) -> None:
    assert prompt_of(server, " hi\n") == turn("user", " hi\n")
    assert prompt_of(server, "hi", instructions="I") == turn("system", "I") + turn("user", "hi")


def test_messages_of_every_role_and_shape(server: LiveServer) -> None:
    parts = [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]
    items = [
        {"type": "message", "role": "developer", "content": parts},
        {"role": "user", "content": "U1", "type": None},
        {"role": "assistant", "content": [{"type": "output_text", "text": "A", "annotations": []}], "id": "msg_1"},
        {"role": "system", "content": "S"},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
        USER,
    ]
    turns = [("system", "ab"), ("user", "U1"), ("assistant", "A"), ("system", "S"), ("assistant", "No."), ("user", "U")]
    assert prompt_of(server, items) == "".join(turn(*each) for each in turns)


def test_what_the_model_said_at_once_is_one_turn(server: LiveServer) -> None:
    items = [
        USER,
        {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "T"}]},
        {"type": "message", "role": "assistant", "content": "A"},
        CALL,
        {**CALL, "call_id": "c2"},
        {"type": "function_call_output", "call_id": "c1", "output": "R1"},
        {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "R2"}]},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "S"}], "encrypted_content": "x"},
        {"role": "assistant", "content": "B"},
        {"type": "reasoning", "id": "rs_3", "encrypted_content": "x", "content": None},
    ]
    prompt = prompt_of(server, items, tools=[WEATHER])
    assert prompt.count("<|role|>assistant") == 2 and prompt.count("<function=get_weather>") == 2
    assert "<|role|>assistant\n<think>T</think>A<tool_call>".replace("\n", "") in prompt.replace("\n", "")
    assert turn("tool", "R1") + turn("tool", "R2") in prompt and "<think>S</think>B<|end|>" in prompt


def test_tools_and_the_ones_that_are_none(server: LiveServer) -> None:
    others = [{"type": "namespace", "name": "n", "tools": []}, {"type": "web_search", "external_web_access": True}]
    body = {"input": "hi", "tools": [WEATHER, *others]}
    response = server.post("/v1/responses", body)
    assert [tool["name"] for tool in response.json()["tools"]] == ["get_weather"]
    assert "get_weather" in last_prompt(server) and "web_search" not in last_prompt(server)
    assert "get_weather" not in prompt_of(server, "hi", tools=[WEATHER], tool_choice="none")
    assert prompt_of(server, "hi", tools=others) == turn("user", "hi")


def test_effort_none_turns_thinking_off(server: LiveServer) -> None:
    server.post("/v1/responses", {"input": "hi", "reasoning": {"effort": "none"}})
    assert last_prompt(server).endswith("<think>\n\n</think>\n\n")
    server.post("/v1/responses", {"input": "hi", "reasoning": {"effort": "low", "summary": "auto"}})
    assert last_prompt(server).endswith("<|role|>assistant\n")


def test_what_has_no_effect(server: LiveServer) -> None:
    fields: dict[str, Any] = {
        "store": True,
        "include": ["reasoning.encrypted_content"],
        "stream_options": {"include_obfuscation": False},
        "client_metadata": {"a": 1},
        "prompt_cache_key": "k",
        "text": {"format": {"type": "text"}, "verbosity": "low"},
        "truncation": "disabled",
        "background": False,
        "top_logprobs": 0,
        "previous_response_id": None,
        "conversation": None,
    }
    assert prompt_of(server, "hi", **fields) == turn("user", "hi")
    assert server.post("/v1/responses", {"input": "hi", **fields}).json()["store"] is False


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": None}, "input"),
        ({"input": []}, "input"),
        ({"input": 1}, "input"),
        ({"input": [1]}, "input[0]"),
        ({"input": [{"content": "x"}]}, "input[0].type"),
        ({"input": [{"type": "video"}]}, "input[0].type"),
        ({"input": [{"role": "wizard", "content": "x"}]}, "input[0].role"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0]"),
        ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]}, "input[0].content[0]"),
        ({"input": [{"role": "user", "content": [{"type": "input_file"}]}]}, "input[0].content[0]"),
        ({"input": [USER, {**CALL, "arguments": "{"}]}, "input[1].arguments"),
        ({"input": [USER, {**CALL, "arguments": "[1]"}]}, "input[1].arguments"),
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"prompt": {"id": "p"}}, "prompt"),
        ({"background": True}, "background"),
        ({"truncation": "auto"}, "truncation"),
        ({"max_tool_calls": 3}, "max_tool_calls"),
        ({"include": ["message.output_text.tokens"]}, "include[0]"),
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"top_logprobs": 2, "include": ["reasoning.encrypted_content"]}, "top_logprobs"),
        ({"top_logprobs": 21, "include": ["message.output_text.logprobs"]}, "top_logprobs"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"max_output_tokens": 10_000_000}, "max_output_tokens"),
        ({"temperature": "1"}, "temperature"),
        ({"tools": [{"type": "code_interpreter"}]}, "tools[0].type"),
        ({"tools": [{"type": "custom", "name": "apply_patch"}]}, "tools[0].type"),
        ({"tools": [{"type": "function", "name": "a b"}]}, "tools[0].name"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": [WEATHER], "tool_choice": {"type": "function", "name": "other"}}, "tool_choice"),
        ({"tools": [WEATHER], "tool_choice": {"type": "web_search"}}, "tool_choice.type"),
        ({"text": {"format": {"type": "json_schema", "name": "n", "schema": {"not": {}}}}}, "text.format"),
        ({"text": {"format": {"type": "grammar"}}}, "text.format.type"),
        ({"instructions": "x" * 5000}, "input"),
    ],
)
def test_what_is_refused(server: LiveServer, fields: dict[str, Any], param: str) -> None:
    for stream in (False, True):
        error = error_of(server.post("/v1/responses", {"input": "hi", "stream": stream, **fields}))
        assert error["type"] == "invalid_request_error" and error["param"] == param, error


def test_the_wrong_tool_is_named(server: LiveServer) -> None:
    error = error_of(server.post("/v1/responses", {"input": "hi", "tools": [{"type": "code_interpreter"}]}))
    assert "code_interpreter" in error["message"]
    error = error_of(server.post("/v1/responses", {"input": "hi", "previous_response_id": "resp_1"}))
    assert "whole conversation" in error["message"]


def test_unknown_model_and_what_is_not_there(server: LiveServer) -> None:
    assert error_of(server.post("/v1/responses", {"input": "hi", "model": "nope"}), 404)["code"] == "model_not_found"
    assert error_of(server.client.get("/v1/responses/resp_1"), 404)
    assert error_of(server.client.get("/v1/responses"), 405)
