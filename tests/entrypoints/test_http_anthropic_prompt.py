"""What a request to /v1/messages makes of the prompt, and what it is refused for, over a live server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from atom.entrypoints.scripted.script import Script
from tests.entrypoints.anthropic_requests import CLOCK, WEATHER, ask, last_prompt
from tests.entrypoints.live import LiveServer, error_of, named_events, running, scripted

USER: dict[str, Any] = {"role": "user", "content": "U"}
BEGUN: dict[str, Any] = {"role": "assistant", "content": "The answer: "}
USED = {"type": "tool_use", "id": "u1", "name": "get_weather", "input": {"city": "Bonn"}}


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    scripts = [
        Script(id="ok", text="fine"),
        Script(id="refused", text="x", fault_after=0),
        Script(id="fault", text="abcdef", fault_after=3),
    ]
    with running(scripted(*scripts, max_request_bytes=100_000)) as live:
        live.client.headers["x-script-id"] = "ok"
        yield live


@pytest.fixture(scope="module")
def guarded() -> Iterator[LiveServer]:
    with running(scripted(api_key=("key-1",))) as live:
        yield live


def prompt_of(server: LiveServer, **fields: Any) -> str:
    response = ask(server, **fields)
    assert response.status_code == 200, response.text
    return last_prompt(server)


def turn(role: str, text: str) -> str:
    """A turn as the test template writes it: jinja's trim_blocks takes the line break behind a tag."""
    return f"<|role|>{role}{text}<|end|>\n"


def test_text_as_it_is(server: LiveServer) -> None:
    blocks = [{"type": "text", "text": " a\n"}, {"type": "text", "text": "b ", "cache_control": {"type": "ephemeral"}}]
    prompt = prompt_of(server, messages=[{"role": "user", "content": blocks}])
    assert prompt == turn("user", " a\nb ") + "<|role|>assistant\n"


def test_system_as_text_and_as_blocks(server: LiveServer) -> None:
    assert prompt_of(server, system="S1").startswith(turn("system", "S1"))
    blocks = [{"type": "text", "text": "S1", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "S2"}]
    assert prompt_of(server, system=blocks).startswith(turn("system", "S1S2"))
    for nothing in (None, "", []):
        assert "system" not in prompt_of(server, system=nothing)


def test_a_billing_line_is_no_prompt(server: LiveServer) -> None:
    billing = {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.0; cch=0af3;"}
    said = {"type": "text", "text": "Mind x-anthropic-billing-header: 7\nand go on."}
    prompt = prompt_of(server, system=[billing, said], messages=[{"role": "user", "content": [billing]}])
    assert prompt.startswith(turn("system", said["text"])) and prompt.count("cch=0af3") == 1


def test_system_turns_keep_their_place(server: LiveServer) -> None:
    blocks = [{"type": "text", "text": "L"}, {"type": "text", "text": "M"}]
    messages = [USER, {"role": "system", "content": blocks}, {"role": "assistant", "content": "A"}, USER]
    assert prompt_of(server, system="S", messages=messages).startswith(
        turn("system", "S") + turn("user", "U") + turn("system", "LM") + turn("assistant", "A") + turn("user", "U")
    )


def test_thoughts_and_calls_of_earlier_turns(server: LiveServer) -> None:
    content = [
        {"type": "thinking", "thinking": "T1", "signature": "any"},
        {"type": "redacted_thinking", "data": "opaque"},
        {"type": "text", "text": "A1"},
        USED,
        {"type": "text", "text": "A2"},
    ]
    result = {"type": "tool_result", "tool_use_id": "u1", "content": "R"}
    messages = [USER, {"role": "assistant", "content": content}, {"role": "user", "content": [result]}]
    prompt = prompt_of(server, messages=messages, tools=[WEATHER])
    assert "<think>T1</think>A1A2<tool_call>\n<function=get_weather><parameter=city>\nBonn\n" in prompt
    assert prompt.endswith(turn("tool", "R") + "<|role|>assistant\n") and "opaque" not in prompt


@pytest.mark.parametrize(
    ("content", "text"),
    [("plain", "plain"), ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "ab"), (None, ""), ([], "")],
)
@pytest.mark.parametrize("is_error", [None, False, True])
def test_results_of_tools(server: LiveServer, content: Any, text: str, is_error: bool | None) -> None:
    result = {"type": "tool_result", "tool_use_id": "u1", "content": content, "is_error": is_error}
    messages = [
        USER,
        {"role": "assistant", "content": [USED]},
        {"role": "user", "content": [{"type": "text", "text": "go"}, result, {"type": "text", "text": " on"}]},
    ]
    shown = f"Error: {text}" if is_error else text
    assert prompt_of(server, messages=messages).endswith(
        turn("tool", shown) + turn("user", "go on") + "<|role|>assistant\n"
    )


def test_results_keep_their_order(server: LiveServer) -> None:
    results = [{"type": "tool_result", "tool_use_id": name, "content": name.upper()} for name in ("u2", "u1")]
    used = [USED, {**USED, "id": "u2"}]
    messages = [USER, {"role": "assistant", "content": used}, {"role": "user", "content": results}]
    assert turn("tool", "U2") + turn("tool", "U1") in prompt_of(server, messages=messages)


def test_tools_reach_the_prompt_unless_none_may_be_used(server: LiveServer) -> None:
    prompt = prompt_of(server, tools=[{**WEATHER, "cache_control": {"type": "ephemeral"}}, CLOCK])
    assert '"name": "get_weather"' in prompt and '"required": ["city"]' in prompt and "cache_control" not in prompt
    assert "get_weather" not in prompt_of(server, tools=[WEATHER], tool_choice={"type": "none"})
    assert "get_weather" in prompt_of(server, tools=[WEATHER], tool_choice={"type": "auto"})
    assert "# Tools" not in prompt_of(server, tools=[])


def test_thinking_sets_the_templates_switch(server: LiveServer) -> None:
    closed = "<|role|>assistant\n<think>\n\n</think>\n\n"
    assert prompt_of(server, thinking={"type": "disabled"}).endswith(closed)
    for thinking in (None, {"type": "adaptive"}, {"type": "enabled", "budget_tokens": 1024}):
        assert prompt_of(server, thinking=thinking).endswith("<|role|>assistant\n")


def test_the_last_turn_of_the_assistant_is_continued(server: LiveServer) -> None:
    begun = "<|role|>assistantThe answer: "
    assert prompt_of(server, messages=[USER, BEGUN]).endswith(begun)
    blocks = [{"type": "text", "text": "The "}, {"type": "text", "text": "answer: "}]
    thought = {"type": "thinking", "thinking": "T", "signature": "s"}
    for content in (blocks, [thought, *blocks]):
        turns = [USER, {"role": "assistant", "content": content}]
        for thinking in (None, {"type": "disabled"}, {"type": "adaptive"}):
            prompt = prompt_of(server, messages=turns, thinking=thinking, tools=[WEATHER])
            assert prompt.endswith("The answer: ") and ("<think>T</think>" in prompt) is (content != blocks)
    thinking = {"type": "enabled", "budget_tokens": 1024}
    assert prompt_of(server, messages=turns, thinking=thinking).endswith("<think>T</think>The answer: ")
    count = server.post("/v1/messages/count_tokens", {"messages": [USER, BEGUN]}).json()["input_tokens"]
    assert count == ask(server, messages=[USER, BEGUN]).json()["usage"]["input_tokens"]


def test_a_last_turn_without_text_is_no_beginning(server: LiveServer) -> None:
    for content in ("", [], [{"type": "text", "text": ""}]):
        assert prompt_of(server, messages=[USER, {"role": "assistant", "content": content}]) == prompt_of(
            server, messages=[USER]
        )


def test_sampling_reaches_the_engine(server: LiveServer) -> None:
    prompt_of(server, temperature=0.5, top_p=0.9, top_k=5, stop_sequences=["\n\nZ"], max_tokens=10**6)
    sampling = server.serving.scripted_engine.requests[-1].sampling  # type: ignore[attr-defined]  # the scripted context has it
    assert (sampling.temperature, sampling.top_p, sampling.top_k) == (0.5, 0.9, 5)
    assert sampling.stop_list == ("\n\nZ",) and 256 < sampling.max_tokens < 4096


def test_what_is_not_known_is_ignored(server: LiveServer) -> None:
    fields = {
        "context_management": {"edits": []},
        "metadata": {"user_id": "u"},
        "service_tier": "auto",
        "container": None,
        "mcp_servers": [],
        "betas": ["x"],
        "stream": None,
    }
    plain = prompt_of(server)
    assert prompt_of(server, **fields) == plain
    assert server.post("/v1/messages?beta=true", {"max_tokens": 1, "messages": [USER]}).status_code == 200


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"messages": []}, "messages"),
        ({"messages": "x"}, "messages"),
        ({"messages": [42]}, "messages"),
        ({"messages": [{"role": "user"}]}, "content"),
        ({"messages": [{"role": "user", "content": None}]}, "content"),
        ({"messages": [{"role": "wizard", "content": "x"}]}, "role"),
        ({"messages": [USER, {"role": "assistant", "content": [USED]}]}, "messages[1]: the last turn calls tools"),
        (
            {"messages": [USER, BEGUN], "thinking": {"type": "enabled", "budget_tokens": 1024}},
            "thinking: the last turn",
        ),
        ({"messages": [{"role": "assistant", "content": ""}]}, "messages[0]: the last turn is the only one"),
        (
            {"system": "S", "messages": [{"role": "assistant", "content": []}]},
            "messages[0]: the last turn is the only one",
        ),
        (
            {"messages": [USER, BEGUN], "tools": [WEATHER], "tool_choice": {"type": "any"}},
            "tool_choice: the last turn begins the answer",
        ),
        (
            {
                "messages": [USER, BEGUN],
                "output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}},
            },
            "output_config.format: the last turn begins the answer",
        ),
        ({"messages": [{"role": "user", "content": [{"type": "video"}]}]}, "'video'"),
        ({"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]}, "messages[0].content[0]"),
        ({"messages": [{"role": "user", "content": [{"type": "document", "source": {}}]}]}, "send their text"),
        ({"system": 1}, "system"),
        ({"system": [{"type": "image", "source": {}}]}, "system[0]"),
        ({"system": [{"text": "no type"}]}, "system[0].type"),
        ({"messages": [USER, {"role": "system", "content": [{"text": "x"}]}]}, "messages[1].content[0].type"),
        ({"max_tokens": None}, "max_tokens"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": "8"}, "max_tokens"),
        ({"max_tokens": 10_000_000}, "max_tokens"),
        ({"temperature": 3}, "temperature"),
        ({"top_k": 1.5}, "top_k"),
        ({"stop_sequences": [""]}, "stop_sequences"),
        ({"thinking": {"type": "sometimes"}}, "thinking"),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools"),
        ({"tools": [{"name": "a b", "input_schema": {}}]}, "tools"),
        ({"tools": [{"name": "f"}]}, "input_schema"),
        ({"tool_choice": {"type": "any"}}, "tool_choice"),
        ({"tools": [WEATHER], "tool_choice": {"type": "tool", "name": "clock"}}, "declared tools: get_weather"),
        ({"tools": [WEATHER], "tool_choice": {"type": "auto", "name": "clock"}}, "tool_choice"),
        ({"tools": [WEATHER], "tool_choice": "auto"}, "tool_choice"),
        ({"output_config": {"format": {"type": "json_schema", "schema": {"type": "x"}}}}, "output_config.format"),
        ({"output_config": {"format": {"type": "json_schema", "schema": {"not": {}}}}}, "'not'"),
        ({"output_config": {"format": {"type": "grammar"}}}, "output_config"),
        ({"mcp_servers": [{"url": "x"}]}, "mcp_servers"),
        ({"system": "x" * 5000}, "4096"),
    ],
)
def test_what_is_refused(server: LiveServer, fields: dict[str, Any], word: str) -> None:
    for stream in (False, True):
        error = error_of(ask(server, stream=stream, **fields))
        assert error["type"] == "invalid_request_error" and word in error["message"], error


def test_counting_refuses_what_answering_refuses(server: LiveServer) -> None:
    path = "/v1/messages/count_tokens"
    for wrong in ({"messages": []}, {"tool_choice": {"type": "any"}}, {"system": 1}, {"top_k": 1.5}):
        assert error_of(server.post(path, {"messages": [USER], **wrong}))["type"] == "invalid_request_error"
    assert error_of(server.post(path, {"messages": [USER], "model": "nope"}), 404)["type"] == "not_found_error"
    for size in (5000, 90_000):  # more than the context holds, and far more
        assert server.post(path, {"messages": [USER], "system": "x" * size}).json()["input_tokens"] > size


@pytest.mark.parametrize("body", ["[]", "null", "42", '"text"', "true", "{", "", "{'a': 1}", '{"model": null}'])
def test_bodies_that_are_no_request(server: LiveServer, body: str) -> None:
    for path in ("/v1/messages", "/v1/messages/count_tokens"):
        error = error_of(server.client.post(path, content=body, headers={"content-type": "application/json"}))
        assert error["type"] == "invalid_request_error" and "msgspec" not in error["message"]


def test_errors_of_the_framework(server: LiveServer) -> None:
    assert error_of(server.client.get("/v1/messages"), 405)["type"] == "invalid_request_error"
    assert error_of(server.post("/v1/messages/batches", {}), 404)["type"] == "not_found_error"
    assert error_of(server.client.post("/v1/messages", content=b"x"), 415)["type"] == "invalid_request_error"
    assert error_of(ask(server, system="x" * 100_001), 413)["type"] == "request_too_large"
    assert error_of(ask(server, model="nope"), 404)["type"] == "not_found_error"


def test_keys_by_either_header(guarded: LiveServer) -> None:
    body = {"max_tokens": 1, "messages": [USER]}
    for path in ("/v1/messages", "/v1/messages/count_tokens"):
        assert error_of(guarded.post(path, body), 401)["type"] == "authentication_error"
        assert error_of(guarded.post(path, body, headers={"x-api-key": "no"}), 401)
        for headers in ({"x-api-key": "key-1"}, {"authorization": "Bearer key-1"}):
            assert guarded.post(path, body, headers=headers).status_code == 200


def test_a_failure_before_the_first_event(server: LiveServer) -> None:
    for stream in (False, True):
        assert "fault" in error_of(ask(server, "refused", stream=stream))["message"]


def test_a_failure_in_mid_stream(server: LiveServer) -> None:
    assert error_of(ask(server, "fault"), 500)["type"] == "api_error"
    response = ask(server, "fault", stream=True)
    name, data = named_events(response)[-1]
    assert name == "error" and data["error"]["type"] == "api_error" and "fault" in data["error"]["message"]
    assert data["request_id"] == response.headers["request-id"]
    assert "message_stop" not in response.text and "[DONE]" not in response.text


def test_no_requests_while_the_server_stops(server: LiveServer) -> None:
    server.serving.is_draining = True
    try:
        response = ask(server)
        assert error_of(response, 503)["type"] == "overloaded_error" and response.headers["retry-after"] == "1"
    finally:
        server.serving.is_draining = False
