"""Log probabilities over a live server: lengths, offsets, floats, streamed and whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from atom.entrypoints.scripted.script import Script
from tests.entrypoints.live import LiveServer, running, script, scripted, stream_json

SCRIPTS = [
    Script(id="plain", text="One two, three."),
    Script(id="split", text="a😀é.", byte_chunk=1),
    Script(id="burst", text="One two, three.", burst=4),
    Script(id="thought", text="<think>hm</think>Yes 😀", byte_chunk=2),
]
KEYS = ["tokens", "token_logprobs", "top_logprobs", "text_offset"]


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with running(scripted(*SCRIPTS)) as live:
        yield live


def whole(server: LiveServer, name: str, **fields: Any) -> tuple[str, dict[str, Any], dict[str, Any]]:
    body = server.complete("hi", headers=script(name), **fields).json()
    choice = body["choices"][0]
    return choice["text"], choice["logprobs"], body["usage"]


def check_arrays(text: str, logprobs: dict[str, Any], num_tokens: int) -> None:
    assert [len(logprobs[key]) for key in KEYS] == [num_tokens] * 4
    assert "".join(logprobs["tokens"]) == text
    offset = 0
    for token, start in zip(logprobs["tokens"], logprobs["text_offset"], strict=True):
        assert start == offset
        offset += len(token)


@pytest.mark.parametrize("name", ["plain", "split", "burst"])
@pytest.mark.parametrize("fields", [{}, {"max_tokens": 6}, {"stop": ["e."]}, {"stop": ["two", "😀"]}])
def test_arrays_of_a_completion(server: LiveServer, name: str, fields: dict[str, Any]) -> None:
    text, logprobs, usage = whole(server, name, logprobs=2, **fields)
    check_arrays(text, logprobs, usage["completion_tokens"])
    for token, value, top in zip(*(logprobs[key] for key in KEYS[:3]), strict=True):
        assert top[token] == value == max(top.values())
        assert 1 <= len(top) <= 3


@pytest.mark.parametrize("name", ["plain", "split", "burst"])
@pytest.mark.parametrize("fields", [{}, {"echo": True}, {"max_tokens": 6, "echo": True}, {"stop": ["two"]}])
def test_streamed_arrays_are_the_whole_ones(server: LiveServer, name: str, fields: dict[str, Any]) -> None:
    text, logprobs, _ = whole(server, name, logprobs=2, **fields)
    chunks = stream_json(server.complete("hi", stream=True, logprobs=2, headers=script(name), **fields))
    own = [chunk["choices"][0] for chunk in chunks]
    assert "".join(choice["text"] for choice in own) == text
    for key in KEYS:
        assert [value for choice in own for value in choice["logprobs"][key]] == logprobs[key]


@pytest.mark.parametrize("prompt", ["The sun is hot", ["The sun is hot"], [list(b"The sun is hot")]])
@pytest.mark.parametrize("max_tokens", [0, 1, 3])
def test_echo_scores_the_prompt(server: LiveServer, prompt: Any, max_tokens: int) -> None:
    fields: dict[str, Any] = {"max_tokens": max_tokens, "logprobs": 1, "echo": True, "temperature": 0}
    body = server.complete(prompt, headers=script("plain"), **fields).json()
    choice, usage = body["choices"][0], body["usage"]
    assert choice["text"] == "The sun is hot" + "One"[:max_tokens]
    check_arrays(choice["text"], choice["logprobs"], usage["prompt_tokens"] + usage["completion_tokens"])
    assert usage["completion_tokens"] == max_tokens and choice["finish_reason"] == "length"
    first, *rest = choice["logprobs"]["token_logprobs"]
    assert first is None and choice["logprobs"]["top_logprobs"][0] is None
    assert all(value <= 0 for value in rest)


def test_echo_without_logprobs_and_logprobs_without_echo(server: LiveServer) -> None:
    body = server.complete("ab", echo=True, max_tokens=0, headers=script("plain")).json()
    assert body["choices"][0] == {"index": 0, "text": "ab", "finish_reason": "length", "logprobs": None}
    _, logprobs, _ = whole(server, "plain", logprobs=0, max_tokens=2)
    assert logprobs["top_logprobs"] == [{"O": logprobs["token_logprobs"][0]}, {"n": logprobs["token_logprobs"][1]}]


def test_a_cut_character_of_an_echoed_prompt_does_not_reach_the_answer(server: LiveServer) -> None:
    ids = [*b"Plain text then ", *"😀".encode()[:2]]
    chunks = stream_json(server.complete(ids, stream=True, max_tokens=6, headers=script("plain")))
    assert "".join(chunk["choices"][0]["text"] for chunk in chunks) == "One tw"


@pytest.mark.parametrize("name", ["plain", "split", "burst"])
def test_entries_of_a_chat_answer(server: LiveServer, name: str) -> None:
    body = server.chat(logprobs=True, top_logprobs=3, headers=script(name)).json()
    choice = body["choices"][0]
    content = choice["logprobs"]["content"]
    assert len(content) == body["usage"]["completion_tokens"]
    assert b"".join(bytes(entry["bytes"]) for entry in content).decode() == choice["message"]["content"]
    for entry in content:
        values = [other["logprob"] for other in entry["top_logprobs"]]
        assert len(values) == 3 and values == sorted(values, reverse=True) and entry["bytes"] and entry["token"]
    streamed = stream_json(server.chat(stream=True, logprobs=True, top_logprobs=3, headers=script(name)))
    parts = [chunk["choices"][0]["logprobs"] for chunk in streamed]
    assert [entry for part in parts if part for entry in part["content"]] == content


def test_bytes_tell_parts_of_a_character_apart(server: LiveServer) -> None:
    choice = server.chat(logprobs=True, headers=script("split")).json()["choices"][0]
    tokens = [entry["token"] for entry in choice["logprobs"]["content"]]
    assert tokens == ["a", "\\xf0", "\\x9f", "\\x98", "\\x80", "\\xc3", "\\xa9", "."]


def test_thoughts_have_no_entries(server: LiveServer) -> None:
    choice = server.chat(logprobs=True, headers=script("thought")).json()["choices"][0]
    entries = choice["logprobs"]["content"]
    raw = b"".join(bytes(entry["bytes"]) for entry in entries)
    assert raw.endswith("Yes 😀".encode()) and b"hm" not in raw and b"/think" not in raw


def test_no_entries_unless_asked(server: LiveServer) -> None:
    assert server.chat(headers=script("plain")).json()["choices"][0]["logprobs"] is None
    assert server.chat(logprobs=False, headers=script("plain")).json()["choices"][0]["logprobs"] is None
    assert server.complete(headers=script("plain")).json()["choices"][0]["logprobs"] is None
    only = server.chat(logprobs=True, headers=script("plain")).json()["choices"][0]["logprobs"]["content"]
    assert all(entry["top_logprobs"] == [] for entry in only)
