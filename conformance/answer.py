"""A whole answer, and the fold that makes one from the reader's events.

Owns the order in which events may come (a breach is a `ProtocolError`) and the finish reason by decision D1.
Knows nothing of formats, chunks or expectations.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from atom.entrypoints.openai.events import (
    ContentDelta,
    Event,
    ReasoningDelta,
    ToolCallArguments,
    ToolCallEnd,
    ToolCallStart,
)


class ProtocolError(AssertionError):
    """The events of one answer came in an order that no client could follow."""


@dataclass(frozen=True, slots=True)
class Call:
    """One dispatched call; `arguments` is the JSON text exactly as it went out."""

    name: str
    arguments: str
    id: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a client holds at the end of an answer. Call ids are random and take no part in equality."""

    content: str
    reasoning: str
    calls: tuple[Call, ...]
    finish_reason: str


@dataclass(slots=True)
class _OpenCall:
    start: ToolCallStart
    arguments: list[str] = field(default_factory=list)
    is_closed: bool = False


class AnswerFold:
    """Folds events, one at a time, into an `Answer`."""

    def __init__(self) -> None:
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._calls: list[_OpenCall] = []

    def add(self, event: Event) -> None:
        """Take the next event; raises `ProtocolError` when it can't follow the earlier ones."""
        match event:
            case ContentDelta(text):
                self._content.append(_said(text, event))
            case ReasoningDelta(text):
                self._reasoning.append(_said(text, event))
            case ToolCallStart():
                self._start(event)
            case ToolCallArguments(index, text):
                self._open_call(index, event).arguments.append(_said(text, event))
            case ToolCallEnd(index):
                self._open_call(index, event).is_closed = True

    def result(self, engine_finish: str) -> Answer:
        """The answer so far; `engine_finish` is why the engine stopped ("stop" or "length")."""
        for call in self._calls:
            if not call.is_closed:
                raise ProtocolError(f"call {call.start.index} ({call.start.name}) never ended")
        calls = tuple(Call(c.start.name, "".join(c.arguments), c.start.id) for c in self._calls)
        return Answer(
            "".join(self._content), "".join(self._reasoning), calls, finish_reason(engine_finish, has_calls=bool(calls))
        )

    def _start(self, event: ToolCallStart) -> None:
        if self._calls and not self._calls[-1].is_closed:
            raise ProtocolError(f"{event} while call {self._calls[-1].start.index} is open")
        if event.index != len(self._calls):
            raise ProtocolError(f"{event}: expected index {len(self._calls)}")
        if any(call.start.id == event.id for call in self._calls):
            raise ProtocolError(f"{event}: the id was used before")
        self._calls.append(_OpenCall(event))

    def _open_call(self, index: int, event: Event) -> _OpenCall:
        if not self._calls or index != len(self._calls) - 1 or self._calls[index].is_closed:
            raise ProtocolError(f"{event}: call {index} is not open")
        return self._calls[index]


def _said(text: str, event: Event) -> str:
    if not text:
        raise ProtocolError(f"{event}: a delta that says nothing")
    return text


def finish_reason(engine_finish: str, *, has_calls: bool) -> str:
    """Decision D1: the token limit is never hidden, else calls give `tool_calls`."""
    if engine_finish == "length":
        return "length"
    return "tool_calls" if has_calls else engine_finish


def fold(events: Iterable[Event], engine_finish: str = "stop") -> Answer:
    """The answer that a client has after all of `events`."""
    folding = AnswerFold()
    for event in events:
        folding.add(event)
    return folding.result(engine_finish)
