"""Tagged arguments with flat values: a value is the text between two tags.

Owns where a value ends and what it becomes. A value's own closer ends it only where something can follow that belongs
to the call; else it is data, so that nothing of a value is lost. Knows neither wrappers nor formats.
"""

from __future__ import annotations

from typing import Any

from atom.entrypoints.openai.tool_parser.calls import Fate
from atom.entrypoints.openai.tool_parser.patterns import Matched, Partial, behind_space
from atom.entrypoints.openai.tool_parser.region import Region
from atom.entrypoints.openai.tool_parser.schema import coerce
from atom.entrypoints.openai.tool_parser.tagged_call import TaggedCall, unescape


class FlatCall(TaggedCall):
    """A call whose values are texts."""

    def __init__(self, region: Region, number: int, holes: dict[str, str]) -> None:
        super().__init__(region, number, holes)
        self._arguments: dict[str, tuple[str, str | None, bool]] = {}
        self._parts: list[str] = []
        self._between: list[str] = []
        self._key = ""
        self._wire_type: str | None = None
        self._argument = 0
        self._scanner = self._tables.value_scanner(number, 0)

    def take_plain(self, text: str) -> bool:
        """Take `text` whole if it is plainly the middle of a value."""
        if self._state == self._value:
            if self._scanner.is_plain(text):
                self._parts.append(text)
                return True
            return False
        return super().take_plain(text)

    def _open_argument(self, found: Matched) -> int:
        self._argument = found.number
        self._key = unescape(found.holes["key"], self._tables.grammar.values.escapes)
        self._wire_type = _wire_type(found.holes)
        self._parts = []
        self._scanner = self._tables.value_scanner(self._number, found.number)
        self._state = self._value
        return found.end

    def _value(self, text: str, position: int, at_end: bool) -> int:
        """A value, up to its closer, the next argument, or the call's closer."""
        start = position
        while True:
            match = self._scanner.search(text, start)
            if match is None:
                end = self._scanner.hold_from(text, position)
                self._parts.append(text[position:end])
                return self._cut_value(text) if at_end else end
            at = match.start()
            closer = self._tables.argument_closers[self._argument].match(text, at, at_end)
            if isinstance(closer, Matched):
                self._parts.append(text[position:at])
                self._between = [text[at : closer.end]]
                self._state = self._behind_value
                return closer.end
            ends = self._closers.match(text, at, at_end)
            if isinstance(ends, Matched):
                self._parts.append(text[position:at])
                self._store(is_whole=True)
                self.was_cut = True
                return self._end_call(text, ends.end)
            following = self._tables.argument.match(text, at, at_end)
            if isinstance(following, Matched):
                self._parts.append(text[position:at])
                self._store(is_whole=True)
                return self._open_argument(following)
            if isinstance(closer, Partial) or isinstance(ends, Partial) or isinstance(following, Partial):
                self._parts.append(text[position:at])
                return self._cut_value(text) if at_end else at
            start = at + 1

    def _behind_value(self, text: str, position: int, at_end: bool) -> int:
        """Behind a value's closer: is it one?"""
        end = behind_space(text, position)
        self._between.append(text[position:end])
        if end == len(text):
            if not at_end:
                return end
            self._store(is_whole=True)
            return self._finish_cut(text, end)
        argument = self._tables.argument.match(text, end, at_end)
        if isinstance(argument, Matched):
            self._store(is_whole=True)
            return self._open_argument(argument)
        closer = self._ends_call(text, end, at_end)
        if isinstance(closer, Matched):
            self._store(is_whole=True)
            return self._end_call(text, closer.end if closer.number >= 0 else end)
        again = self._tables.all_argument_closers.match(text, end, at_end)
        if isinstance(again, Matched):  # a closer written twice
            self._between.append(text[end : again.end])
            return again.end
        call = self._tables.call.match(text, end, at_end)
        if isinstance(call, Matched):
            self._store(is_whole=True)
            return self._end_call(text, end)
        if any(isinstance(one, Partial) for one in (argument, closer, again, call)):
            if not at_end:
                return end
            self._store(is_whole=True)
            return self._finish_cut(text, len(text))
        self._parts += self._between
        self._state = self._value
        return end

    def _cut_value(self, text: str) -> int:
        """The text ends inside a value: as far as it has got, it is a string."""
        self._store(is_whole=False)
        return self._finish_cut(text, len(text))

    def _store(self, is_whole: bool) -> None:
        """The value is over; as far as it got, if it was cut."""
        self._state = self._follow
        if self._fate is not Fate.RELEASE:
            self._arguments[self._key] = ("".join(self._parts), self._wire_type, is_whole)

    def _keys(self) -> list[str]:
        return list(self._arguments)

    def _collected(self) -> dict[str, Any]:
        grammar, typing = self._tables.grammar, self._tables.grammar.values
        arguments: dict[str, Any] = {}
        for key, (value, wire_type, is_whole) in self._arguments.items():
            text = value.removeprefix("\n").removesuffix("\n") if grammar.trims_newline else value
            arguments[key] = (
                coerce(text, self._schema(key), wire_type, typing.default, typing.literals) if is_whole else text
            )
        return arguments


def _wire_type(holes: dict[str, str]) -> str | None:
    """The JSON type that the argument's tag names; `any`: whatever JSON it holds; None: it names none."""
    if "is_string" in holes:
        return "any" if holes["is_string"] == "false" else "string"
    return holes.get("type") or None
