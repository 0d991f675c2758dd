"""/v1/messages and /v1/messages/count_tokens: a conversation, answered in Anthropic's shape.

Owns the endpoints: from turns to a prompt, and from the pipeline's events to a message or to its stream.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Literal

import msgspec
from atom_spec import anthropic as spec
from starlette.requests import Request
from starlette.responses import Response

from atom.entrypoints.openai.anthropic_conversion import anthropic_conversation
from atom.entrypoints.openai.chat_prompt import ChatPrompt, build_prompt
from atom.entrypoints.openai.endpoint import Handler
from atom.entrypoints.openai.generation import SequenceRun, Step
from atom.entrypoints.openai.ids import new_message_id
from atom.entrypoints.openai.limits import asked_max_tokens, room_for_answer, sampling_params
from atom.entrypoints.openai.messages_stream import (
    PING,
    BlockEvent,
    BlockStream,
    StreamEvent,
    Thoughts,
    event_frame,
    fold,
)
from atom.entrypoints.openai.metrics import RequestMetrics
from atom.entrypoints.openai.sse import FrameStream, anthropic_error
from atom.model_engine.messages import EngineRequest

if TYPE_CHECKING:
    from atom.entrypoints.openai.serving import ServingContext

StopReason = Literal["end_turn", "max_tokens", "stop_sequence", "tool_use"]


class MessageAnswer:
    """One request's answer: its run, and its blocks."""

    def __init__(self, serving: ServingContext, request: spec.MessagesRequest, prompt: ChatPrompt) -> None:
        self.id = new_message_id()
        self.blocks = BlockStream(_thoughts(request.thinking))
        self._model = serving.answer_model(request.model)
        self._started = time.monotonic()
        self._serving = serving
        self._num_prompt_tokens = len(prompt.token_ids)
        room = room_for_answer(self._num_prompt_tokens, serving.max_model_len, asked_max_tokens(request), "messages")
        sampling = sampling_params(request, serving.sampling_defaults, max_tokens=room, vocab_size=serving.vocab_size)
        sampling = prompt.enforced(sampling)
        engine_request = EngineRequest(self.id, prompt.token_ids, sampling, self._started)
        self.run = SequenceRun(0, engine_request, prompt.new_pipeline(serving, sampling))

    def metrics(self) -> RequestMetrics:
        """A context for the generation."""
        return self._serving.metrics.request("/v1/messages", [self.run], self._num_prompt_tokens, self._started)

    def step(self, step: Step) -> list[BlockEvent]:
        """What a step makes of the blocks; the last one closes them."""
        events = self.blocks.feed(step.events)
        return events if step.finish_reason is None else events + self.blocks.finish()

    def message(self) -> spec.Message:
        """The message as it begins: without content."""
        return spec.Message(
            id=self.id, model=self._model, content=[], stop_reason=None, stop_sequence=None, usage=self.usage()
        )

    def usage(self) -> spec.AnthropicUsage:
        """Usage so far."""
        num_cached = min(self.run.num_cached_tokens, self._num_prompt_tokens)
        return spec.AnthropicUsage(
            input_tokens=self._num_prompt_tokens - num_cached,
            cache_creation_input_tokens=0,
            cache_read_input_tokens=num_cached,
            output_tokens=self.run.num_tokens,
            output_tokens_details=spec.OutputTokensDetails(thinking_tokens=self.run.pipeline.num_reasoning_tokens),
        )

    def stop(self) -> spec.StopDelta:
        """Why the answer ended. A cut by the token limit is never hidden, and a call is there to be run."""
        pipeline = self.run.pipeline
        reason: StopReason = "end_turn"
        if self.run.finish_reason == "length":
            reason = "max_tokens"
        elif self.run.finish_reason == "tool_calls":
            reason = "tool_use"
        elif pipeline.stop_string is not None:
            reason = "stop_sequence"
        matched = pipeline.stop_string if reason == "stop_sequence" else None
        return spec.StopDelta(stop_reason=reason, stop_sequence=matched)


async def create_message(
    serving: ServingContext, call: Request, request: spec.MessagesRequest
) -> Response | FrameStream:
    """The handler of /v1/messages."""
    serving.check_model(request.model)
    prompt = await build_prompt(serving, partial(anthropic_conversation, request), call.state.body_size)
    answer = MessageAnswer(serving, request, prompt)
    if request.stream:
        return FrameStream(_stream(serving, answer), PING, anthropic_error)
    return await _whole(serving, answer)


async def count_tokens(serving: ServingContext, call: Request, request: spec.CountTokensRequest) -> Response:
    """The handler of /v1/messages/count_tokens."""
    serving.check_model(request.model)
    convert = partial(anthropic_conversation, request)
    prompt = await build_prompt(serving, convert, call.state.body_size, may_exceed=True)
    return _json(spec.TokenCount(input_tokens=len(prompt.token_ids)))


async def _whole(serving: ServingContext, answer: MessageAnswer) -> Response:
    events: list[BlockEvent] = []
    with answer.metrics() as observed:
        async with aclosing(answer.run.steps(serving.engine)) as steps:
            async for step in steps:
                observed.step(answer.run)
                events += answer.step(step)
    message, stop = answer.message(), answer.stop()
    message.content = fold(events)
    message.stop_reason, message.stop_sequence = stop.stop_reason, stop.stop_sequence
    return _json(message)


async def _stream(serving: ServingContext, answer: MessageAnswer) -> AsyncGenerator[bytes, None]:
    is_begun = False
    with answer.metrics() as observed:
        async with aclosing(answer.run.steps(serving.engine)) as steps:
            async for step in steps:
                observed.step(answer.run)
                events: list[StreamEvent] = [] if is_begun else [spec.MessageStart(message=answer.message())]
                is_begun = True
                events += answer.step(step)
                if events:
                    yield b"".join([event_frame(event) for event in events])
    yield event_frame(spec.MessageDelta(delta=answer.stop(), usage=answer.usage())) + event_frame(spec.MessageStop())


def _thoughts(config: spec.ThinkingConfig | None) -> Thoughts:
    """What is sent of thinking: nothing when it was turned off, also where the model does it all the same."""
    if config is None:
        return "shown"
    if config.type == "disabled":
        return "withheld"
    return "omitted" if config.display == "omitted" else "shown"


def _json(answer: msgspec.Struct) -> Response:
    return Response(msgspec.json.encode(answer), media_type="application/json")


HANDLERS: dict[str, Handler] = {"createMessage": create_message, "countTokens": count_tokens}
