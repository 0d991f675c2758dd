"""/v1/chat/completions: a conversation, answered.

Owns the endpoint: from messages to a prompt, and from the pipeline's events to a message or to its chunks. A whole
answer is the fold of the steps that a stream sends.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atom.entrypoints.openai.chat_answer import FoldedAnswer, step_frames
from atom.entrypoints.openai.chat_prompt import ChatPrompt, build_prompt
from atom.entrypoints.openai.chat_request import chat_conversation
from atom.entrypoints.openai.endpoint import Handler
from atom.entrypoints.openai.frames import ChunkFrames
from atom.entrypoints.openai.generation import SequenceRun
from atom.entrypoints.openai.ids import new_chat_id
from atom.entrypoints.openai.limits import asked_max_tokens, room_for_answer, sampling_params, seed_of_sample
from atom.entrypoints.openai.logprobs import ChatLogprobs, TokenEntry, chat_entry
from atom.entrypoints.openai.metrics import RequestMetrics
from atom.entrypoints.openai.sse import DONE, FrameStream
from atom.entrypoints.openai.streaming_dispatch import merged_steps
from atom.entrypoints.openai.usage import usage_of
from atom.model_engine.messages import EngineRequest

if TYPE_CHECKING:
    from atom_spec.openai import ChatCompletionRequest

    from atom.entrypoints.openai.serving import ServingContext


class ChatAnswer:
    """One request's answer: its runs, and what all of its choices share."""

    def __init__(self, serving: ServingContext, request: ChatCompletionRequest, prompt: ChatPrompt) -> None:
        self.id = new_chat_id()
        self.created = int(time.time())
        self.started = time.monotonic()
        self.model = serving.answer_model(request.model)
        self.num_prompt_tokens = len(prompt.token_ids)
        self._serving = serving
        self._num_top = (request.top_logprobs or 0) if request.logprobs else None
        sampling = sampling_params(
            request,
            serving.sampling_defaults,
            max_tokens=room_for_answer(
                self.num_prompt_tokens, serving.max_model_len, asked_max_tokens(request), "messages"
            ),
            vocab_size=serving.vocab_size,
            logprobs=self._num_top,
        )
        self.runs = []
        for index in range(request.n or 1):
            own = msgspec.structs.replace(prompt.enforced(sampling), seed=seed_of_sample(sampling.seed, index))
            tracker = None
            if self._num_top is not None:
                tracker = ChatLogprobs(prompt.new_detokenizer(serving, own))
            engine_request = EngineRequest(f"{self.id}-{index}", prompt.token_ids, own, self.started)
            self.runs.append(SequenceRun(index, engine_request, prompt.new_pipeline(serving, own), tracker))

    def metrics(self) -> RequestMetrics:
        """A context for the generation."""
        return self._serving.metrics.request("/v1/chat/completions", self.runs, self.num_prompt_tokens, self.started)

    def usage(self) -> dict[str, Any]:
        """Usage so far."""
        return usage_of(self.runs, self.num_prompt_tokens, self.started)

    def logprobs(self, entries: Sequence[TokenEntry]) -> dict[str, Any] | None:
        """A choice's `logprobs` member for these tokens; None when none was asked for."""
        if self._num_top is None:
            return None
        return {"content": [chat_entry(self._serving.tokenizer, entry, self._num_top) for entry in entries]}


async def create_chat_completion(
    serving: ServingContext, call: Request, request: ChatCompletionRequest
) -> Response | FrameStream:
    """The handler."""
    serving.check_model(request.model)
    prompt = await build_prompt(serving, partial(chat_conversation, request), call.state.body_size)
    answer = ChatAnswer(serving, request, prompt)
    if request.stream:
        return FrameStream(_stream(serving, request, answer))
    return await _whole(serving, answer)


async def _whole(serving: ServingContext, answer: ChatAnswer) -> Response:
    folded = [FoldedAnswer() for _ in answer.runs]
    with answer.metrics() as observed:
        async with aclosing(merged_steps(answer.runs, serving.engine)) as steps:
            async for run, step in steps:
                observed.step(run)
                folded[run.index].add(step)
    body = {
        "id": answer.id,
        "object": "chat.completion",
        "created": answer.created,
        "model": answer.model,
        "choices": [_choice(answer, run, fold) for run, fold in zip(answer.runs, folded, strict=True)],
        "usage": answer.usage(),
    }
    return Response(msgspec.json.encode(body), media_type="application/json")


def _choice(answer: ChatAnswer, run: SequenceRun, fold: FoldedAnswer) -> dict[str, Any]:
    return {
        "index": run.index,
        "message": fold.message(),
        "finish_reason": run.finish_reason,
        "logprobs": answer.logprobs(fold.entries),
    }


async def _stream(
    serving: ServingContext, request: ChatCompletionRequest, answer: ChatAnswer
) -> AsyncGenerator[bytes, None]:
    options = request.stream_options
    with_usage = options is not None and options.include_usage is True
    is_continuous = options is not None and options.continuous_usage_stats is True
    frames = ChunkFrames(answer.id, "chat.completion.chunk", answer.created, answer.model, with_usage=with_usage)
    begun: set[int] = set()
    with answer.metrics() as observed:
        async with aclosing(merged_steps(answer.runs, serving.engine)) as steps:
            async for run, step in steps:
                observed.step(run)
                if is_continuous:
                    frames.set_running_usage(answer.usage())
                chunk = b""
                if run.index not in begun:
                    begun.add(run.index)
                    chunk = frames.chat(run.index, {"role": "assistant", "content": ""})
                chunk += step_frames(frames, run.index, step, answer.logprobs)
                if chunk:
                    yield chunk
    yield (frames.usage(answer.usage()) if with_usage else b"") + DONE


HANDLERS: dict[str, Handler] = {"createChatCompletion": create_chat_completion}
