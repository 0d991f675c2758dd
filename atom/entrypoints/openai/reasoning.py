"""Telling a model's thoughts from its answer, as the text arrives.

Owns the reasoning channel of one answer. Only the dialect's markers vanish; every other byte goes to one side or the
other, and is held only while it could be the start of a marker. The channel ends at its own end marker, or, where the
user wants it, at a declared call (`CallWatch`). Knows nothing of tokens, prompts or formats.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from atom_spec.dialects import ReasoningDialect

from atom.entrypoints.openai.call_watch import CallWatch
from atom.entrypoints.openai.events import ContentDelta, Event, ReasoningDelta
from atom.text.automaton import ROOT, Automaton

Emit = Callable[[str, bool], None]  # text, and whether it is reasoning; never empty
WATCHED_PIECE = 4096  # characters; bounds what is read again when a watched channel ends by its own marker


class ReasoningChannel:
    """The channel of one answer; `is_open` says where the next character goes.

    A marker with nothing but whitespace before it that changes nothing is dropped: a start marker where the prompt has
    opened the channel already, and an end marker where nothing was opened (prompts with thinking off teach models to
    write one). Anywhere else such a marker is text. Inside a tool call every marker is the call's data.
    """

    def __init__(
        self,
        dialect: ReasoningDialect | None,
        begins_inside: bool = False,
        *,
        is_in_call: Callable[[], bool] = lambda: False,
        on_open: Callable[[], None] = lambda: None,
        new_watch: Callable[[], CallWatch] | None = None,
    ) -> None:
        """`dialect`: None, or one that its format reads, passes everything on as content.

        is_in_call: whether the content emitted so far ends inside a tool call. on_open: called where the channel opens,
        behind the content before it. new_watch: makes what lets a declared
        call end the channel; None leaves that to the end marker alone.
        """
        self._dialect = None if dialect is None or dialect.in_format else dialect
        self._is_in_call = is_in_call
        self._on_open = on_open
        self._new_watch = new_watch
        self._watch: CallWatch | None = None
        self._at_beginning = True
        self._owes_end = False  # a call has ended the channel: the model's own end marker may still come
        self._held = ""
        self.is_open = begins_inside and self._dialect is not None

    def feed(self, text: str) -> list[Event]:
        """The deltas that this text settles, in order; none is empty."""
        events: list[Event] = []
        self.feed_into(text, lambda part, is_thought: events.append(_delta(part, is_thought)))
        return events

    def finish(self) -> list[Event]:
        """The text has ended: what was held is part of the side it stands on."""
        events: list[Event] = []
        self.finish_into(lambda part, is_thought: events.append(_delta(part, is_thought)))
        return events

    def feed_into(self, text: str, emit: Emit) -> None:
        """`feed`, with each part handed on before the text behind it is looked at."""
        if self._is_plain(text):
            if text:
                emit(text, self.is_open)
        elif self._dialect is None:
            return
        elif self._new_watch is None:
            self._read(self._dialect, text, emit)
        else:
            for start in range(0, len(text), WATCHED_PIECE):
                self._feed_watched(self._dialect, text[start : start + WATCHED_PIECE], emit)

    def finish_into(self, emit: Emit) -> None:
        """`finish`, in the manner of `feed_into`."""
        while self._dialect is not None and self._watch is not None:
            released, call = self._watch.finish()
            rest = self._after_watch(self._dialect, released, call, emit)
            self._watch = None
            self._feed_watched(self._dialect, rest, emit)
        self._release(self._held, emit)
        self._held = ""

    def _is_plain(self, text: str) -> bool:
        """Whether the text holds nothing that could begin a marker; the test that most text passes."""
        dialect = self._dialect
        if dialect is None:
            return True
        if self._held or self._at_beginning or self._owes_end or self._new_watch is not None:
            return False
        return (dialect.end if self.is_open else dialect.start)[0] not in text

    def _read(self, dialect: ReasoningDialect, text: str, emit: Emit, stops: bool = False) -> str:
        """Read text up to its end, or, with `stops`, to where the channel opens or ends; returns what is behind it."""
        buffer = self._held + text if self._held else text
        position = 0
        while True:
            automaton = self._automaton(dialect)
            end, node, marker = automaton.scan(buffer, position, ROOT)
            settled = len(buffer) - automaton.depth[node] if marker is None else end - len(marker)
            if self._at_beginning and settled > position and not buffer[position:settled].isspace():
                self._at_beginning = False  # fewer markers count from here on, so fewer characters are held
                continue
            self._release(buffer[position:settled], emit)
            self._held = buffer[settled:] if marker is None else ""
            if marker is None:
                return ""
            position = end
            if not self.is_open and self._is_in_call():
                self._release(marker, emit)
                continue
            self._owes_end = False
            if self.is_open == (marker == dialect.start):
                continue
            self.is_open = not self.is_open
            self._at_beginning = False
            if self.is_open:
                self._on_open()
            if stops:
                return buffer[position:]

    def _feed_watched(self, dialect: ReasoningDialect, text: str, emit: Emit) -> None:
        while text:
            if not self.is_open:
                text = self._read(dialect, text, emit, stops=True)
                continue
            if self._watch is None and self._new_watch is not None:
                self._watch = self._new_watch()
            if self._watch is None:
                return
            released, call = self._watch.feed(text)
            text = self._after_watch(dialect, released, call, emit)

    def _after_watch(self, dialect: ReasoningDialect, released: str, call: str | None, emit: Emit) -> str:
        """Deal with what the watch has let go; returns the text behind the channel when that has ended."""
        watch = self._watch
        rest = self._read(dialect, released, emit, stops=True)
        if not self.is_open and watch is not None:
            self._watch = None
            return rest + (watch.pending if call is None else call)
        if call is None:
            return rest
        self._release(self._held, emit)
        self._held, self._watch = "", None
        self.is_open, self._owes_end = False, True
        return call

    def _automaton(self, dialect: ReasoningDialect) -> Automaton:
        if self._at_beginning or (self._owes_end and not self.is_open):
            return _automaton_of(dialect.start, dialect.end)
        return _automaton_of(dialect.end if self.is_open else dialect.start)

    def _release(self, text: str, emit: Emit) -> None:
        if text:
            emit(text, self.is_open)


def _delta(text: str, is_thought: bool) -> Event:
    return ReasoningDelta(text) if is_thought else ContentDelta(text)


@lru_cache(maxsize=64)
def _automaton_of(*markers: str) -> Automaton:
    return Automaton(markers)
