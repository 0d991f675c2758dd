from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from atom.benchmarks.frames import Piece, error_message, read_mii, read_openai, read_tgi, read_trt_llm


def openai(**choice: Any) -> Piece:
    return read_openai(json.dumps({"choices": [{"index": 0, **choice}]}).encode())


@pytest.mark.parametrize(
    ("choice", "text", "has_token"),
    [
        ({"text": "a"}, "a", True),
        ({"text": " "}, " ", True),
        ({"text": ""}, "", False),
        ({"text": None}, "", False),
        ({"text": "", "logprobs": {"tokens": ["<s>"], "token_logprobs": [-1]}}, "", True),
        ({"text": "", "logprobs": {"tokens": []}}, "", False),
        ({"delta": {"role": "assistant", "content": ""}}, "", False),
        ({"delta": {"role": "assistant"}}, "", False),
        ({"delta": {}}, "", False),
        ({"delta": {"role": "assistant", "content": "a"}}, "a", True),
        ({"delta": {"reasoning_content": "r"}}, "r", True),
        ({"delta": {"reasoning": "r"}}, "r", True),
        ({"delta": {"reasoning": "r", "reasoning_content": "r"}}, "r", True),
        ({"delta": {"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": ""}}]}}, "f", True),
        ({"delta": {"tool_calls": [{"index": 0, "function": {"arguments": '{"a'}}]}}, '{"a', True),
        ({"delta": {"content": ""}, "logprobs": {"content": [{"token": "x"}]}}, "", True),
        ({"message": {"content": "whole"}}, "whole", True),
    ],
)
def test_which_openai_frames_carry_a_token(choice: dict[str, Any], text: str, has_token: bool) -> None:
    piece = openai(**choice)
    assert (piece.text, piece.has_token, piece.is_last) == (text, has_token, False)


def test_finish_reason_and_usage_of_an_openai_frame() -> None:
    assert openai(text="", finish_reason="stop").is_last
    frame = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8}}
    assert read_openai(json.dumps(frame).encode()) == Piece(prompt_tokens=3, output_tokens=5)
    assert read_openai(b'{"choices": [{"text": "a"}], "usage": null}') == Piece("a", True)


@pytest.mark.parametrize(
    "frame",
    [
        {"error": {"message": "out of memory", "type": "x", "code": 500}},
        {"error": "out of memory"},
        {"object": "error", "message": "out of memory"},
        {"error": {"error": {"message": "out of memory"}}},
    ],
)
def test_an_error_frame_gives_the_servers_message(frame: dict[str, Any]) -> None:
    piece = read_openai(json.dumps(frame).encode())
    assert (piece.error, piece.has_token) == ("out of memory", False)


def test_frames_of_the_other_protocols() -> None:
    assert read_tgi(b'{"token": {"id": 1, "text": "", "special": true}, "generated_text": null}').has_token
    last = b'{"token": {"text": "b"}, "generated_text": "ab", "details": {"generated_tokens": 2, "input_length": 7}}'
    assert read_tgi(last) == Piece("b", True, True, 7, 2)
    assert read_tgi(b'{"error": "overloaded", "error_type": "overloaded"}').error == "overloaded"
    assert read_trt_llm(b'{"text_output": "a", "model_name": "ensemble"}') == Piece("a", True)
    assert read_trt_llm(b'{"text_output": ""}') == Piece()
    assert read_trt_llm(b'{"error": "no model"}').error == "no model"
    assert read_mii(b'{"text": ["a", "b"]}') == Piece("ab", True, True)
    assert read_mii(b'{"choices": [{"text": "ab", "finish_reason": "length"}]}') == Piece("ab", True, True)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"choices": 3}', b'{"choices": [{"text": 5}]}'])
def test_what_is_no_frame_is_an_error(data: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        read_openai(data)


def test_error_messages() -> None:
    assert error_message(None) == ""
    assert error_message({"detail": "x"}) == "x"
    assert error_message({"code": 3}) == "{'code': 3}"
