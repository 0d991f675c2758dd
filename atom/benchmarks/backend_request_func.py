"""One timed request, for each protocol that a serving benchmark meets.

Owns the request bodies and the clock readings: when a request went out, when each frame with a token came in.
Does not know load, statistics or files. Every function returns a RequestFuncOutput, also for a request that failed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Protocol

import msgspec

from atom.benchmarks.frames import Piece, read_mii, read_openai, read_tgi, read_trt_llm
from atom.benchmarks.http_client import Session, clock, describe
from atom.benchmarks.sse import EventSplitter


class ProgressBar(Protocol):
    """What is told about each request that ended."""

    def update(self, n: int) -> object:
        """`n` more requests ended."""


@dataclass(slots=True)
class RequestFuncInput:
    """One request. prompt_len: tokens of the prompt; output_len: tokens asked for.

    model_name: the name that the API knows the model by, where it is not `model`. extra_body: more fields of the body.
    """

    prompt: str
    api_url: str
    prompt_len: int
    output_len: int
    model: str
    model_name: str | None = None
    best_of: int = 1
    logprobs: int | None = None
    extra_body: dict[str, Any] | None = None
    ignore_eos: bool = False


@dataclass(slots=True)
class RequestFuncOutput:
    """What was measured. Times are seconds; start_time is a reading of `clock`, 0 for a request that was never sent.

    ttft: from sending to the first frame with a token. latency: from sending to the last frame that carried a token or
    ended the answer. itl: the gaps between frames with a token. output_tokens, prompt_tokens: the server's count, None
    where it gave none. streamed: False where the whole answer came at once, so that there is no time per token.
    """

    generated_text: str = ""
    success: bool = False
    latency: float = 0.0
    output_tokens: int | None = None
    ttft: float = 0.0
    itl: list[float] = field(default_factory=list)
    prompt_len: int = 0
    prompt_tokens: int | None = None
    error: str = ""
    start_time: float = 0.0
    streamed: bool = True

    @property
    def tpot(self) -> float | None:
        """Seconds per output token after the first; None where that is not defined."""
        if not self.success or not self.streamed or self.output_tokens is None or self.output_tokens < 2:
            return None
        return (self.latency - self.ttft) / (self.output_tokens - 1)


RequestFunc = Callable[..., Awaitable[RequestFuncOutput]]
"""(RequestFuncInput, ProgressBar | None = None, Session | None = None) -> RequestFuncOutput."""


class StreamRecorder:
    """Frames of one stream, as they come in, into one RequestFuncOutput."""

    def __init__(self, output: RequestFuncOutput) -> None:
        self._output = output
        self._texts: list[str] = []
        self._last_token = 0.0
        self._end = 0.0
        self.is_complete = False

    def begin(self, now: float) -> None:
        """The request goes out at `now`."""
        self._output.start_time = now

    def take(self, piece: Piece, now: float) -> None:
        """Record a frame that came in at `now`."""
        output = self._output
        if piece.has_token:
            if self._last_token:
                output.itl.append(now - self._last_token)
            else:
                output.ttft = now - output.start_time
            self._last_token = self._end = now
            self._texts.append(piece.text)
        if piece.is_last:
            self._end = now
            self.is_complete = True
        if piece.output_tokens is not None:
            output.output_tokens = piece.output_tokens
            self.is_complete = self.is_complete or not piece.has_token  # a frame for the usage alone is the last one
        if piece.prompt_tokens is not None:
            output.prompt_tokens = piece.prompt_tokens
        if piece.error and not output.error:
            output.error = f"error frame: {piece.error}"

    def close(self) -> None:
        """The stream ended: was that an answer?"""
        output = self._output
        output.generated_text = "".join(self._texts)
        output.latency = max(self._end - output.start_time, 0.0)
        if output.error:
            return
        if not self._last_token and self._end and output.output_tokens:
            output.ttft = output.latency  # tokens without text, such as an end-of-sequence token alone
        elif not self._last_token:
            output.error = "no token in the answer"
        elif not self.is_complete:
            output.error = "the stream ended before the answer was complete"
        output.success = not output.error


async def _send(
    request: RequestFuncInput,
    body: dict[str, Any],
    read: Callable[[bytes], Piece],
    pbar: ProgressBar | None,
    session: Session | None,
    *,
    streamed: bool = True,
    has_end_mark: bool = True,
) -> RequestFuncOutput:
    """Send one request and record its answer. has_end_mark: a stream that just ends was cut off."""
    if session is None:
        async with Session() as own_session:
            return await _send(request, body, read, pbar, own_session, streamed=streamed, has_end_mark=has_end_mark)
    output = RequestFuncOutput(prompt_len=request.prompt_len, streamed=streamed)
    recorder = StreamRecorder(output)
    recorder.is_complete = not has_end_mark
    data = msgspec.json.encode({**body, **(request.extra_body or {})})
    splitter = EventSplitter()

    def receive(chunk: bytes, now: float) -> None:
        _take_events(splitter.feed(chunk), read, recorder, now)

    try:
        answer = await session.request("POST", request.api_url, data, receive if streamed else None, recorder.begin)
        if answer.status != HTTPStatus.OK:
            output.error = answer.refusal
        elif streamed:
            _take_events(splitter.finish(), read, recorder, clock())
        else:
            recorder.take(read(answer.body), clock())
    except OSError as error:
        output.error = output.error or describe(error)
    except msgspec.MsgspecError as error:
        output.error = f"a frame can not be read: {error}"
    recorder.close()
    if pbar is not None:
        pbar.update(1)
    return output


def _take_events(events: list[bytes], read: Callable[[bytes], Piece], recorder: StreamRecorder, now: float) -> None:
    for data in events:
        if data == b"[DONE]":
            recorder.is_complete = True
        else:
            recorder.take(read(data), now)


async def async_request_openai_completions(
    request_func_input: RequestFuncInput, pbar: ProgressBar | None = None, session: Session | None = None
) -> RequestFuncOutput:
    """POST /v1/completions, as vLLM, SGLang, LMDeploy, ScaleLLM and OpenAI's own API have it."""
    request = request_func_input
    body: dict[str, Any] = {
        "model": request.model_name or request.model,
        "prompt": request.prompt,
        "temperature": 0.0,
        "max_tokens": request.output_len,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.logprobs is not None:
        body["logprobs"] = request.logprobs
    if request.best_of != 1:
        body["best_of"] = request.best_of
    if request.ignore_eos:
        body["ignore_eos"] = True
    return await _send(request, body, read_openai, pbar, session)


async def async_request_openai_chat_completions(
    request_func_input: RequestFuncInput, pbar: ProgressBar | None = None, session: Session | None = None
) -> RequestFuncOutput:
    """POST /v1/chat/completions with the prompt as the one user message."""
    request = request_func_input
    body: dict[str, Any] = {
        "model": request.model_name or request.model,
        "messages": [{"role": "user", "content": request.prompt}],
        "temperature": 0.0,
        "max_completion_tokens": request.output_len,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.logprobs is not None:
        body |= {"logprobs": True, "top_logprobs": request.logprobs}
    if request.ignore_eos:
        body["ignore_eos"] = True
    return await _send(request, body, read_openai, pbar, session)


async def async_request_tgi(
    request_func_input: RequestFuncInput, pbar: ProgressBar | None = None, session: Session | None = None
) -> RequestFuncOutput:
    """POST /generate_stream of text-generation-inference. Token counts are in the last frame's details."""
    request = request_func_input
    parameters = {"max_new_tokens": request.output_len, "do_sample": False, "details": True}
    body = {"inputs": request.prompt, "parameters": parameters}
    return await _send(request, body, read_tgi, pbar, session)


async def async_request_trt_llm(
    request_func_input: RequestFuncInput, pbar: ProgressBar | None = None, session: Session | None = None
) -> RequestFuncOutput:
    """POST .../generate_stream of Triton with a TensorRT-LLM ensemble. It counts no tokens and marks no end."""
    request = request_func_input
    body: dict[str, Any] = {
        "text_input": request.prompt,
        "max_tokens": request.output_len,
        "temperature": 0.0,
        "top_p": 1.0,
        "stream": True,
    }
    if request.ignore_eos:
        body["min_tokens"] = request.output_len
    return await _send(request, body, read_trt_llm, pbar, session, has_end_mark=False)


async def async_request_deepspeed_mii(
    request_func_input: RequestFuncInput, pbar: ProgressBar | None = None, session: Session | None = None
) -> RequestFuncOutput:
    """POST /v1/completions of DeepSpeed-MII, which answers whole: the time to its first token is its latency."""
    request = request_func_input
    body: dict[str, Any] = {
        "model": request.model_name or request.model,
        "prompt": request.prompt,
        "max_tokens": request.output_len,
        "temperature": 0.01,  # MII divides by it
        "top_p": 1.0,
    }
    if request.ignore_eos:
        body["min_tokens"] = request.output_len
    return await _send(request, body, read_mii, pbar, session, streamed=False, has_end_mark=False)


ASYNC_REQUEST_FUNCS: dict[str, RequestFunc] = {
    "tgi": async_request_tgi,
    "vllm": async_request_openai_completions,
    "lmdeploy": async_request_openai_completions,
    "deepspeed-mii": async_request_deepspeed_mii,
    "openai": async_request_openai_completions,
    "openai-chat": async_request_openai_chat_completions,
    "tensorrt-llm": async_request_trt_llm,
    "scalellm": async_request_openai_completions,
    "sglang": async_request_openai_completions,
}
