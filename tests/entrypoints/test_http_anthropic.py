"""/v1/messages over a live server: blocks, order, stop reasons, usage, and that a stream says what the whole says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from atom_spec.anthropic import Message, TokenCount
from hypothesis import given, settings
from hypothesis import strategies as st

from atom.entrypoints.scripted.script import Script
from atom.entrypoints.scripted.serving import ScriptedServing
from tests.entrypoints.anthropic_requests import (
    CLOCK,
    CLOCK_CALL,
    WEATHER,
    WEATHER_CALL,
    ask,
    content_of,
    fold,
    without_ids,
)
from tests.entrypoints.gate import Gate
from tests.entrypoints.live import MODEL, LiveServer, named_events, running, scripted

TOOLS = [WEATHER, CLOCK]
# Two formats pass a call's body on as the model wrote it, also where it is no JSON (docs/decisions/0006).
NO_JSON = {
    "kimi": "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>%s"
    "<|tool_call_end|><|tool_calls_section_end|>",
    "harmony": "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>%s<|call|>",
}
NO_OBJECTS = ("city: Bern", '{"city": "Bern",}', '["Bern"]', '"Bern"', "7", "null")
SCRIPTS = [
    *(
        Script(id=f"{name} {body}", text=text % body, format=name, chunk=3)
        for name, text in NO_JSON.items()
        for body in NO_OBJECTS
    ),
    Script(id="plain", text="Grüße 😀!", chunk=2),
    Script(id="thought", text="<think>one\n two</think>\n\nThree.", cached_tokens=3),
    Script(id="only thought", text="<think>one"),
    Script(id="calls", text=f"A {WEATHER_CALL}\n{CLOCK_CALL} Z"),
    Script(id="call", text=WEATHER_CALL),
    Script(id="thought call", text=f"<think>t</think>{CLOCK_CALL}"),
    Script(id="undeclared", text=f"Use {WEATHER_CALL.replace('get_weather', 'other')} so."),
    Script(id="empty", text=""),
    Script(id="stops", text="one STOP two"),
    Script(id="long", text="x" * 300, burst=100),
]


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with running(scripted(*SCRIPTS, sse_keep_alive=0.0)) as live:
        yield live


def test_a_whole_message(server: LiveServer) -> None:
    response = ask(server, "plain", model=MODEL)
    message = msgspec.json.decode(response.content, type=Message)
    assert message.id.startswith("msg_") and message.model == MODEL
    assert response.json()["type"] == "message" and response.json()["role"] == "assistant"
    assert response.json()["content"] == [{"type": "text", "text": "Grüße 😀!"}]
    assert (message.stop_reason, message.stop_sequence) == ("end_turn", None)
    assert response.headers["request-id"] == response.headers["x-request-id"]
    assert ask(server, "plain").json()["id"] != message.id


@pytest.mark.parametrize("name", NO_JSON)
@pytest.mark.parametrize("body", NO_OBJECTS)
def test_a_body_that_is_no_object_is_an_object_all_the_same(server: LiveServer, name: str, body: str) -> None:
    """And comes back as it was sent."""
    whole = ask(server, f"{name} {body}", tools=TOOLS).json()
    assert without_ids(fold(ask(server, f"{name} {body}", tools=TOOLS, stream=True))) == without_ids(whole)
    (block,) = whole["content"]
    assert (block["type"], block["name"], block["input"]) == ("tool_use", "get_weather", {"raw": body})
    assert whole["stop_reason"] == "tool_use"
    result = {"type": "tool_result", "tool_use_id": block["id"], "content": "no city", "is_error": True}
    turns = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [block]},
        {"role": "user", "content": [result]},
    ]
    assert ask(server, "plain", messages=turns, tools=TOOLS).status_code == 200


def test_the_beginning_of_a_stream(server: LiveServer) -> None:
    name, data = named_events(ask(server, "thought", stream=True))[0]
    message = data["message"]
    assert name == "message_start" and set(data) == {"type", "message"}
    assert (message["type"], message["role"], message["content"]) == ("message", "assistant", [])
    assert message["stop_reason"] is None and message["stop_sequence"] is None and message["model"] == MODEL
    assert message["usage"]["input_tokens"] > 0 and message["usage"]["cache_read_input_tokens"] == 3


@pytest.mark.parametrize("name", [item.id for item in SCRIPTS])
@pytest.mark.parametrize("thinking", [None, {"type": "disabled"}, {"type": "enabled", "display": "omitted"}])
def test_streamed_is_whole(server: LiveServer, name: str, thinking: Any) -> None:
    fields: dict[str, Any] = {"tools": TOOLS, "stop_sequences": ["STOP"], "thinking": thinking}
    whole = ask(server, name, **fields).json()
    streamed = fold(ask(server, name, stream=True, **fields))
    assert without_ids(streamed) == without_ids(whole)
    assert whole["content"]


ALPHABET = st.sampled_from(
    ["a", "é😀", "\n", " ", "<think>", "</think>", WEATHER_CALL, CLOCK_CALL, "<tool_call>", "STOP"]
)


@settings(max_examples=40, deadline=None)
@given(text=st.lists(ALPHABET, max_size=8).map("".join), chunk=st.integers(1, 9), burst=st.integers(1, 4))
def test_streamed_is_whole_for_any_text(server: LiveServer, text: str, chunk: int, burst: int) -> None:
    assert isinstance(server.serving, ScriptedServing)
    script = Script(id="any", text=text, chunk=chunk, burst=burst)
    server.serving.scripts = (*server.serving.scripts[: len(SCRIPTS)], script)
    fields: dict[str, Any] = {"tools": TOOLS, "stop_sequences": ["STOP"]}
    whole = ask(server, "any", **fields).json()
    assert without_ids(fold(ask(server, "any", stream=True, **fields))) == without_ids(whole)


def test_calls_and_the_text_around_them(server: LiveServer) -> None:
    response = ask(server, "calls", tools=TOOLS)
    blocks = content_of(response)
    assert [block["type"] for block in blocks] == ["text", "tool_use", "text", "tool_use", "text"]
    assert [block["text"] for block in blocks[::2]] == ["A ", "\n", " Z"]
    assert (blocks[1]["name"], blocks[1]["input"]) == ("get_weather", {"city": "Bern"})
    assert (blocks[3]["name"], blocks[3]["input"]) == ("clock", {})
    assert blocks[1]["id"] and blocks[1]["id"] != blocks[3]["id"]
    assert response.json()["stop_reason"] == "tool_use"


def test_a_call_block_opens_when_its_arguments_arrive(server: LiveServer) -> None:
    events = named_events(ask(server, "call", tools=TOOLS, stream=True))
    names = [name for name, _ in events]
    assert names[1:] == [
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    block = events[1][1]["content_block"]
    assert {**block, "id": ""} == {"type": "tool_use", "id": "", "name": "get_weather", "input": {}}


def test_one_call_at_most(server: LiveServer) -> None:
    choice = {"type": "auto", "disable_parallel_tool_use": True}
    blocks = content_of(ask(server, "calls", tools=TOOLS, tool_choice=choice))
    assert [block["name"] for block in blocks if block["type"] == "tool_use"] == ["get_weather"]


def test_no_call_at_all(server: LiveServer) -> None:
    response = ask(server, "calls", tools=TOOLS, tool_choice={"type": "none"})
    assert content_of(response) == [{"type": "text", "text": "A \n Z"}]
    assert response.json()["stop_reason"] == "end_turn"


def test_an_undeclared_call_is_text(server: LiveServer) -> None:
    (block,) = content_of(ask(server, "undeclared", tools=TOOLS))
    assert block["text"].startswith("Use <tool_call>") and block["text"].endswith("</tool_call> so.")
    (block,) = content_of(ask(server, "call"))
    assert block["text"] == WEATHER_CALL


def test_a_thought_comes_in_a_block_of_its_own(server: LiveServer) -> None:
    thought, text = content_of(ask(server, "thought"))
    assert (thought["type"], thought["thinking"]) == ("thinking", "one\n two") and thought["signature"]
    assert (text["type"], text["text"]) == ("text", "\n\nThree.")
    (thought,) = content_of(ask(server, "only thought", thinking={"type": "adaptive"}))
    assert thought["thinking"] == "one" and thought["signature"]


def test_a_thought_that_nobody_wants_is_withheld(server: LiveServer) -> None:
    off = {"type": "disabled"}
    assert content_of(ask(server, "thought", thinking=off)) == [{"type": "text", "text": "\n\nThree."}]
    assert content_of(ask(server, "only thought", thinking=off)) == [{"type": "text", "text": ""}]
    (block,) = content_of(ask(server, "thought call", thinking=off, tools=TOOLS))
    assert block["type"] == "tool_use"
    usage = ask(server, "thought", thinking=off).json()["usage"]
    assert usage["output_tokens_details"]["thinking_tokens"] > 0


def test_a_thought_without_its_text(server: LiveServer) -> None:
    thought, text = content_of(ask(server, "thought", thinking={"type": "enabled", "display": "omitted"}))
    assert thought["thinking"] == "" and thought["signature"] and text["text"] == "\n\nThree."


def test_an_answer_of_nothing_has_an_empty_text(server: LiveServer) -> None:
    assert content_of(ask(server, "empty")) == [{"type": "text", "text": ""}]
    names = [name for name, _ in named_events(ask(server, "empty", stream=True))]
    assert names == ["message_start", "content_block_start", "content_block_stop", "message_delta", "message_stop"]


@pytest.mark.parametrize(
    ("name", "fields", "reason", "matched"),
    [
        ("plain", {}, "end_turn", None),
        ("plain", {"max_tokens": 2}, "max_tokens", None),
        ("stops", {"stop_sequences": ["never", "STOP"]}, "stop_sequence", "STOP"),
        ("stops", {"stop_sequences": []}, "end_turn", None),
        ("call", {"tools": TOOLS}, "tool_use", None),
        ("calls", {"tools": TOOLS, "stop_sequences": ["Z"]}, "tool_use", None),
        ("calls", {"tools": TOOLS, "max_tokens": 120}, "max_tokens", None),
    ],
)
def test_stop_reasons(server: LiveServer, name: str, fields: dict[str, Any], reason: str, matched: str | None) -> None:
    for message in (ask(server, name, **fields).json(), fold(ask(server, name, stream=True, **fields))):
        assert (message["stop_reason"], message["stop_sequence"]) == (reason, matched)
    if name == "stops":
        assert message["content"][0]["text"] == ("one " if matched else "one STOP two")


def test_usage_counts_the_cached_apart(server: LiveServer) -> None:
    plain, cached = ask(server, "plain").json()["usage"], ask(server, "thought").json()["usage"]
    assert plain["cache_read_input_tokens"] == plain["cache_creation_input_tokens"] == 0
    assert cached["cache_read_input_tokens"] == 3 and cached["input_tokens"] == plain["input_tokens"] - 3
    assert plain["output_tokens"] == 4 and plain["output_tokens_details"]["thinking_tokens"] == 0
    assert 0 < cached["output_tokens_details"]["thinking_tokens"] < cached["output_tokens"]


def test_pings_while_it_takes_long() -> None:
    body = {"model": MODEL, "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}]}
    with running(scripted(Script(text="ab", first_delay=1, delay=1), sse_keep_alive=0.02)) as live:
        response = Gate(live).stream("/v1/messages", body, (": keep-alive\n\n", 2), ("event: ping\n", 1))
    head, _, rest = response.text.partition("event: message_start")
    assert head == ": keep-alive\n\n" * head.count("\n\n") and head.count("\n\n") >= 2
    assert 'event: ping\ndata: {"type":"ping"}\n\n' in rest and ": keep-alive" not in rest
    assert fold(response)["content"] == [{"type": "text", "text": "ab"}]


def test_counting_is_what_the_prompt_has(server: LiveServer) -> None:
    body: dict[str, Any] = {
        "model": MODEL,
        "system": "You are terse.",
        "tools": TOOLS,
        "messages": [{"role": "user", "content": "Grüße"}],
        "thinking": {"type": "disabled"},
    }
    for query in ("", "?beta=true"):
        counted = server.post(f"/v1/messages/count_tokens{query}", body)
        count = msgspec.json.decode(counted.content, type=TokenCount).input_tokens
        answered = server.post(f"/v1/messages{query}", {**body, "max_tokens": 1}, headers={"x-script-id": "plain"})
        assert count == answered.json()["usage"]["input_tokens"] > 100
    shorter = server.post("/v1/messages/count_tokens", {"messages": body["messages"]}).json()
    assert shorter["input_tokens"] < count
    assert server.post("/v1/messages/count_tokens", {**body, "max_tokens": 5}).json() == {"input_tokens": count}


def test_the_request_log_has_the_events(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    with running(scripted("hi", request_log=file)) as live:
        ask(live, stream=True)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    events = [line["data"]["type"] for line in lines if line["type"] == "stream_chunk"]
    assert events[0] == "message_start" and events[-1] == "message_stop"
    assert [line["type"] for line in lines if line["type"] != "stream_chunk"] == ["request", "stream_done"]
