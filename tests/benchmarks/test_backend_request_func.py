"""Each protocol's function against a scripted server of that protocol, and what makes a request a failure."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from atom.benchmarks.backend_request_func import (
    ASYNC_REQUEST_FUNCS,
    RequestFuncInput,
    RequestFuncOutput,
    StreamRecorder,
)
from atom.benchmarks.flags import BACKENDS
from atom.benchmarks.frames import Piece
from tests.benchmarks.conftest import Serve
from tests.benchmarks.sse_server import DONE, Script, SSEServer, at_once, delta, event, text, usage

OPENAI_FAMILY = ("vllm", "openai", "lmdeploy", "scalellm", "sglang")


def ask(server: SSEServer | str, backend: str, path: str, **fields: Any) -> RequestFuncOutput:
    url = (server if isinstance(server, str) else server.url) + path
    request = RequestFuncInput(prompt="one two", api_url=url, prompt_len=2, output_len=6, model="atom-tiny", **fields)
    return asyncio.run(ASYNC_REQUEST_FUNCS[backend](request))  # type: ignore[arg-type]  # a coroutine function by name


def test_there_is_a_function_for_each_backend_of_the_flags() -> None:
    assert set(ASYNC_REQUEST_FUNCS) == set(BACKENDS)


@pytest.mark.parametrize("backend", OPENAI_FAMILY)
def test_openai_completions(serve: Serve, backend: str) -> None:
    server = serve(at_once(text("a"), text("b"), text("", "length"), usage(6, 3), DONE))
    output = ask(server, backend, "/v1/completions", ignore_eos=True, logprobs=2, best_of=3, model_name="served")
    assert (output.success, output.error, output.generated_text) == (True, "", "ab")
    assert (output.output_tokens, output.prompt_tokens, output.prompt_len, len(output.itl)) == (6, 3, 2, 1)
    assert 0 < output.ttft <= output.latency
    assert server.log[0].path == "/v1/completions"
    assert server.log[0].body == {
        "model": "served",
        "prompt": "one two",
        "temperature": 0.0,
        "max_tokens": 6,
        "logprobs": 2,
        "best_of": 3,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_openai_chat(serve: Serve) -> None:
    frames = [delta(role="assistant", content=""), delta(reasoning_content="r"), delta(content="c"), delta("stop")]
    server = serve(at_once(*frames, usage(2), DONE))
    output = ask(server, "openai-chat", "/v1/chat/completions", logprobs=1, extra_body={"top_k": 5})
    assert (output.success, output.generated_text, output.output_tokens, len(output.itl)) == (True, "rc", 2, 1)
    assert server.log[0].body == {
        "model": "atom-tiny",
        "messages": [{"role": "user", "content": "one two"}],
        "temperature": 0.0,
        "max_completion_tokens": 6,
        "logprobs": True,
        "top_logprobs": 1,
        "stream": True,
        "stream_options": {"include_usage": True},
        "top_k": 5,
    }


def test_tgi(serve: Serve) -> None:
    details = {"finish_reason": "length", "generated_tokens": 3, "input_length": 2}
    frames = [
        {"token": {"id": 5, "text": "a", "special": False}, "generated_text": None, "details": None},
        {"token": {"id": 6, "text": "b", "special": False}, "generated_text": None},
        {"token": {"id": 2, "text": "", "special": True}, "generated_text": "ab", "details": details},
    ]
    server = serve(at_once(*(b"data:" + event(frame)[6:] for frame in frames)))
    output = ask(server, "tgi", "/generate_stream")
    assert (output.success, output.generated_text, output.output_tokens, len(output.itl)) == (True, "ab", 3, 2)
    assert output.prompt_tokens == 2
    parameters = {"max_new_tokens": 6, "do_sample": False, "details": True}
    assert server.log[0].body == {"inputs": "one two", "parameters": parameters}


def test_tensorrt_llm(serve: Serve) -> None:
    server = serve(at_once(event({"text_output": "a"}), event({"text_output": "b"}), event({"text_output": ""})))
    output = ask(server, "tensorrt-llm", "/v2/models/ensemble/generate_stream", ignore_eos=True)
    assert (output.success, output.generated_text, output.output_tokens, len(output.itl)) == (True, "ab", None, 1)
    assert server.log[0].body == {
        "text_input": "one two",
        "max_tokens": 6,
        "min_tokens": 6,
        "temperature": 0.0,
        "top_p": 1.0,
        "stream": True,
    }


@pytest.mark.parametrize(
    ("answer", "tokens"),
    [
        (b'{"choices": [{"text": "ab", "finish_reason": null}], "usage": {"completion_tokens": 4}}', 4),
        (b'{"text": ["ab"]}', None),
    ],
)
def test_deepspeed_mii_answers_whole(serve: Serve, answer: bytes, tokens: int | None) -> None:
    server = serve(at_once(answer))
    output = ask(server, "deepspeed-mii", "/v1/completions", ignore_eos=True)
    assert (output.success, output.generated_text, output.output_tokens) == (True, "ab", tokens)
    assert (output.streamed, output.itl, output.tpot) == (False, [], None)
    assert output.ttft == output.latency > 0
    assert server.log[0].body["min_tokens"] == server.log[0].body["max_tokens"] == 6
    assert "stream" not in server.log[0].body


def test_the_api_key_of_the_environment_and_no_compression(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    server = serve(at_once(text("a", "stop"), DONE))
    assert ask(server, "vllm", "/v1/completions").success
    assert server.log[0].headers["Authorization"] == "Bearer sk-1"
    assert server.log[0].headers["Accept-Encoding"] == "identity"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (at_once(DONE), "no token in the answer"),
        (at_once(), "no token in the answer"),
        (at_once(text("", "stop"), usage(0), DONE), "no token in the answer"),
        (at_once(text("a")), "the stream ended before the answer was complete"),
        (at_once(text("a"), event({"error": {"message": "out of memory"}})), "error frame: out of memory"),
        (at_once(text("a"), event("{broken"), DONE), "a frame can not be read: JSON is malformed"),
        (at_once(b'{"error": {"message": "too long"}}', status=400), "HTTP 400: too long"),
        (at_once(b"<html>", status=502), "HTTP 502: <html>"),
        (at_once(status=503), "HTTP 503: Service Unavailable"),
        (
            at_once(text("a"), cut=True),
            "BrokenAnswerError: the server closed the connection before the answer was complete",
        ),
    ],
)
def test_failures_are_named(serve: Serve, script: Script, reason: str) -> None:
    output = ask(serve(script), "vllm", "/v1/completions")
    assert not output.success
    assert output.error.startswith(reason)


def test_a_server_that_is_not_there_is_a_failure() -> None:
    output = ask("http://127.0.0.1:9", "vllm", "/v1/completions")  # the port of discard: nobody listens
    assert not output.success
    assert output.error.startswith("UnreachableError: 127.0.0.1:9 can not be reached")


@pytest.mark.parametrize("end", [DONE, usage(1), text("", "stop")])
def test_any_mark_of_the_end_completes_a_stream(serve: Serve, end: bytes) -> None:
    assert ask(serve(at_once(text("a"), end)), "vllm", "/v1/completions").success


def record(*pieces: tuple[float, Piece]) -> RequestFuncOutput:
    """A stream whose frames came in at these readings of the clock; it was sent at 100."""
    output = RequestFuncOutput(start_time=100.0)
    recorder = StreamRecorder(output)
    for now, piece in pieces:
        recorder.take(piece, now)
    recorder.close()
    return output


def test_times_by_definition() -> None:
    output = record(
        (100.5, Piece()),  # the role alone
        (101.0, Piece("a", True)),
        (101.25, Piece("b", True)),
        (101.5, Piece()),  # an empty frame
        (102.25, Piece("c", True)),
        (102.5, Piece(is_last=True)),
        (109.0, Piece(output_tokens=11)),  # the usage: too late to be part of a latency
    )
    assert (output.ttft, output.itl, output.latency) == (1.0, [0.25, 1.0], 2.5)
    assert output.tpot == pytest.approx(1.5 / 10)
    assert output.success


def test_the_first_gap_is_not_the_time_to_the_first_token() -> None:
    output = record(*((101.0 + i * 0.01, Piece("a", True, is_last=i == 4)) for i in range(5)))
    assert output.ttft == 1.0
    assert output.itl == pytest.approx([0.01] * 4)


def test_an_answer_that_only_shows_in_the_count_has_come_with_its_end() -> None:
    output = record((101.0, Piece(is_last=True)), (101.5, Piece(output_tokens=1)))
    assert (output.success, output.ttft, output.latency, output.itl, output.tpot) == (True, 1.0, 1.0, [], None)
