"""Arguments that are no JSON object, on their way back: what a server has said, a client may send to it again."""

from __future__ import annotations

from typing import Any

import pytest

from atom.entrypoints.scripted.script import Script
from tests.entrypoints.live import error_of, running, script, scripted
from tests.entrypoints.test_http_anthropic import NO_JSON, NO_OBJECTS

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}}
FUNCTION = {"name": "get_weather", "parameters": PARAMETERS}


@pytest.mark.parametrize("name", NO_JSON)
def test_what_was_answered_is_taken_back(name: str) -> None:
    scripts = [Script(id=body, text=NO_JSON[name] % body, format=name) for body in NO_OBJECTS]
    with running(scripted(*scripts, Script(id="done", text="Done."), tool_call_parser=name)) as live:
        for body in NO_OBJECTS:
            question = {"role": "user", "content": body}
            headers = script(body)
            asked: dict[str, Any] = {"tools": [{"type": "function", "function": FUNCTION}], "messages": [question]}
            chat = live.post("/v1/chat/completions", asked, headers=headers).json()
            turn = chat["choices"][0]["message"]
            [call] = turn["tool_calls"]
            assert call["function"]["arguments"] == body
            result = {"role": "tool", "tool_call_id": call["id"], "content": "no city"}
            again = {**asked, "messages": [question, turn, result]}
            assert live.post("/v1/chat/completions", again, headers=script("done")).status_code == 200

            asked = {"tools": [{"type": "function", **FUNCTION}], "input": [question]}
            items = live.post("/v1/responses", asked, headers=headers).json()["output"]
            [item] = [item for item in items if item["type"] == "function_call"]
            assert item["arguments"] == body
            output = {"type": "function_call_output", "call_id": item["call_id"], "output": "no city"}
            again = {**asked, "input": [question, item, output]}
            assert live.post("/v1/responses", again, headers=script("done")).status_code == 200


@pytest.mark.parametrize("body", ["city: Bern", '["Bern"]'])
def test_a_format_that_never_says_such_refuses_them_by_their_place(body: str) -> None:
    with running(scripted("ok")) as live:
        call = {"id": "c", "type": "function", "function": {"name": "get_weather", "arguments": body}}
        turns = [{"role": "user", "content": "x"}, {"role": "assistant", "tool_calls": [call]}]
        refused = live.post("/v1/chat/completions", {"messages": turns})
        assert (refused.status_code, error_of(refused)["param"]) == (
            400, "messages[1].tool_calls[0].function.arguments",
        )  # fmt: skip
        item = {"type": "function_call", "call_id": "c", "name": "get_weather", "arguments": body}
        refused = live.post("/v1/responses", {"input": [item]})
        assert (refused.status_code, error_of(refused)["param"]) == (400, "input[0].arguments")
