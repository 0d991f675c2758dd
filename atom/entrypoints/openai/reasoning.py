"""Telling a model's thoughts from its answer, as the text arrives.

Owns the reasoning channel of one answer. Only the dialect's markers vanish; every other byte goes to one side or the
other, and is held only while it could be the start of a marker. The channel ends at its own end marker and nowhere
else. Knows nothing of tool calls, tokens or prompts.
"""

from __future__ import annotations

from functools import lru_cache

from atom_spec.dialects import ReasoningDialect

from atom.entrypoints.openai.events import ContentDelta, Event, ReasoningDelta
from atom.text.automaton import ROOT, Automaton


class ReasoningChannel:
    """The channel of one answer; `is_open` says where the next character goes.

    A marker with nothing but whitespace before it that changes nothing is dropped: a start marker where the prompt has
    opened the channel already, and an end marker where nothing was opened (prompts with thinking off teach models to
    write one). Anywhere else such a marker is text.
    """

    def __init__(self, dialect: ReasoningDialect | None, begins_inside: bool = False) -> None:
        """`dialect`: None, or one that its format reads, passes everything on as content."""
        self._dialect = None if dialect is None or dialect.in_format else dialect
        self._at_beginning = True
        self._held = ""
        self.is_open = begins_inside and self._dialect is not None

    def feed(self, text: str) -> list[Event]:
        """The deltas that this text settles, in order; none is empty."""
        if self._dialect is None:
            return [ContentDelta(text)] if text else []
        events: list[Event] = []
        buffer = self._held + text if self._held else text
        position = 0
        while True:
            automaton = self._automaton(self._dialect)
            end, node, marker = automaton.scan(buffer, position, ROOT)
            settled = len(buffer) - automaton.depth[node] if marker is None else end - len(marker)
            if self._at_beginning and settled > position and not buffer[position:settled].isspace():
                self._at_beginning = False  # fewer markers count from here on, so fewer characters are held
                continue
            self._emit(events, buffer[position:settled])
            if marker is None:
                self._held = buffer[settled:]
                return events
            position = end
            self._at_beginning = False
            self.is_open = marker == self._dialect.start

    def finish(self) -> list[Event]:
        """The text has ended: what was held is part of the side it stands on."""
        events: list[Event] = []
        held, self._held = self._held, ""
        self._emit(events, held)
        return events

    def _automaton(self, dialect: ReasoningDialect) -> Automaton:
        if self._at_beginning:
            return _automaton_of(dialect.start, dialect.end)
        return _automaton_of(dialect.end if self.is_open else dialect.start)

    def _emit(self, events: list[Event], text: str) -> None:
        if text:
            events.append(ReasoningDelta(text) if self.is_open else ContentDelta(text))


@lru_cache(maxsize=64)
def _automaton_of(*markers: str) -> Automaton:
    return Automaton(markers)
