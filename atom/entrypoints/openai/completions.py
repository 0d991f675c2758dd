"""/v1/completions: one or several prompts, continued.

Owns the endpoint: prompts of every form, echo, logprobs, whole answers and streams. Choices of prompt i begin at i*n.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atom.entrypoints.openai.endpoint import Handler
from atom.entrypoints.openai.errors import bad_request
from atom.entrypoints.openai.events import ContentDelta
from atom.entrypoints.openai.frames import ChunkFrames
from atom.entrypoints.openai.generation import SequenceRun, Step
from atom.entrypoints.openai.ids import new_completion_id
from atom.entrypoints.openai.limits import (
    asked_max_tokens,
    check_num_sequences,
    check_token_ids,
    encode_prompt,
    room_for_answer,
    sampling_params,
    seed_of_sample,
)
from atom.entrypoints.openai.logprobs import CompletionLogprobs, TokenEntry, completion_arrays, prompt_entries
from atom.entrypoints.openai.metrics import RequestMetrics
from atom.entrypoints.openai.pipeline import AnswerPipeline
from atom.entrypoints.openai.sse import DONE, FrameStream
from atom.entrypoints.openai.streaming_dispatch import merged_steps
from atom.entrypoints.openai.usage import usage_of
from atom.model_engine.messages import EngineRequest
from atom.text.detokenizer import Detokenizer

if TYPE_CHECKING:
    from atom_spec.openai import CompletionRequest

    from atom.entrypoints.openai.serving import ServingContext


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt as ids, and as the text that `echo` gives back (empty where it was given as ids, without echo)."""

    token_ids: list[int]
    text: str


class CompletionAnswer:
    """One request's answer: its runs, and the shape of its choices."""

    def __init__(self, serving: ServingContext, request: CompletionRequest, prompts: Sequence[Prompt]) -> None:
        self.id = new_completion_id()
        self.created = int(time.time())
        self.started = time.monotonic()
        self.model = serving.answer_model(request.model)
        self.echo = bool(request.echo)
        self.num_top = request.logprobs
        self.num_prompt_tokens = sum(len(prompt.token_ids) for prompt in prompts)
        self._serving = serving
        self._prompts = prompts
        self._skip_special_tokens = request.skip_special_tokens is not False
        self._num_samples = request.n or 1
        self.runs = [
            self._run(request, index, sample) for index in range(len(prompts)) for sample in range(self._num_samples)
        ]

    def metrics(self) -> RequestMetrics:
        """A context for the generation."""
        return self._serving.metrics.request("/v1/completions", self.runs, self.num_prompt_tokens, self.started)

    def usage(self) -> dict[str, Any]:
        """Usage so far."""
        return usage_of(self.runs, self.num_prompt_tokens, self.started)

    def beginning(self, run: SequenceRun) -> tuple[str, list[TokenEntry]]:
        """What an echoing choice starts with; empty without echo. The run must have had its first step."""
        if not self.echo:
            return "", []
        prompt = self._prompts[run.prompt_index]
        if self.num_top is None:
            return prompt.text, []
        # The prompt's first choice is the one that scores it; the others begin later.
        scored = self.runs[run.prompt_index * self._num_samples]
        known = scored.prompt_logprobs or [None] * len(prompt.token_ids)
        return prompt.text, prompt_entries(self._serving.tokenizer, prompt.token_ids, known, self._skip_special_tokens)

    def logprobs(self, entries: Sequence[TokenEntry]) -> dict[str, Any] | None:
        """The choice's `logprobs` member for these tokens; None when none was asked for."""
        if self.num_top is None:
            return None
        return completion_arrays(self._serving.tokenizer, entries, self.num_top)

    def _run(self, request: CompletionRequest, prompt_index: int, sample: int) -> SequenceRun:
        serving, prompt = self._serving, self._prompts[prompt_index]
        index = prompt_index * self._num_samples + sample
        num_tokens = len(prompt.token_ids)
        max_tokens = room_for_answer(num_tokens, serving.max_model_len, asked_max_tokens(request), "prompt")
        sampling = sampling_params(
            request,
            serving.sampling_defaults,
            max_tokens=max_tokens,
            vocab_size=serving.vocab_size,
            logprobs=self.num_top,
            prompt_logprobs=self.num_top if self.echo and not sample else None,
        )
        sampling = msgspec.structs.replace(sampling, seed=seed_of_sample(sampling.seed, sample))
        pipeline = AnswerPipeline.for_completion(
            serving.tokenizer,
            stop_strings=sampling.stop_list,
            include_stop=sampling.include_stop_str_in_output,
            skip_special_tokens=sampling.skip_special_tokens,
            min_tokens=sampling.min_tokens,
        )
        offset = len(prompt.text) if self.echo else 0
        tracker = None
        if self.num_top is not None:
            detokenizer = Detokenizer(serving.tokenizer, sampling.skip_special_tokens, continues_text=True)
            tracker = CompletionLogprobs(detokenizer, offset)
        engine_request = EngineRequest(f"{self.id}-{index}", prompt.token_ids, sampling, self.started)
        return SequenceRun(index, engine_request, pipeline, tracker, prompt_index)


async def create_completion(
    serving: ServingContext, call: Request, request: CompletionRequest
) -> Response | FrameStream:
    """The handler."""
    serving.check_model(request.model)
    size = call.state.body_size
    prompts = await serving.in_background(size, encode_prompts, serving, request.prompt, bool(request.echo))
    check_num_sequences(len(prompts), request.n or 1)
    answer = CompletionAnswer(serving, request, prompts)
    if request.stream:
        return FrameStream(_stream(serving, request, answer))
    return await _whole(serving, answer)


def encode_prompts(serving: ServingContext, given: Any, echo: bool) -> list[Prompt]:
    """The prompts of a request, in order. Raises ApiError 400 for an empty list or ids outside the vocabulary."""
    if isinstance(given, str):
        return [_from_text(serving, given)]
    if not given:
        raise bad_request("prompt must not be empty", "prompt")
    if isinstance(given[0], int):
        return [_from_ids(serving, given, echo)]
    if isinstance(given[0], str):
        return [_from_text(serving, text) for text in given]
    return [_from_ids(serving, ids, echo) for ids in given]


def _from_text(serving: ServingContext, text: str) -> Prompt:
    ids = encode_prompt(serving.tokenizer.encode, text, serving.max_model_len, "prompt")
    if not ids:  # there must be something to continue: what the tokenizer puts before a text, or what ends one
        begin = serving.tokenizer.bos_token_id
        ids = [serving.empty_prompt_id if begin is None else begin]
    return Prompt(ids, text)


def _from_ids(serving: ServingContext, ids: list[int], echo: bool) -> Prompt:
    if not ids:
        raise bad_request("prompt: a list of token ids must not be empty", "prompt")
    check_token_ids(ids, serving.vocab_size, "prompt")
    return Prompt(ids, serving.tokenizer.decode(ids) if echo else "")


async def _whole(serving: ServingContext, answer: CompletionAnswer) -> Response:
    texts: list[list[str]] = [[] for _ in answer.runs]
    entries: list[list[TokenEntry]] = [[] for _ in answer.runs]
    with answer.metrics() as observed:
        async with aclosing(merged_steps(answer.runs, serving.engine)) as steps:
            async for run, step in steps:
                observed.step(run)
                texts[run.index].append(_text_of(step))
                entries[run.index] += step.entries
    choices = []
    for run in answer.runs:
        beginning, prompt = answer.beginning(run)
        choices.append(
            {
                "index": run.index,
                "text": beginning + "".join(texts[run.index]),
                "finish_reason": run.finish_reason,
                "logprobs": answer.logprobs(prompt + entries[run.index]),
            }
        )
    body = {
        "id": answer.id,
        "object": "text_completion",
        "created": answer.created,
        "model": answer.model,
        "choices": choices,
        "usage": answer.usage(),
    }
    return Response(msgspec.json.encode(body), media_type="application/json")


async def _stream(
    serving: ServingContext, request: CompletionRequest, answer: CompletionAnswer
) -> AsyncGenerator[bytes, None]:
    options = request.stream_options
    with_usage = options is not None and options.include_usage is True
    is_continuous = options is not None and options.continuous_usage_stats is True
    frames = ChunkFrames(answer.id, "text_completion", answer.created, answer.model, with_usage=with_usage)
    begun: set[int] = set()
    with answer.metrics() as observed:
        async with aclosing(merged_steps(answer.runs, serving.engine)) as steps:
            async for run, step in steps:
                observed.step(run)
                if is_continuous:
                    frames.set_running_usage(answer.usage())
                text, entries = _text_of(step), step.entries
                if run.index not in begun:
                    begun.add(run.index)
                    beginning, prompt = answer.beginning(run)
                    text, entries = beginning + text, prompt + entries
                if text or entries or step.finish_reason is not None:
                    yield frames.text(run.index, text, step.finish_reason, answer.logprobs(entries))
    yield (frames.usage(answer.usage()) if with_usage else b"") + DONE


def _text_of(step: Step) -> str:
    if len(step.events) == 1 and isinstance(only := step.events[0], ContentDelta):
        return only.text
    return "".join(event.text for event in step.events if isinstance(event, ContentDelta))


HANDLERS: dict[str, Handler] = {"createCompletion": create_completion}
