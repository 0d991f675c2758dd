"""What messages may look like, and that what they say reaches the prompt, over a live server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from atom.entrypoints.scripted.serving import ScriptedServing
from tests.entrypoints.live import LiveServer, error_of, running, scripted

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with running(scripted("Hello there.")) as live:
        yield live


def last_prompt(server: LiveServer) -> str:
    assert isinstance(server.serving, ScriptedServing)
    return server.serving.tokenizer.decode(server.serving.scripted_engine.requests[-1].prompt_token_ids, False)


def test_prompt_is_an_alias_of_messages(server: LiveServer) -> None:
    messages = [{"role": "user", "content": "alias"}]
    assert server.post("/v1/chat/completions", {"prompt": messages}).status_code == 200
    assert "alias" in last_prompt(server)
    assert error_of(server.post("/v1/chat/completions", {"prompt": messages, "messages": messages}))
    assert error_of(server.post("/v1/chat/completions", {}))["param"] == "messages"
    assert error_of(server.post("/v1/chat/completions", {"messages": []}))["param"] == "messages"


def test_the_final_message_is_continued_where_that_is_asked_for(server: LiveServer) -> None:
    def ask(*messages: Any, **fields: Any) -> Any:
        body = {"messages": [{"role": "user", "content": "Q"}, *messages], **fields}
        return server.post("/v1/chat/completions", body)

    begun = {"role": "assistant", "content": [{"type": "text", "text": "The answer: "}]}
    assert ask(begun, continue_final_message=True).json()["choices"][0]["message"]["content"] == "Hello there."
    assert last_prompt(server).endswith("<|role|>assistantThe answer: ")
    for fields in ({}, {"continue_final_message": False}, {"continue_final_message": None}):
        assert ask(begun, **fields).status_code == 200
        assert last_prompt(server).endswith("The answer: <|end|>\n<|role|>assistant\n")
    call = {"id": "c", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
    for wrong in (
        [],
        [{**begun, "content": ""}],
        [{**begun, "content": [{"type": "text", "text": ""}]}],
        [{**begun, "tool_calls": [call]}],
        [begun, {"role": "user", "content": "x"}],
    ):
        assert error_of(ask(*wrong, continue_final_message=True))["param"] == "continue_final_message"
    enforced = {"response_format": {"type": "json_object"}}
    assert error_of(ask(begun, continue_final_message=True, **enforced))["param"] == "response_format"


def test_roles_anywhere(server: LiveServer) -> None:
    turns = [
        {"role": "user", "content": "U1"},
        {"role": "system", "content": "S1"},
        {"role": "developer", "content": "D1"},
        {"role": "assistant", "content": "A1"},
        {"role": "tool", "content": "T1", "tool_call_id": "c"},
        {"role": "user", "content": ""},
    ]
    assert server.post("/v1/chat/completions", {"messages": turns}).status_code == 200
    prompt = last_prompt(server)
    places = [prompt.index(text) for text in ("U1", "S1", "D1", "A1", "T1")]
    assert places == sorted(places) and "developer" not in prompt
    assert (
        "role"
        in error_of(server.post("/v1/chat/completions", {"messages": [{"role": "wizard", "content": "x"}]}))["message"]
    )


def test_text_parts_are_joined_with_nothing_between(server: LiveServer) -> None:
    parts = [{"type": "text", "text": "PART-A"}, {"type": "text", "text": "PART-B"}]
    assert server.post("/v1/chat/completions", {"messages": [{"role": "user", "content": parts}]}).status_code == 200
    assert "PART-APART-B" in last_prompt(server)
    assert server.post("/v1/chat/completions", {"messages": [{"role": "user", "content": []}]}).status_code == 200


def test_an_image_is_refused(server: LiveServer) -> None:
    parts = [{"type": "image_url", "image_url": {"url": "data:,x"}}]
    error = error_of(server.post("/v1/chat/completions", {"messages": [{"role": "user", "content": parts}]}))
    assert "images" in error["message"]


@pytest.mark.parametrize("content", [{}, {"content": None}, {"content": ""}])
def test_an_assistant_turn_may_have_calls_only(server: LiveServer, content: dict[str, Any]) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Ulm"}'}}
    turns = [
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "tool_calls": [call], **content},
        {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
    ]
    assert server.post("/v1/chat/completions", {"messages": turns, "tools": [WEATHER]}).status_code == 200
    prompt = last_prompt(server)
    assert "Ulm" in prompt and "sunny" in prompt and "None" not in prompt


def test_empty_tool_calls_of_an_earlier_turn_are_none(server: LiveServer) -> None:
    prompts = []
    for more in ({}, {"tool_calls": []}):
        turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello", **more}]
        server.post("/v1/chat/completions", {"messages": [*turns, {"role": "user", "content": "And now?"}]})
        prompts.append(last_prompt(server))
    assert prompts[0] == prompts[1]


def test_earlier_reasoning_reaches_the_template(server: LiveServer) -> None:
    turns = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y", "reasoning_content": "NOTE-7731"}]
    server.post("/v1/chat/completions", {"messages": [*turns, {"role": "user", "content": "z"}]})
    assert "NOTE-7731" in last_prompt(server)


@pytest.mark.parametrize("content", [r"bad \ud83d end", r"\udc00", r"\ud83d\ud83d", r"ok then \uDC00\uD800"])
@pytest.mark.parametrize("stream", ["true", "false"])
def test_lone_surrogates_are_refused(server: LiveServer, content: str, stream: str) -> None:
    headers = {"content-type": "application/json"}
    body = f'{{"stream": {stream}, "messages": [{{"role": "user", "content": "{content}"}}]}}'
    error_of(server.client.post("/v1/chat/completions", content=body, headers=headers))


def test_a_surrogate_pair_is_a_character(server: LiveServer) -> None:
    body = r'{"messages": [{"role": "user", "content": "ok \ud83d\ude00"}]}'
    headers = {"content-type": "application/json"}
    assert server.client.post("/v1/chat/completions", content=body, headers=headers).status_code == 200
    assert "ok 😀" in last_prompt(server)


def test_a_surrogate_in_the_model_name(server: LiveServer) -> None:
    headers = {"content-type": "application/json"}
    body = r'{"model": "\ud800", "prompt": "x"}'
    assert server.client.post("/v1/completions", content=body, headers=headers).status_code == 400


def test_controls_reach_the_template_and_none_is_an_error(server: LiveServer) -> None:
    server.chat(chat_template_kwargs={"enable_thinking": False, "unheard_of": [1]})
    assert last_prompt(server).endswith("</think>\n\n")
    server.chat(reasoning_effort="none")
    assert last_prompt(server).endswith("</think>\n\n")
    server.chat(thinking={"type": "disabled"})
    assert last_prompt(server).endswith("</think>\n\n")
    server.chat(reasoning_effort="high", thinking={"type": "enabled"})
    assert last_prompt(server).endswith("assistant\n")


def test_tools_are_shown_to_the_model_unless_none_may_be_called(server: LiveServer) -> None:
    server.chat(tools=[WEATHER])
    assert "get_weather" in last_prompt(server)
    server.chat(tools=[WEATHER], tool_choice="none")
    assert "get_weather" not in last_prompt(server)
    server.chat(tools=[])
    assert "# Tools" not in last_prompt(server)
