"""The one chain of text stages between an engine's token ids and what an endpoint sends.

Owns the order: detokenizer, reasoning, tool calls, stop strings. A whole answer is this pipeline fed once; there is no
second reader. Stop strings look at the answer's text only, never at reasoning, channel framing or a call's arguments: a
call is never cut in half. Knows neither HTTP nor the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import groupby

from atom_spec.dialects import ReasoningDialect
from atom_spec.formats import FormatSpec

from atom.entrypoints.openai.call_watch import CallWatch
from atom.entrypoints.openai.events import ContentDelta, Event, ReasoningDelta, ToolCallStart
from atom.entrypoints.openai.reasoning import ReasoningChannel
from atom.entrypoints.openai.tool_parser.stream import Tool, ToolCallReader, new_call_id
from atom.text.detokenizer import Detokenizer
from atom.text.stop_strings import StopStrings
from atom.tokenizer import Tokenizer


class TextStages:
    """The stages behind the detokenizer, for one answer.

    stop_string: the one that ended the answer, None until then; everything after it is dropped. may_stop: whether a
    stop string that is complete from now on ends the answer; before, it is text. is_plain: all text is content, at
    once, whatever it says.
    """

    def __init__(
        self,
        *,
        dialect: ReasoningDialect | None = None,
        begins_inside: bool = False,
        stop_strings: Sequence[str] = (),
        include_stop: bool = False,
        spec: FormatSpec | None = None,
        tools: Sequence[Tool] = (),
        suppress_calls: bool = False,
        parallel: bool = True,
        num_earlier_calls: int = 0,
        id_factory: Callable[[], str] | None = None,
        ends_at_call: bool = False,
    ) -> None:
        """`spec` to `id_factory`: see ToolCallReader. ends_at_call: a declared call ends an open reasoning channel."""
        self._reader = _reader(spec, tools, suppress_calls, parallel, num_earlier_calls, id_factory)
        self._reasoning = ReasoningChannel(
            dialect,
            begins_inside,
            is_in_call=lambda: self._reader.is_in_region,
            on_open=self._begin_thought,
            new_watch=(lambda: CallWatch(ToolCallReader(_watching_spec(spec), tools)))
            if ends_at_call and spec and tools
            else None,
        )
        self._stops = StopStrings(stop_strings, include_stop)
        self._has_stops = bool(stop_strings)
        self.is_plain = dialect is None and spec is None and not self._has_stops
        self.may_stop = True
        self._events: list[Event] = []  # where the stages put what this feed settles
        self.num_tool_calls = 0

    @property
    def is_reasoning(self) -> bool:
        """Whether the next character belongs to the reasoning channel."""
        return self._reasoning.is_open

    @property
    def stop_string(self) -> str | None:
        """The stop string that has matched."""
        return self._stops.matched

    @property
    def num_undeclared(self) -> int:
        """Complete calls that named no declared tool."""
        return self._reader.num_undeclared

    def feed(self, text: str) -> list[Event]:
        """The events that this text settles."""
        events: list[Event] = []
        self._events = events
        if text and self._stops.matched is None:
            self._reasoning.feed_into(text, self._part)
        return events

    def finish(self) -> list[Event]:
        """The text has ended: everything that was held."""
        events: list[Event] = []
        self._events = events
        self._reasoning.finish_into(self._part)
        self._answer(self._reader.finish())
        self._release_stops()
        return events

    def _part(self, text: str, is_thought: bool) -> None:
        if not is_thought:
            self._answer(self._reader.feed(text))
        elif self._stops.matched is None:
            self._events.append(ReasoningDelta(text))

    def _begin_thought(self) -> None:
        """Text before a thought does not touch the text behind it: neither a marker nor a stop string spans the two."""
        self._answer(self._reader.release_held())
        self._release_stops()

    def _answer(self, read: list[Event]) -> None:
        if not self._has_stops:
            self._events += read
            for event in read:
                self.num_tool_calls += isinstance(event, ToolCallStart)
            return
        for event in read:
            if self._stops.matched is not None:
                return
            if isinstance(event, ContentDelta):
                self._content(self._stops.feed(event.text, may_match=self.may_stop))
                continue
            self._release_stops()
            self.num_tool_calls += isinstance(event, ToolCallStart)
            self._events.append(event)

    def _release_stops(self) -> None:
        """Text before a call or a thought is not adjacent to the text behind it."""
        if self._has_stops:
            self._content(self._stops.finish())

    def _content(self, text: str) -> None:
        if text:
            self._events.append(ContentDelta(text))


class AnswerPipeline:
    """One answer, from token ids to events.

    num_reasoning_tokens: tokens that arrived while the reasoning channel was open. num_tokens: all tokens read, up to
    the one that completed a stop string.
    """

    def __init__(self, detokenizer: Detokenizer, stages: TextStages, min_tokens: int = 0) -> None:
        """`min_tokens`: no stop string ends the answer before so many."""
        self._detokenizer = detokenizer
        self._stages = stages
        self._min_tokens = min_tokens
        self.num_reasoning_tokens = 0
        self.num_tokens = 0

    @classmethod
    def for_completion(
        cls,
        tokenizer: Tokenizer,
        *,
        stop_strings: Sequence[str] = (),
        include_stop: bool = False,
        skip_special_tokens: bool = True,
        min_tokens: int = 0,
    ) -> AnswerPipeline:
        """A text completion: neither reasoning nor calls; the first word keeps its space, it continues the prompt."""
        detokenizer = Detokenizer(tokenizer, skip_special_tokens, continues_text=True)
        return cls(detokenizer, TextStages(stop_strings=stop_strings, include_stop=include_stop), min_tokens)

    @property
    def stop_string(self) -> str | None:
        """The stop string that has matched; the caller ends the engine request then."""
        return self._stages.stop_string

    @property
    def num_tool_calls(self) -> int:
        """Calls dispatched so far."""
        return self._stages.num_tool_calls

    @property
    def has_tool_calls(self) -> bool:
        """Whether a declared tool has been called."""
        return self._stages.num_tool_calls > 0

    @property
    def num_undeclared(self) -> int:
        """Complete calls that named no declared tool."""
        return self._stages.num_undeclared

    def feed(self, token_ids: Sequence[int]) -> list[Event]:
        """The events that these tokens settle; the same ones, however the tokens are dealt out over calls."""
        stages, decode = self._stages, self._detokenizer.feed
        if stages.is_plain:
            self.num_tokens += len(token_ids)
            text = decode(token_ids)
            return [ContentDelta(text)] if text else []
        events: list[Event] = []
        for token_id in token_ids:
            if stages.stop_string is not None:
                break
            self.num_tokens += 1
            if self._min_tokens:
                stages.may_stop = self.num_tokens >= self._min_tokens
            was_open = stages.is_reasoning
            text = decode((token_id,))
            new = stages.feed(text) if text else []
            if was_open or (new and isinstance(new[0], ReasoningDelta)):
                self.num_reasoning_tokens += 1
            events += new
        return events if len(events) < 2 else joined(events)

    def finish(self) -> list[Event]:
        """The answer has ended: everything that was held. Nothing after a stop string."""
        if self._stages.stop_string is not None:
            return []
        return joined(self._stages.feed(self._detokenizer.finish()) + self._stages.finish())


def _reader(
    spec: FormatSpec | None,
    tools: Sequence[Tool],
    suppress_calls: bool,
    parallel: bool,
    num_earlier_calls: int,
    id_factory: Callable[[], str] | None,
) -> ToolCallReader:
    return ToolCallReader(
        spec,
        tools,
        suppress_calls=suppress_calls,
        parallel=parallel,
        num_earlier_calls=num_earlier_calls,
        id_factory=id_factory or new_call_id,
    )


@lru_cache(maxsize=16)
def _watching_spec(spec: FormatSpec) -> FormatSpec:
    """The format as a CallWatch reads it: it drops no framing, so that all text before a call comes back verbatim."""
    openers = tuple(marker for marker in spec.markers if marker not in spec.framing)
    return replace(spec, framing=(), markers=openers, undeclared="release")


def joined(events: list[Event]) -> list[Event]:
    """Neighbouring deltas of one kind as one: a feed of many tokens is one delta a side."""
    if len(events) < 2:
        return events
    result: list[Event] = []
    for kind, group in groupby(events, key=type):
        if kind is ContentDelta or kind is ReasoningDelta:
            result.append(kind("".join([event.text for event in group if isinstance(event, _DELTAS)])))
        else:
            result.extend(group)
    return result


_DELTAS = (ContentDelta, ReasoningDelta)
