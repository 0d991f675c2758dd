"""Cases about /v1/messages."""

from __future__ import annotations

from typing import Any

from conformance.http.streams import check_stream
from tests.entrypoints.cases.registry import Given, case, message_blocks, ok
from tests.entrypoints.live import error_of, named_events


@case("B64", "message_start has every field of a message that has not begun; an event's name is its data's type.")
def _(given: Given) -> None:
    name, data = named_events(given.ask(given.requests[0]))[0]
    message = data["message"]
    assert name == "message_start" and message["id"] and message["model"]
    wanted: dict[str, Any] = {
        "type": "message",
        "role": "assistant",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }
    assert {key: message[key] for key in wanted} == wanted
    assert message["usage"]["input_tokens"] + message["usage"]["cache_read_input_tokens"] > 0
    assert "output_tokens" in message["usage"]


@case(
    "B65",
    "Whole blocks with indexes from 0, one after the other, then message_delta and message_stop; also with no answer.",
)
def _(given: Given) -> None:
    for request in given.requests:
        check_stream("createMessage", given.ask(request).text, request["body"])
        check_stream("createMessage", given.play(request, script="thinks").text, request["body"])
    blocks, reason = message_blocks(given.play(given.requests[0], script="empty"))
    assert (blocks, reason) == ([{"type": "text", "text": ""}], "end_turn")


@case("B66", "Text between and behind calls is in blocks of its own; whole and streamed blocks are equal.")
def _(given: Given) -> None:
    streamed = message_blocks(given.play(max_tokens=500))
    assert streamed == message_blocks(given.play(max_tokens=500, stream=False))
    blocks, reason = streamed
    assert reason == "tool_use"
    assert [block["type"] for block in blocks if block.get("text") != "\n"] == ["text", "tool_use", "tool_use", "text"]
    assert [block["input"] for block in blocks if block["type"] == "tool_use"] == [{"city": "Bari"}, {}]
    check_stream("createMessage", given.play(max_tokens=500).text, given.requests[0]["body"])


@case("B67", "A call's block begins with an empty input, and its joined pieces are the whole of it.")
def _(given: Given) -> None:
    blocks, reason = message_blocks(given.play(max_tokens=500))
    used = {"type": "tool_use", "name": "write_file", "input": {"path": "u.txt", "content": "uptime"}}
    assert (blocks, reason) == ([used], "tool_use")


@case(
    "B68", "count_tokens is what the same request's usage says, tools and system included; the query string is ignored."
)
def _(given: Given) -> None:
    count, message = given.requests
    for query in ("", "?beta=true"):
        counted = ok(given.ask({**count, "path": count["path"] + query}))["input_tokens"]
        usage = ok(given.ask({**message, "path": message["path"] + query}))["usage"]
        assert counted == usage["input_tokens"] + usage["cache_read_input_tokens"]
        assert (
            counted
            > ok(given.ask(count, tools=None))["input_tokens"]
            > ok(given.ask(count, tools=None, system=None))["input_tokens"]
        )


@case(
    "B69",
    "A result may be text, blocks or nothing; an unknown block is a 400 in Anthropic's shape; system is whole.",
)
def _(given: Given) -> None:
    text, blocks, unknown, nothing = given.requests
    for request in (text, blocks, nothing):
        ok(given.ask(request))
        ok(given.play(request, script="ok"))
        assert "S1S2" in given.last_prompt() and "go on" in given.last_prompt()
    assert error_of(given.ask(unknown))["type"] == "invalid_request_error"


@case(
    "B70", "Thinking disabled: what is thought all the same is not sent. Absent: thinking and text, each in its block."
)
def _(given: Given) -> None:
    disabled, absent = given.requests
    text = {"type": "text", "text": "Answer."}
    for stream in (False, True):
        assert message_blocks(given.play(disabled, stream=stream, max_tokens=200)) == ([text], "end_turn")
        thought = {"type": "thinking", "thinking": "plan"}
        assert message_blocks(given.play(absent, stream=stream, max_tokens=200)) == ([thought, text], "end_turn")
    ok(given.ask(disabled))
    ok(given.play(disabled, script="ok"))
    assert given.last_prompt().endswith("<think>\n\n</think>\n\n")
