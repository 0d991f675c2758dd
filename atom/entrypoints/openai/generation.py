"""One choice of an answer: an engine request, run through its text pipeline.

Owns the life of a sequence as the API sees it: tokens in, events out, why it ended, its counts and times, and that
leaving the iteration early aborts the engine's side. Endpoints fold or stream the steps. Knows no JSON.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Literal

from atom.entrypoints.openai.errors import bad_request, cut_short, engine_dead, generation_failed
from atom.entrypoints.openai.events import ContentDelta, Event
from atom.entrypoints.openai.logprobs import ChatLogprobs, LogprobTracker, TokenEntry
from atom.entrypoints.openai.pipeline import AnswerPipeline
from atom.model_engine.engine_client import EngineClient
from atom.model_engine.messages import EngineRequest, TokenDelta, TokenLogprobs
from atom.model_engine.token_stream import EngineDeadError

FinishReason = Literal["stop", "length", "tool_calls"]


@dataclass(slots=True)
class Step:
    """What one delta of the engine brought. `finish_reason` is set on a choice's last step, and only there."""

    events: list[Event]
    entries: list[TokenEntry]
    finish_reason: FinishReason | None = None


class SequenceRun:
    """A choice while it is generated. `index`: its place among the answer's choices; `prompt_index`: its prompt's.

    Times are seconds of time.monotonic(); None until the first token.
    """

    def __init__(
        self,
        index: int,
        request: EngineRequest,
        pipeline: AnswerPipeline,
        tracker: LogprobTracker | None = None,
        prompt_index: int = 0,
    ) -> None:
        self.index = index
        self.prompt_index = prompt_index
        self.request = request
        self.pipeline = pipeline
        self.tracker = tracker
        self.num_tokens = 0
        self.num_cached_tokens = 0
        self.finish_reason: FinishReason | None = None
        self.prompt_logprobs: list[TokenLogprobs | None] | None = None
        self.queue_time: float | None = None
        self.first_token_time: float | None = None
        self.last_token_time: float | None = None

    async def steps(self, engine: EngineClient) -> AsyncGenerator[Step, None]:
        """Generate. Raises ApiError when the engine gives up; closing the iterator aborts the sequence."""
        try:
            async with aclosing(engine.generate(self.request)) as deltas:
                async for delta in deltas:
                    step = self._apply(delta)
                    yield step
                    if step.finish_reason is not None:
                        return
        except EngineDeadError as error:
            raise engine_dead() from error
        raise generation_failed("The engine ended this sequence without saying why.")

    def _apply(self, delta: TokenDelta) -> Step:
        if delta.finish_reason == "error" or delta.error is not None:
            message = delta.error or "The engine could not go on with this sequence."
            raise bad_request(message) if self.num_tokens == 0 else generation_failed(message)
        if delta.finish_reason == "abort":
            raise cut_short()
        events: list[Event]
        entries: list[TokenEntry] = []
        if self.tracker is None:
            events = self.pipeline.feed(delta.token_ids)
        else:
            events, entries = self._feed_with_logprobs(self.tracker, delta)
        self._count(delta)
        if self.pipeline.stop_string is None and delta.finish_reason is None:
            return Step(events, entries)
        rest = self.pipeline.finish()
        if self.tracker is not None:
            self.tracker.end()
            entries += self._release(self.tracker, rest)
            entries += self.tracker.finish(_stop_entry(delta))
        self.finish_reason = self._reason(delta)
        return Step(events + rest, entries, self.finish_reason)

    def _count(self, delta: TokenDelta) -> None:
        is_stopped = delta.stop_token is not None and self.pipeline.stop_string is None
        num_tokens = self.pipeline.num_tokens + is_stopped
        if num_tokens > self.num_tokens:
            self.num_tokens = num_tokens
            self.last_token_time = time.monotonic()
            if self.first_token_time is None:
                self.first_token_time = self.last_token_time
        if delta.num_cached_tokens:
            self.num_cached_tokens = delta.num_cached_tokens
        if delta.queue_time is not None:
            self.queue_time = delta.queue_time
        if delta.prompt_logprobs is not None:
            self.prompt_logprobs = delta.prompt_logprobs

    def _reason(self, delta: TokenDelta) -> FinishReason:
        """Why the choice ended. A cut by the token limit is never hidden, also where calls came before it."""
        if self.pipeline.stop_string is None and delta.finish_reason == "length":
            return "length"
        return "tool_calls" if self.pipeline.num_tool_calls else "stop"

    def _feed_with_logprobs(self, tracker: LogprobTracker, delta: TokenDelta) -> tuple[list[Event], list[TokenEntry]]:
        """Feed token by token, so that each entry meets the text it belongs to."""
        events: list[Event] = []
        entries: list[TokenEntry] = []
        for token_id, logprobs in zip(delta.token_ids, delta.logprobs or (), strict=False):
            if self.pipeline.stop_string is not None:
                break
            tracker.add(token_id, logprobs)
            new = self.pipeline.feed([token_id])
            entries += self._release(tracker, new)
            events += new
        return events, entries

    @staticmethod
    def _release(tracker: LogprobTracker, events: Sequence[Event]) -> list[TokenEntry]:
        entries: list[TokenEntry] = []
        for event in events:
            if isinstance(event, ContentDelta):
                entries += tracker.release(event.text)
            elif isinstance(tracker, ChatLogprobs):
                tracker.drop()
        return entries


def _stop_entry(delta: TokenDelta) -> TokenLogprobs | None:
    """The entry of the token that ended the sequence, which has no place in `token_ids`."""
    entries = delta.logprobs or []
    return entries[-1] if delta.stop_token is not None and len(entries) > len(delta.token_ids) else None
