"""A region: from an opener to where its last call closes, or to where it turns out to be no region.

Owns the wrapper, the white space in it, the way from call to call, and the fate of the undecided text. What stands
inside a call is a body's business (tagged, json_calls). Nothing that was read is read again, except behind an opener
that opened nothing. Knows no format.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Protocol

from atom.entrypoints.openai.tool_parser.calls import CallOutput, Fate
from atom.entrypoints.openai.tool_parser.patterns import Matched, Partial, behind_space
from atom.entrypoints.openai.tool_parser.tables import GrammarTables

_MAX_REPEATS = 4


class Outcome(Enum):
    """How a region ended. REJECTED: it holds no call. LEFT: what follows its last call is no part of it."""

    OPEN = "open"
    CLOSED = "closed"
    REJECTED = "rejected"
    LEFT = "left"


class Body(Protocol):
    """What reads the inside of one call.

    is_done: the call has ended. has_failed: it was none; only before the region has been told of it (`commit`).
    was_cut: its last value was ended by the call's closer, not by its own.
    """

    is_done: bool
    has_failed: bool
    was_cut: bool

    def advance(self, text: str, position: int, at_end: bool) -> int:
        """Read from `position` on; the index up to which `text` has been read."""
        ...

    def take_plain(self, text: str) -> bool:
        """Take `text` whole if it is plainly the middle of a value."""
        ...


class Region:
    """One region being read. `mark`: where in the current text the undecided part begins, kept up by the reader."""

    def __init__(self, tables: GrammarTables, output: CallOutput, new_body: BodyFactory, opener: str) -> None:
        self.tables = tables
        self.output = output
        self.outcome = Outcome.OPEN
        self.fate: Fate | None = None
        self.mark = 0
        self.is_wrapped = False
        self.was_cut = False
        self.num_calls = 0
        self.body: Body | None = None
        self._new_body = new_body
        self._raw: list[str] = []
        self._num_repeats = 0
        self._space = 0
        self._last: Fate | None = None
        self._state = self._opening if opener else self._before_call

    @property
    def is_undecided_since_before(self) -> bool:
        """Whether undecided text has come in with earlier pieces."""
        return bool(self._raw)

    def take_plain(self, text: str) -> bool:
        """Take `text` whole if it is plainly the middle of a value that is no text of the answer."""
        if self.body is None or self.fate is None or self.fate is Fate.RELEASE:
            return False
        return self.body.take_plain(text)

    @property
    def _may_repeat(self) -> bool:
        """Whether another opener of a wrapper is let pass; a few are, so that a row of them costs no more than that."""
        return self.is_wrapped and not self.num_calls and self._num_repeats < _MAX_REPEATS

    @property
    def has_dropped(self) -> bool:
        """Whether the last call was no text: closers that it left over are none either."""
        return self._last in (Fate.DISPATCH, Fate.DROP)

    def undecided(self, text: str) -> str:
        """The undecided part of earlier pieces, and the current text from the mark on."""
        return "".join(self._raw) + text[self.mark :]

    def advance(self, text: str, position: int, at_end: bool) -> int:
        """Read from `position` on; the index up to which `text` has been read."""
        while self.outcome is Outcome.OPEN:
            state, before = self._state, position
            position = state(text, position, at_end)
            if position == before and self._state == state and self.outcome is Outcome.OPEN:
                break
        return position

    def suspend(self, text: str, position: int) -> None:
        """The piece is over: settle or keep what has been read of it."""
        if self.fate is None:
            self._raw.append(text[self.mark : position])
        else:
            self.settle(text, position)
        self.mark = 0

    def settle(self, text: str, position: int) -> None:
        """Everything read so far has the current fate."""
        if self.fate is Fate.RELEASE:
            for raw in self._raw:
                self.output.content(raw)
            self.output.content(text[self.mark : position])
        self._raw.clear()
        self.mark = position

    def commit(self, name: str, wire_index: str | None, text: str, position: int) -> Fate:
        """The body is sure of a call of this name."""
        self.fate = self.output.begin(name, wire_index)
        self.settle(text, position)
        return self.fate

    def reopen(self, position: int) -> None:
        """A left-over closer has been read behind this region: go on as behind its last call."""
        self.outcome = Outcome.OPEN
        self.mark = position
        self._raw.clear()
        self._space = 0
        self._state = self._after_call

    def _opening(self, text: str, position: int, at_end: bool) -> int:
        found = self.tables.wrapper.match(text, position, at_end)
        if isinstance(found, Partial) and not at_end:
            return position
        self._state = self._before_call
        if isinstance(found, Matched):
            self.is_wrapped = bool(self.tables.grammar.wrappers[found.number].close)
            return found.end
        if not self.tables.grammar.is_bare:
            self._give_up()
        return position

    def _before_call(self, text: str, position: int, at_end: bool) -> int:
        """White space, then a call; another wrapper's opener is as good as white space."""
        position = behind_space(text, position)
        if position < len(text):
            body = self._new_body(self, text, position, at_end)
            if not isinstance(body, Partial) and body is not None:
                self.body, position = body
                self._state = self._in_call
                return position
            wrapper = self.tables.wrapper.match(text, position, at_end) if body is None and self._may_repeat else None
            if isinstance(wrapper, Matched):
                self._num_repeats += 1
                return wrapper.end
            if body is None and not isinstance(wrapper, Partial):
                return self._no_call(text, position, at_end)
        if at_end:
            self._give_up()
        return position

    def _no_call(self, text: str, position: int, at_end: bool) -> int:
        """Where a call should begin there is none: an empty wrapper, or no region."""
        found = self.tables.wrapper_close.match(text, position, at_end) if self.is_wrapped else None
        if isinstance(found, Partial) and not at_end:
            return position
        is_dropped = isinstance(found, Matched) and self.output.drops_undeclared and not self.num_calls
        if isinstance(found, Matched) and is_dropped:
            self.fate = Fate.DROP
            self.settle(text, found.end)
            self.outcome = Outcome.CLOSED
            return found.end
        self._give_up()
        return position

    def _give_up(self) -> None:
        self.outcome = Outcome.LEFT if self.num_calls else Outcome.REJECTED

    def _in_call(self, text: str, position: int, at_end: bool) -> int:
        assert self.body is not None
        position = self.body.advance(text, position, at_end)
        if self.body.has_failed:
            self._give_up()
        elif self.body.is_done:
            self.num_calls += 1
            self.was_cut = self.body.was_cut
            self.settle(text, position)
            self._enter_after_call()
        return position

    def _enter_after_call(self) -> None:
        """Until the next thing is known, the text behind a call is undecided again; `_last` was the call's fate."""
        self.body = None
        self._last = self.fate
        self.fate = None
        self._space = 0
        self._state = self._after_call

    def _after_call(self, text: str, position: int, at_end: bool) -> int:
        """White space and closers; then another call, or the end of the region."""
        end = behind_space(text, position)
        self._space += end - position
        if end < len(text):
            return self._next_after_call(text, end, at_end)
        if at_end:
            self._close(text, end) if self.is_wrapped else self._leave()
        elif not self.is_wrapped and self._space > self.tables.max_space:
            self._leave()
        return end

    def _next_after_call(self, text: str, position: int, at_end: bool) -> int:
        """The first thing behind the white space."""
        if not self.is_wrapped and self._space > self.tables.max_space:
            return self._leave_at(position)
        for closers, closes_wrapper in ((self.tables.wrapper_close, True), (self.tables.orphans, False)):
            if not closes_wrapper and not self.was_cut:
                continue
            found = closers.match(text, position, at_end)
            if isinstance(found, Matched):
                self.fate = self._last
                self.settle(text, found.end)
                if closes_wrapper:
                    self.outcome = Outcome.CLOSED
                else:
                    self.was_cut = not self.tables.is_call_closer(found.number)
                    self._enter_after_call()
                return found.end
            if isinstance(found, Partial):
                if not at_end:
                    return position
                if self.is_wrapped:
                    self._close(text, len(text))
                    return len(text)
        separator = self.tables.grammar.separator
        if separator and text.startswith(separator, position):
            self._state = self._before_call
            return position + len(separator)
        if self.is_wrapped and not separator:
            self._state = self._before_call
            return position
        return self._leave_at(position)

    def _leave_at(self, position: int) -> int:
        self._leave()
        return position

    def _leave(self) -> None:
        self.outcome = Outcome.LEFT

    def _close(self, text: str, position: int) -> None:
        """The text ends inside the wrapper."""
        self.fate = self._last
        self.settle(text, position)
        self.outcome = Outcome.CLOSED


BodyFactory = Callable[[Region, str, int, bool], "tuple[Body, int] | Partial | None"]
