"""/v1/responses over a live server: items, the order of events, usage, and that a stream says what the whole says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
import pytest
from atom_spec import responses as spec
from hypothesis import given, settings
from hypothesis import strategies as st

from atom.entrypoints.scripted.script import Script
from atom.entrypoints.scripted.serving import ScriptedServing
from tests.entrypoints.anthropic_requests import CLOCK_CALL, WEATHER_CALL
from tests.entrypoints.gate import Gate
from tests.entrypoints.live import MODEL, LiveServer, error_of, named_events, running, script, scripted

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "name": "get_weather",
        "description": "Weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        "strict": False,
    },
    {"type": "function", "name": "clock"},
]
SCRIPTS = [
    Script(id="plain", text="Grüße 😀!", chunk=2),
    Script(id="thought", text="<think>one\n two</think>\n\nThree.", cached_tokens=3),
    Script(id="only thought", text="<think>one"),
    Script(id="calls", text=f"A {WEATHER_CALL}\n{CLOCK_CALL} Z"),
    Script(id="call", text=WEATHER_CALL),
    Script(id="undeclared", text=f"Use {WEATHER_CALL.replace('get_weather', 'other')} so."),
    Script(id="empty", text=""),
    Script(id="fault", text="abcdef", fault_after=3),
    Script(id="refused", text="x", fault_after=0),
]
EVENTS = {
    struct.__struct_fields__ and msgspec.inspect.type_info(struct).fields[0].default: struct
    for struct in (
        spec.ResponseCreated,
        spec.ResponseInProgress,
        spec.ResponseCompleted,
        spec.ResponseIncomplete,
        spec.ResponseFailed,
        spec.OutputItemAdded,
        spec.OutputItemDone,
        spec.ContentPartAdded,
        spec.ContentPartDone,
        spec.OutputTextDelta,
        spec.OutputTextDone,
        spec.ReasoningTextDelta,
        spec.ReasoningTextDone,
        spec.FunctionCallArgumentsDelta,
        spec.FunctionCallArgumentsDone,
    )
}


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with running(scripted(*SCRIPTS, sse_keep_alive=0.0)) as live:
        yield live


def ask(server: LiveServer, name: str, **fields: Any) -> httpx.Response:
    return server.post("/v1/responses", {"input": "hi", **fields}, headers=script(name))


def output_of(response: httpx.Response) -> list[dict[str, Any]]:
    assert response.status_code == 200, response.text
    items: list[dict[str, Any]] = response.json()["output"]
    return items


def fold(response: httpx.Response) -> dict[str, Any]:
    """The response that a stream adds up to; the rules of its order are checked on the way."""
    events = named_events(response)
    assert [data["sequence_number"] for _, data in events] == list(range(len(events)))
    for name, data in events:
        msgspec.convert(data, EVENTS[name])
    (first, created), (second, begun), *between, (last, end) = events
    assert (first, second) == ("response.created", "response.in_progress")
    assert created["response"] == begun["response"] and begun["response"]["output"] == []
    assert last == {"completed": "response.completed", "incomplete": "response.incomplete"}[end["response"]["status"]]
    items: list[dict[str, Any]] = []
    names: list[str] = []
    for name, data in between:
        assert data["output_index"] == len(items)
        if name == "response.output_item.added":
            assert not names
            current, text, parts = data["item"], "", []
            assert current["status"] == "in_progress" and not current.get("content") and not current.get("arguments")
        names.append(name.removeprefix("response."))
        assert data.get("item_id", current["id"]) == current["id"] and data.get("content_index", 0) == 0
        text += data.get("delta", "")
        parts += [data["part"]] if name == "response.content_part.done" else []
        assert data.get("text", text) == text and data.get("arguments", text) == text
        if name == "response.output_item.done":
            if current["type"] == "function_call":
                current["arguments"] = text
            else:
                current["content"] = parts
                assert parts[0]["text"] == text
            check_names(current["type"], names)
            items.append({**current, "status": data["item"]["status"]})
            assert items[-1] == data["item"]
            names = []
    assert not names and end["response"]["output"] == items
    message: dict[str, Any] = end["response"]
    return message


def check_names(kind: str, names: list[str]) -> None:
    """The names of one item's events, in their order."""
    stem = {"message": "output_text", "reasoning": "reasoning_text", "function_call": "function_call_arguments"}[kind]
    deltas = [f"{stem}.delta"] * names.count(f"{stem}.delta")
    inner = [*deltas, f"{stem}.done"]
    if kind != "function_call":
        inner = ["content_part.added", *inner, "content_part.done"]
    assert names == ["output_item.added", *inner, "output_item.done"]


@pytest.mark.parametrize("name", ["plain", "thought", "calls", "undeclared"])
@pytest.mark.parametrize("fields", [{}, {"top_logprobs": 0}, {"top_logprobs": 2}, {"max_output_tokens": 3}])
def test_log_probabilities_are_those_of_the_text(server: LiveServer, name: str, fields: dict[str, Any]) -> None:
    """Of messages only, and their bytes are the text; a stream's deltas have what its done and the whole have."""
    asked = {"include": ["message.output_text.logprobs"], "tools": TOOLS, **fields}
    body = ask(server, name, **asked).json()
    parts = [item["content"][0] for item in body["output"] if item["type"] == "message"]
    for part in parts:
        spelt = b"".join(bytes(entry["bytes"]) for entry in part["logprobs"])
        assert spelt.decode("utf-8", "replace").strip() == part["text"].strip()
        assert {len(entry["top_logprobs"]) for entry in part["logprobs"]} <= {fields.get("top_logprobs", 0)}
        assert all(entry["logprob"] <= 0 for entry in part["logprobs"])
    streamed = ask(server, name, stream=True, **asked)
    assert without_ids(fold(streamed)) == without_ids(body)
    events = [data for event, data in named_events(streamed) if event.startswith("response.output_text")]
    in_deltas = [entry for data in events for entry in data["logprobs"] if "delta" in data]
    in_done = [entry for data in events for entry in data["logprobs"] if "text" in data]
    assert in_deltas == in_done == [entry for part in parts for entry in part["logprobs"]]
    assert in_done or not any(part["text"] for part in parts)


def without_ids(response: dict[str, Any]) -> dict[str, Any]:
    items = [{**item, "id": "", "call_id": ""} for item in response["output"]]
    return {**response, "id": "", "created_at": 0, "output": items}


def test_a_whole_response(server: LiveServer) -> None:
    response = ask(server, "plain", model=MODEL, instructions="Be brief.", metadata={"a": "b"}, temperature=0.5)
    body = response.json()
    msgspec.json.decode(response.content, type=spec.Response)
    assert body["id"].startswith("resp_") and (body["object"], body["status"]) == ("response", "completed")
    (item,) = body["output"]
    assert item["id"].startswith("msg_") and (item["type"], item["role"]) == ("message", "assistant")
    assert item["content"] == [{"type": "output_text", "text": "Grüße 😀!", "annotations": [], "logprobs": []}]
    assert (body["instructions"], body["metadata"], body["temperature"]) == ("Be brief.", {"a": "b"}, 0.5)
    assert (body["store"], body["error"], body["tools"], body["tool_choice"]) == (False, None, [], "auto")
    assert ask(server, "plain").json()["id"] != body["id"]


@pytest.mark.parametrize("name", [item.id for item in SCRIPTS[:7]])
@pytest.mark.parametrize("fields", [{}, {"max_output_tokens": 9}, {"tool_choice": "none"}])
def test_streamed_is_whole(server: LiveServer, name: str, fields: dict[str, Any]) -> None:
    whole = ask(server, name, tools=TOOLS, **fields).json()
    assert without_ids(fold(ask(server, name, tools=TOOLS, stream=True, **fields))) == without_ids(whole)
    assert whole["output"]


ALPHABET = st.sampled_from(["a", "é😀", "\n", "<think>", "</think>", WEATHER_CALL, CLOCK_CALL, "<tool_call>"])


@settings(max_examples=40, deadline=None)
@given(
    text=st.lists(ALPHABET, max_size=8).map("".join),
    chunk=st.integers(1, 9),
    burst=st.integers(1, 4),
    limit=st.integers(1, 80),
)
def test_streamed_is_whole_for_any_text(server: LiveServer, text: str, chunk: int, burst: int, limit: int) -> None:
    assert isinstance(server.serving, ScriptedServing)
    drawn = Script(id="any", text=text, chunk=chunk, burst=burst)
    server.serving.scripts = (*server.serving.scripts[: len(SCRIPTS)], drawn)
    fields: dict[str, Any] = {"tools": TOOLS, "max_output_tokens": limit}
    whole = ask(server, "any", **fields).json()
    assert without_ids(fold(ask(server, "any", stream=True, **fields))) == without_ids(whole)


def test_items_come_in_the_order_of_the_answer(server: LiveServer) -> None:
    items = output_of(ask(server, "calls", tools=TOOLS))
    assert [item["type"] for item in items] == ["message", "function_call", "message", "function_call", "message"]
    assert [item["content"][0]["text"] for item in items[::2]] == ["A ", "\n", " Z"]
    assert (items[1]["name"], items[1]["arguments"]) == ("get_weather", '{"city":"Bern"}')
    assert (items[3]["name"], items[3]["arguments"]) == ("clock", "{}")
    assert items[1]["call_id"] != items[3]["call_id"] and items[1]["id"].startswith("fc_")
    one = output_of(ask(server, "calls", tools=TOOLS, parallel_tool_calls=False))
    assert [item["name"] for item in one if item["type"] == "function_call"] == ["get_weather"]
    (none,) = output_of(ask(server, "calls", tools=TOOLS, tool_choice="none"))
    assert none["content"][0]["text"] == "A \n Z"


def test_an_undeclared_call_is_text(server: LiveServer) -> None:
    (item,) = output_of(ask(server, "undeclared", tools=TOOLS))
    assert item["content"][0]["text"].startswith("Use <tool_call>")


def test_thoughts_are_items(server: LiveServer) -> None:
    thought, message = output_of(ask(server, "thought"))
    assert (thought["type"], thought["summary"]) == ("reasoning", []) and thought["id"].startswith("rs_")
    assert thought["content"] == [{"type": "reasoning_text", "text": "one\n two"}]
    assert message["content"][0]["text"] == "\n\nThree."
    (thought,) = output_of(ask(server, "only thought"))
    assert thought["type"] == "reasoning"


def test_an_answer_of_nothing_is_an_empty_message(server: LiveServer) -> None:
    (item,) = output_of(ask(server, "empty"))
    assert item["content"][0]["text"] == "" and item["status"] == "completed"


def test_a_cut_answer_says_so(server: LiveServer) -> None:
    body = ask(server, "plain", max_output_tokens=2).json()
    assert (body["status"], body["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    assert body["output"][0]["status"] == "incomplete" and body["max_output_tokens"] == 2
    # A call that the limit cut is whole JSON, but nobody should run it.
    (call,) = output_of(ask(server, "call", tools=TOOLS, max_output_tokens=len(WEATHER_CALL) - 40))
    assert call["type"] == "function_call" and call["status"] == "incomplete"
    *_, call, text = output_of(ask(server, "calls", tools=TOOLS, max_output_tokens=len(WEATHER_CALL) + 4))
    assert (call["status"], text["status"]) == ("completed", "incomplete")


def test_without_a_limit_the_context_is_the_limit(server: LiveServer) -> None:
    assert ask(server, "plain").json()["max_output_tokens"] is None
    requests = server.serving.scripted_engine.requests  # type: ignore[attr-defined]  # the scripted context has it
    assert requests[-1].sampling.max_tokens == 4096 - len(requests[-1].prompt_token_ids)


def test_usage(server: LiveServer) -> None:
    usage = ask(server, "thought").json()["usage"]
    assert usage["input_tokens_details"] == {"cached_tokens": 3, "cache_write_tokens": 0}
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    assert 0 < usage["output_tokens_details"]["reasoning_tokens"] < usage["output_tokens"]


def test_comments_while_it_takes_long() -> None:
    comment = ": keep-alive\n\n"
    with running(scripted(Script(text="ab", first_delay=1, delay=1), sse_keep_alive=0.02)) as live:
        response = Gate(live).stream("/v1/responses", {"input": "hi"}, (comment, 2), ('"delta":"a"', 1))
    assert response.text.startswith(2 * comment)
    assert fold(response)["output"][0]["content"][0]["text"] == "ab"


def test_failures(server: LiveServer) -> None:
    for stream in (False, True):
        assert "fault" in error_of(ask(server, "refused", stream=stream))["message"]
    error_of(ask(server, "fault"), 500)
    name, data = named_events(ask(server, "fault", stream=True))[-1]
    assert name == "response.failed" and data["response"]["status"] == "failed"
    assert data["response"]["error"]["code"] == "server_error" and "fault" in data["response"]["error"]["message"]
    msgspec.convert(data, spec.ResponseFailed)
