"""Streams: their frames, their order, their usage, and that they say what the whole answer says."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
import pytest
from atom_spec.openai import ChatCompletion, ChatCompletionChunk, Completion, CompletionChunk
from hypothesis import given, settings
from hypothesis import strategies as st

from atom.entrypoints.scripted.script import Script
from atom.entrypoints.scripted.serving import ScriptedServing
from tests.entrypoints.gate import Gate
from tests.entrypoints.live import LiveServer, frames_of, running, script, scripted, stream_json

CALL = "<tool_call>\n<function=get_weather>\n<parameter=city>\nBern\n</parameter>\n</function>\n</tool_call>"
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
]
SCRIPTS = [
    Script(id="plain", text="Grüße 😀!", chunk=2),
    Script(id="split", text="a😀b", byte_chunk=1),
    Script(id="thought", text="<think>one\n two</think>\n\nThree.", cached_tokens=3),
    Script(id="call", text=f"Before.{CALL} After.", format="qwen"),
    Script(id="two", text=f"{CALL}{CALL}", format="qwen"),
    Script(id="undeclared", text=f"Use {CALL.replace('get_weather', 'other')} so.", format="qwen"),
    Script(id="empty", text=""),
    Script(id="late", text="abc", first_delay=0.1),
]


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with running(scripted(*SCRIPTS, sse_keep_alive=0.0)) as live:
        yield live


def choices(chunks: Any) -> list[Any]:
    return [chunk["choices"][0] for chunk in chunks if chunk["choices"]]


def fold(chunks: Any, index: int = 0) -> dict[str, Any]:
    """A chat stream's choice as a message, the way client libraries add it up."""
    message: dict[str, Any] = {}
    calls: dict[int, dict[str, Any]] = {}
    for choice in (c for chunk in chunks for c in chunk["choices"] if c["index"] == index):
        for key, value in choice["delta"].items():
            if key == "tool_calls":
                for call in value:
                    known = calls.setdefault(call["index"], {"id": "", "name": "", "arguments": ""})
                    known["id"] += call.get("id", "")
                    known["name"] += call["function"].get("name", "")
                    known["arguments"] += call["function"]["arguments"]
            else:
                message[key] = message.get(key, "") + value
    if calls:
        message["calls"] = [calls[index] for index in sorted(calls)]
    return message


def whole(response: httpx.Response) -> dict[str, Any]:
    """A whole answer's message in the shape that `fold` gives."""
    message = response.json()["choices"][0]["message"]
    result = {key: message[key] or "" for key in message if key != "tool_calls"}
    if "tool_calls" in message:
        result["calls"] = [{"id": call["id"], **call["function"]} for call in message["tool_calls"]]
    return result


def without_ids(message: dict[str, Any]) -> dict[str, Any]:
    calls = [{**call, "id": ""} for call in message.get("calls", [])]
    return {**message, **({"calls": calls} if calls else {})}


def test_headers_and_framing(server: LiveServer) -> None:
    for response in (server.chat(stream=True), server.complete(stream=True), server.chat(stream=True, n=2)):
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["cache-control"] == "no-cache"
        assert frames_of(response)[-1] == "[DONE]" and response.text.endswith("data: [DONE]\n\n")
    assert server.client.get("/health").status_code == 200


def test_order_of_a_chat_stream(server: LiveServer) -> None:
    chunks = stream_json(server.chat(stream=True, headers=script("thought")))
    first, last = chunks[0]["choices"][0], chunks[-1]["choices"][0]
    assert first["delta"] == {"role": "assistant", "content": ""} and first["finish_reason"] is None
    assert last["delta"] == {} and last["finish_reason"] == "stop"
    for choice in choices(chunks)[1:-1]:
        assert choice["finish_reason"] is None and choice["delta"] and "role" not in choice["delta"]
    assert len({(chunk["id"], chunk["created"], chunk["model"], chunk["object"]) for chunk in chunks}) == 1
    assert chunks[0]["id"].startswith("chatcmpl-") and chunks[0]["object"] == "chat.completion.chunk"
    again = stream_json(server.chat(stream=True, headers=script("thought")))
    assert again[0]["id"] != chunks[0]["id"]


def test_every_chunk_is_one_of_the_contract(server: LiveServer) -> None:
    for name in ("plain", "thought", "call"):
        fields: dict[str, Any] = {"logprobs": True, "top_logprobs": 2, "stream_options": {"include_usage": True}}
        for frame in frames_of(server.chat(stream=True, tools=TOOLS, headers=script(name), **fields))[:-1]:
            msgspec.json.decode(frame, type=ChatCompletionChunk)
        for frame in frames_of(server.complete(stream=True, logprobs=2, echo=True, headers=script(name)))[:-1]:
            msgspec.json.decode(frame, type=CompletionChunk)
        msgspec.json.decode(server.chat(tools=TOOLS, logprobs=True, headers=script(name)).content, type=ChatCompletion)
        msgspec.json.decode(server.complete(logprobs=0, headers=script(name)).content, type=Completion)


@pytest.mark.parametrize("name", [item.id for item in SCRIPTS])
def test_streamed_is_whole(server: LiveServer, name: str) -> None:
    streamed = server.chat(stream=True, tools=TOOLS, headers=script(name))
    folded = fold(stream_json(streamed))
    folded.pop("role")
    expected = whole(server.chat(tools=TOOLS, headers=script(name)))
    expected.pop("role")
    assert without_ids(folded) == without_ids(expected)
    text = "".join(
        choice["text"] for choice in choices(stream_json(server.complete(stream=True, headers=script(name))))
    )
    assert text == server.complete(headers=script(name)).json()["choices"][0]["text"]


def test_a_character_never_falls_apart(server: LiveServer) -> None:
    texts = [c["text"] for c in choices(stream_json(server.complete(stream=True, headers=script("split"))))]
    assert [text for text in texts if text] == ["a", "😀", "b"]


def test_reasoning_under_both_names(server: LiveServer) -> None:
    message = server.chat(headers=script("thought")).json()["choices"][0]["message"]
    assert message["reasoning_content"] == message["reasoning"] == "one\n two"
    assert message["content"] == "\n\nThree."
    for choice in choices(stream_json(server.chat(stream=True, headers=script("thought")))):
        assert choice["delta"].get("reasoning") == choice["delta"].get("reasoning_content")
    assert "reasoning" not in server.chat(headers=script("plain")).json()["choices"][0]["message"]


def test_a_call_streamed(server: LiveServer) -> None:
    chunks = stream_json(server.chat(stream=True, tools=TOOLS, headers=script("call")))
    calls = [call for choice in choices(chunks) for call in choice["delta"].get("tool_calls", [])]
    assert [call["index"] for call in calls] == [0] * len(calls)
    assert [bool(call.get("id")) for call in calls] == [True] + [False] * (len(calls) - 1)
    assert calls[0]["type"] == "function" and calls[0]["function"] == {"name": "get_weather", "arguments": ""}
    assert all("name" not in call["function"] and "type" not in call for call in calls[1:])
    assert fold(chunks)["calls"][0]["arguments"] == '{"city":"Bern"}'
    assert fold(chunks)["content"] == "Before. After."
    assert choices(chunks)[-1]["finish_reason"] == "tool_calls"
    assert all(choice["delta"].get("tool_calls") != [] for choice in choices(chunks))


def test_finish_reasons(server: LiveServer) -> None:
    def reason(name: str, **fields: Any) -> Any:
        return server.chat(headers=script(name), **fields).json()["choices"][0]["finish_reason"]

    assert reason("plain") == "stop"
    assert reason("plain", max_tokens=1) == "length"
    assert reason("call", tools=TOOLS) == "tool_calls"
    assert reason("call", tools=TOOLS, max_tokens=len(f"Before.{CALL}") + 1) == "length"
    assert reason("call") == "stop"
    assert server.complete(headers=script("plain"), max_tokens=1).json()["choices"][0]["finish_reason"] == "length"


def test_calls_that_may_not_be_dispatched(server: LiveServer) -> None:
    none = whole(server.chat(tools=TOOLS, tool_choice="none", headers=script("call")))
    assert none == {"role": "assistant", "content": "Before. After."}
    streamed = stream_json(server.chat(stream=True, tools=TOOLS, tool_choice="none", headers=script("call")))
    assert fold(streamed) == none and choices(streamed)[-1]["finish_reason"] == "stop"
    assert whole(server.chat(headers=script("call")))["content"] == f"Before.{CALL} After."
    assert "other" in whole(server.chat(tools=TOOLS, headers=script("undeclared")))["content"]


def test_parallel_tool_calls(server: LiveServer) -> None:
    assert len(whole(server.chat(tools=TOOLS, headers=script("two")))["calls"]) == 2
    one = whole(server.chat(tools=TOOLS, parallel_tool_calls=False, headers=script("two")))
    assert len(one["calls"]) == 1
    both = whole(server.chat(tools=TOOLS, headers=script("two")))["calls"]
    assert both[0]["id"] != both[1]["id"]
    only = server.chat(tools=TOOLS, headers=script("two")).json()["choices"][0]["message"]
    assert only["content"] is None


def test_usage(server: LiveServer) -> None:
    usage = server.chat(headers=script("thought")).json()["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert usage["completion_tokens"] == len("<think>one\n two</think>\n\nThree.")
    assert usage["prompt_tokens_details"] == {"cached_tokens": 3}
    assert 0 < usage["completion_tokens_details"]["reasoning_tokens"] < usage["completion_tokens"]
    assert usage["latency_s"] >= usage["ttft_s"] >= 0 and usage["tpot_s"] >= 0
    two = server.complete(["ab", "cde"], n=2, max_tokens=2, headers=script("plain")).json()["usage"]
    assert (two["prompt_tokens"], two["completion_tokens"]) == (5, 8)


@pytest.mark.parametrize("asked", [None, {"include_usage": False}, {}, {"include_usage": None}])
def test_no_usage_unless_asked(server: LiveServer, asked: Any) -> None:
    for response in (
        server.chat(stream=True, stream_options=asked),
        server.complete(stream=True, stream_options=asked),
    ):
        assert all(len(chunk["choices"]) == 1 and "usage" not in chunk for chunk in stream_json(response))


def test_usage_when_asked(server: LiveServer) -> None:
    for post in (server.chat, server.complete):
        *chunks, last = stream_json(post(stream=True, stream_options={"include_usage": True}, headers=script("plain")))
        assert last["choices"] == [] and last["usage"]["completion_tokens"] == 4
        assert all(chunk["usage"] is None and chunk["choices"] for chunk in chunks)
        assert chunks[-1]["choices"][0]["finish_reason"] == "stop"


def test_continuous_usage(server: LiveServer) -> None:
    options = {"include_usage": True, "continuous_usage_stats": True}
    for post in (server.chat, server.complete):
        chunks = stream_json(post(stream=True, stream_options=options, headers=script("plain")))
        counts = [chunk["usage"]["completion_tokens"] for chunk in chunks]
        assert counts == sorted(counts) and counts[0] == 1 and counts[-1] == 4


def test_continuous_usage_tells_what_was_cached_before_all_choices_have_begun() -> None:
    fields = {"n": 3, "stream": True, "stream_options": {"include_usage": True, "continuous_usage_stats": True}}
    with running(scripted(Script(text="Hello.", cached_tokens=16))) as live:
        for chunks in (stream_json(live.chat("x" * 50, **fields)), stream_json(live.complete("x" * 50, **fields))):
            assert {chunk["usage"]["prompt_tokens_details"]["cached_tokens"] for chunk in chunks} == {16}


def test_several_choices_in_one_stream(server: LiveServer) -> None:
    chunks = stream_json(server.complete(["a b", "c d"], n=2, max_tokens=3, stream=True, headers=script("plain")))
    finished = [c["index"] for chunk in chunks for c in chunk["choices"] if c["finish_reason"]]
    assert sorted(finished) == [0, 1, 2, 3]
    chat = stream_json(server.chat(n=3, stream=True, headers=script("plain")))
    for index in range(3):
        own = [c for chunk in chat for c in chunk["choices"] if c["index"] == index]
        assert own[0]["delta"].get("role") == "assistant" and own[-1]["finish_reason"] == "stop"
        assert fold(chat, index)["content"] == "Grüße 😀!"
        assert sum("role" in c["delta"] for c in own) == 1


def test_comments_while_a_stream_waits() -> None:
    body = {"messages": [{"role": "user", "content": "hi"}]}
    with running(scripted(Script(text="abc", first_delay=1), sse_keep_alive=0.02)) as live:
        response = Gate(live).stream("/v1/chat/completions", body, (": keep-alive", 1))
    assert response.text.startswith(": keep-alive\n\n")
    assert fold(stream_json(response))["content"] == "abc"


def test_a_wait_may_still_end_in_a_status(server: LiveServer) -> None:
    """No comment is due before the first failure, so the answer is an ordinary 400."""
    assert server.chat(stream=True, temperature=-1).status_code == 400


def test_echo_in_a_stream(server: LiveServer) -> None:
    texts = [c["text"] for c in choices(stream_json(server.complete("ab", echo=True, stream=True, max_tokens=2)))]
    assert "".join(texts).startswith("ab") and texts[0].startswith("ab")


def test_frames_go_out_as_tokens_come(server: LiveServer) -> None:
    """A long stop string that does not match holds nothing back."""
    fields: dict[str, Any] = {"stream": True, "stop": ["<<<THE-END-OF-THE-ANSWER-MARKER>>>"]}
    texts = [c["text"] for c in choices(stream_json(server.complete(headers=script("split"), **fields)))]
    assert [text for text in texts if text] == ["a", "😀", "b"]


@settings(max_examples=25, deadline=None)
@given(
    text=st.text(alphabet="ab<>/think\n 😀é", max_size=40),
    cuts=st.lists(st.integers(1, 39), max_size=6),
    stop=st.lists(st.text(alphabet="ab<", min_size=1, max_size=3), max_size=2),
)
def test_any_cut_gives_the_same_answer(server: LiveServer, text: str, cuts: list[int], stop: list[str]) -> None:
    assert isinstance(server.serving, ScriptedServing)
    inside = [cut for cut in cuts if cut < len(text)]
    ways = [Script(id="drawn", text=text, cuts=inside or None), Script(id="drawn", text=text, burst=1000)]
    answers = []
    for way in ways:
        server.serving.scripts = (way,)
        streamed = fold(stream_json(server.chat(stream=True, stop=stop, headers=script("drawn"))))
        answers += [streamed, whole(server.chat(stop=stop, headers=script("drawn")))]
    server.serving.scripts = tuple(SCRIPTS)
    assert all(answer == answers[0] for answer in answers), answers


def test_the_clock_of_usage(server: LiveServer) -> None:
    before = time.monotonic()
    usage = server.chat(headers=script("late")).json()["usage"]
    assert 0.1 <= usage["ttft_s"] <= time.monotonic() - before
