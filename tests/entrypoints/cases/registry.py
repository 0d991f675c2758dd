"""Which check belongs to which case, and what both servers look like to it.

Owns the registry, the filling of placeholders, and the folding of answers. Knows no case.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from atom.entrypoints.scripted.script import Script
from conformance.http.server import Server
from tests.entrypoints.live import LiveServer, named_events, stream_json

Body = dict[str, Any]
MODEL = "atom-tiny"


@dataclass(frozen=True)
class Given:
    """What a check works with. input: the case's. scripted: plays the script with the case's id. model: atom-tiny."""

    id: str
    input: Body
    scripted: LiveServer
    model: httpx.Client
    process: Server

    @property
    def requests(self) -> list[Body]:
        """The case's requests, in its order."""
        if "requests" in self.input:
            return copy.deepcopy(self.input["requests"])
        return [copy.deepcopy(self.input.get("request", self.input))]

    def ask(self, request: Body, *, stream: bool | None = None, **changes: Any) -> httpx.Response:
        """Send a request of the case to the model. A change that is None takes the field out."""
        return self._send(self.model, request, MODEL, {}, stream, changes)

    def play(
        self, request: Body | None = None, *, script: str = "", stream: bool | None = None, **changes: Any
    ) -> httpx.Response:
        """Send a request of the case to the scripted server, which answers with the case's script, or another."""
        headers = {"x-script-id": script or self.id}
        return self._send(self.scripted.client, request or self.requests[0], "scripted", headers, stream, changes)

    def _send(
        self, client: httpx.Client, request: Body, model: str, headers: Body, stream: bool | None, changes: Body
    ) -> httpx.Response:
        body = json.loads(json.dumps(request.get("body")).replace("$MODEL", model))
        if stream is not None:
            changes = {**changes, "stream": stream}
        if body is not None:
            body = {key: value for key, value in {**body, **changes}.items() if value is not None or key not in changes}
        return client.request(
            request["method"], request["path"], json=body, headers={**request.get("headers", {}), **headers}
        )

    def send_raw(self, path: str, content: str, content_type: str = "application/json") -> httpx.Response:
        """POST these bytes to the model."""
        raw = content.replace("$MODEL", MODEL).encode()
        return self.model.post(path, content=raw, headers={"content-type": content_type})

    def last_prompt(self) -> str:
        """The prompt that the scripted engine was given last, as text."""
        serving = self.scripted.serving
        request = serving.scripted_engine.requests[-1]  # type: ignore[attr-defined]  # the scripted context has it
        return serving.tokenizer.decode(request.prompt_token_ids, skip_special_tokens=False)


Check = Callable[[Given], None]


@dataclass(frozen=True)
class Case:
    """A check. holds: what it holds, in a sentence. differs: where a decision of ours is another, and why."""

    check: Check
    holds: str
    differs: str
    scripts: tuple[Script, ...]


CASES: dict[str, Case] = {}


def case(case_id: str, holds: str, *, differs: str = "", scripts: Sequence[Script] = ()) -> Callable[[Check], Check]:
    """Register a check. scripts: more answers for the scripted server, beside the case's own."""

    def register(check: Check) -> Check:
        assert case_id not in CASES, case_id
        CASES[case_id] = Case(check, holds, differs, tuple(scripts))
        return check

    return register


def ok(response: httpx.Response) -> Any:
    """The body of an answer that must be one."""
    assert response.status_code == 200, response.text
    return response.json()


def chat_answer(response: httpx.Response) -> Body:
    """Content, reasoning, calls and finish_reason of choice 0, the same whether whole or streamed."""
    if not response.headers["content-type"].startswith("text/event-stream"):
        choice = ok(response)["choices"][0]
        message = choice["message"]
        calls = [(c["function"]["name"], c["function"]["arguments"]) for c in message.get("tool_calls") or ()]
        reasoning = message.get("reasoning_content") or ""
        return _answer(message["content"] or "", reasoning, calls, choice["finish_reason"])
    content, reasoning, reason = "", "", None
    streamed: list[list[str]] = []
    for chunk in stream_json(response):
        for choice in chunk["choices"]:
            delta, reason = choice["delta"], choice["finish_reason"] or reason
            content += delta.get("content") or ""
            reasoning += delta.get("reasoning_content") or ""
            for call in delta.get("tool_calls") or ():
                if call["index"] == len(streamed):
                    streamed.append([call["function"]["name"], ""])
                streamed[call["index"]][1] += call["function"]["arguments"]
    return _answer(content, reasoning, [(name, arguments) for name, arguments in streamed], reason)


def _answer(content: str, reasoning: str, calls: Sequence[tuple[str, str]], reason: str | None) -> Body:
    return {"content": content, "reasoning": reasoning, "calls": list(calls), "finish_reason": reason}


def message_blocks(response: httpx.Response) -> tuple[list[Body], str | None]:
    """The blocks of a message, without signatures, and its stop_reason; the same whether whole or streamed."""
    if not response.headers["content-type"].startswith("text/event-stream"):
        message = ok(response)
        blocks = [{key: value for key, value in block.items() if key != "signature"} for block in message["content"]]
        return [_named(block) for block in blocks], message["stop_reason"]
    blocks, inputs, reason = [], {}, None
    for name, data in named_events(response):
        if name == "content_block_start":
            blocks.append({key: value for key, value in data["content_block"].items() if key != "signature"})
            inputs[data["index"]] = ""
        elif name == "content_block_delta":
            delta = data["delta"]
            inputs[data["index"]] += delta.get("partial_json", "")
            for key in ("text", "thinking"):
                if key in delta:
                    blocks[data["index"]][key] += delta[key]
        elif name == "message_delta":
            reason = data["delta"]["stop_reason"]
    for index, block in enumerate(blocks):
        if block["type"] == "tool_use":
            assert block["input"] == {}, "the input of a block that begins is empty"
            block["input"] = json.loads(inputs[index] or "{}")
    return [_named(block) for block in blocks], reason


def _named(block: Body) -> Body:
    """A block without its made-up id."""
    return {key: value for key, value in block.items() if key != "id"}
