"""/v1/responses: a conversation, answered as items; stateless, nothing is kept.

Owns the endpoint, and the response object that goes out at a stream's beginning and end, or alone.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Literal

import msgspec
from atom_spec import responses as spec
from starlette.requests import Request
from starlette.responses import Response

from atom.entrypoints.openai.chat_prompt import ChatPrompt, build_prompt
from atom.entrypoints.openai.endpoint import Handler
from atom.entrypoints.openai.errors import ApiError
from atom.entrypoints.openai.generation import SequenceRun, Step
from atom.entrypoints.openai.ids import new_response_id
from atom.entrypoints.openai.limits import asked_max_tokens, room_for_answer, sampling_params
from atom.entrypoints.openai.logprobs import ChatLogprobs, TokenEntry, chat_entry
from atom.entrypoints.openai.metrics import RequestMetrics
from atom.entrypoints.openai.request_rules import OUTPUT_LOGPROBS
from atom.entrypoints.openai.responses_conversion import function_tools, responses_conversation
from atom.entrypoints.openai.responses_stream import ItemStream
from atom.entrypoints.openai.sse import KEEP_ALIVE, FrameStream
from atom.model_engine.messages import EngineRequest

if TYPE_CHECKING:
    from atom.entrypoints.openai.serving import ServingContext

Status = Literal["in_progress", "completed", "incomplete", "failed"]


class ResponseAnswer:
    """One request's answer: its run, its items, and the object around them."""

    def __init__(self, serving: ServingContext, request: spec.ResponsesRequest, prompt: ChatPrompt) -> None:
        self.id = new_response_id()
        self.items = ItemStream()
        self._created_at = int(time.time())
        self._model = serving.answer_model(request.model)
        self._started = time.monotonic()
        self._serving = serving
        self._request = request
        self._num_prompt_tokens = len(prompt.token_ids)
        self._num_top = (request.top_logprobs or 0) if OUTPUT_LOGPROBS in (request.include or ()) else None
        asked = asked_max_tokens(request, default=serving.max_model_len)
        room = room_for_answer(self._num_prompt_tokens, serving.max_model_len, asked, "input")
        sampling = sampling_params(
            request,
            serving.sampling_defaults,
            max_tokens=room,
            vocab_size=serving.vocab_size,
            logprobs=self._num_top,
        )
        self._sampling = prompt.enforced(sampling)
        engine_request = EngineRequest(self.id, prompt.token_ids, self._sampling, self._started)
        tracker = None if self._num_top is None else ChatLogprobs(prompt.new_detokenizer(serving, self._sampling))
        self.run = SequenceRun(0, engine_request, prompt.new_pipeline(serving, self._sampling), tracker)

    def metrics(self) -> RequestMetrics:
        """A context for the generation."""
        return self._serving.metrics.request("/v1/responses", [self.run], self._num_prompt_tokens, self._started)

    def step(self, step: Step) -> list[bytes]:
        """What a step makes of the items; the last one closes them."""
        is_cut = step.finish_reason == "length"
        frames = self.items.feed(step.events, self._logprobs(step.entries), is_cut=is_cut)
        return frames if step.finish_reason is None else frames + self.items.finish(is_cut=is_cut)

    def beginning(self) -> list[bytes]:
        """The frames that a stream begins with."""
        response = self._response("in_progress")
        return [
            self.items.lifecycle(spec.ResponseCreated, response),
            self.items.lifecycle(spec.ResponseInProgress, response),
        ]

    def end(self) -> bytes:
        """The frame that a stream ends with."""
        response = self.response()
        return self.items.lifecycle(
            spec.ResponseIncomplete if response.status == "incomplete" else spec.ResponseCompleted, response
        )

    def failed(self, error: ApiError, request_id: str) -> bytes:
        """The frame that a stream which failed ends with."""
        response = self._response("failed")
        response.error = spec.ResponseError(message=error.message)
        response.output = self.items.output
        return self.items.lifecycle(spec.ResponseFailed, response)

    def response(self) -> spec.Response:
        """The response when all has been said."""
        is_cut = self.run.finish_reason == "length"
        response = self._response("incomplete" if is_cut else "completed")
        response.incomplete_details = spec.IncompleteDetails() if is_cut else None
        response.output = self.items.output
        response.usage = self._usage()
        return response

    def _response(self, status: Status) -> spec.Response:
        request = self._request
        return spec.Response(
            id=self.id,
            created_at=self._created_at,
            status=status,
            error=None,
            incomplete_details=None,
            model=self._model,
            output=[],
            usage=None,
            instructions=request.instructions,
            max_output_tokens=request.max_output_tokens,
            metadata=request.metadata or {},
            parallel_tool_calls=request.parallel_tool_calls is not False,
            previous_response_id=None,
            reasoning=request.reasoning or spec.ReasoningOptions(),
            store=False,
            temperature=self._sampling.temperature,
            text=request.text or spec.TextOptions(format=spec.PlainText()),
            tool_choice=request.tool_choice or "auto",
            tools=function_tools(request),
            top_p=self._sampling.top_p,
        )

    def _logprobs(self, entries: Sequence[TokenEntry]) -> list[spec.ResponsesTokenLogprob]:
        shown = [chat_entry(self._serving.tokenizer, entry, self._num_top or 0) for entry in entries]
        return msgspec.convert(shown, list[spec.ResponsesTokenLogprob])

    def _usage(self) -> spec.ResponsesUsage:
        run = self.run
        num_cached = min(run.num_cached_tokens, self._num_prompt_tokens)
        return spec.ResponsesUsage(
            input_tokens=self._num_prompt_tokens,
            input_tokens_details=spec.InputTokensDetails(cached_tokens=num_cached, cache_write_tokens=0),
            output_tokens=run.num_tokens,
            output_tokens_details=spec.ReasoningTokensDetails(reasoning_tokens=run.pipeline.num_reasoning_tokens),
            total_tokens=self._num_prompt_tokens + run.num_tokens,
        )


async def create_response(
    serving: ServingContext, call: Request, request: spec.ResponsesRequest
) -> Response | FrameStream:
    """The handler."""
    serving.check_model(request.model)
    needs = serving.chat_model().profile.needs
    convert = partial(responses_conversation, request, needs.any_arguments)
    prompt = await build_prompt(serving, convert, call.state.body_size)
    answer = ResponseAnswer(serving, request, prompt)
    if request.stream:
        return FrameStream(_stream(serving, answer), KEEP_ALIVE, answer.failed)
    with answer.metrics() as observed:
        async with aclosing(answer.run.steps(serving.engine)) as steps:
            async for step in steps:
                observed.step(answer.run)
                answer.step(step)
    return Response(msgspec.json.encode(answer.response()), media_type="application/json")


async def _stream(serving: ServingContext, answer: ResponseAnswer) -> AsyncGenerator[bytes, None]:
    is_begun = False
    with answer.metrics() as observed:
        async with aclosing(answer.run.steps(serving.engine)) as steps:
            async for step in steps:
                observed.step(answer.run)
                frames = [] if is_begun else answer.beginning()
                is_begun = True
                frames += answer.step(step)
                if frames:
                    yield b"".join(frames)
    yield answer.end()


HANDLERS: dict[str, Handler] = {"createResponse": create_response}
