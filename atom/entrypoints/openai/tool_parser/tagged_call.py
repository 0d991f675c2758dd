"""What every tagged call has in common, however its arguments are written: its head, its end, and a JSON object inside.

Owns when there is a call: once the head has shown a name and what must follow it, there is one, whatever comes. Also
names a call after its parameters, and takes envelopes off. What stands between two argument tags is the subclasses'
business (tagged, elements). Knows neither wrappers nor formats.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from atom.entrypoints.openai.tool_parser.calls import Fate
from atom.entrypoints.openai.tool_parser.json_scan import JsonScanner
from atom.entrypoints.openai.tool_parser.patterns import Matched, Partial, behind_space
from atom.entrypoints.openai.tool_parser.region import Region
from atom.entrypoints.openai.tool_parser.schema import Schema, declared, dumps


class TaggedCall(ABC):
    """One call. `number`: which spelling of its tag opened it; -1: none did, the parameters will name the tool."""

    def __init__(self, region: Region, number: int, holes: dict[str, str]) -> None:
        self.is_done = self.has_failed = self.was_cut = False
        self._region = region
        self._tables = region.tables
        self._number = number
        self._name = unescape(holes["name"], region.tables.grammar.values.escapes)
        self._index = holes.get("index")
        self._closers = self._tables.closers_of(number)
        self._is_self_closing = number >= 0 and not self._tables.grammar.calls[number].close
        self._fate: Fate | None = None
        self._block: JsonScanner | None = None
        self._state = self._follow

    def take_plain(self, text: str) -> bool:
        """Take `text` whole if it is plainly the middle of a value."""
        return self._block is not None and self._block.take_plain(text)

    def advance(self, text: str, position: int, at_end: bool) -> int:
        """Read from `position` on; the index up to which `text` has been read."""
        while not self.is_done and not self.has_failed:
            state, before = self._state, position
            position = state(text, position, at_end)
            if position == before and self._state == state:
                break
        return position

    # What a subclass says about its arguments.

    @abstractmethod
    def _open_argument(self, found: Matched) -> int:
        """An argument's tag has been read; the index behind it."""

    @abstractmethod
    def _collected(self) -> dict[str, Any]:
        """The arguments so far, typed; `_name` is known."""

    @abstractmethod
    def _keys(self) -> list[str]:
        """The names of the arguments so far."""

    def _follow(self, text: str, position: int, at_end: bool) -> int:
        """Behind the call's tag: what makes the name believed."""
        if self._is_self_closing:
            self._commit(text, position)
            return self._finish(position, is_complete=True)
        position = behind_space(text, position)
        if position == len(text):
            return self._finish_cut(text, position) if at_end else position
        if self._tables.has_direct_json and text[position] == "{":
            return self._open_block(position)
        block = self._tables.block.match(text, position, at_end)
        if isinstance(block, Matched):
            return self._open_block(block.end)
        closer = self._ends_call(text, position, at_end)
        argument = self._tables.argument.match(text, position, at_end)
        if isinstance(closer, Matched):
            self._commit(text, position)
            return self._finish(closer.end if closer.number >= 0 else position, is_complete=True)
        if isinstance(argument, Matched):
            if self._number >= 0:
                self._commit(text, position)
            return self._open_argument(argument)
        if isinstance(block, Partial) or isinstance(closer, Partial) or isinstance(argument, Partial):
            return self._finish_cut(text, len(text)) if at_end else position
        self.has_failed = True
        return position

    def _ends_call(self, text: str, position: int, at_end: bool) -> Matched | Partial | None:
        """The call's closer; number -1: the wrapper's, or another call, which end it and are no part of it."""
        found = self._closers.match(text, position, at_end)
        if found is None and self._region.is_wrapped:
            found = self._tables.wrapper_close.match(text, position, at_end)
            found = Matched(found.end, -1, found.holes) if isinstance(found, Matched) else found
        return found

    def _open_block(self, position: int) -> int:
        self._block = JsonScanner()
        self._state = self._in_block
        return position

    def _in_block(self, text: str, position: int, at_end: bool) -> int:
        """Arguments that are one JSON object, between the call's tags."""
        assert self._block is not None
        position = self._block.scan(text, position, at_end)
        if self._fate is None and self._block.is_open_inside:
            self._commit(text, position)
        if self._block.has_failed and self._fate is None:
            self.has_failed = True
        elif self._block.is_done or (self._block.has_failed and self._fate is not None):
            self._state = self._behind_block
        elif at_end:
            return self._finish_cut(text, len(text))
        return position

    def _behind_block(self, text: str, position: int, at_end: bool) -> int:
        """Up to the call's closer; what stands before it belongs to nothing."""
        scanner = self._tables.call_end_scanner
        match = scanner.search(text, position) if scanner else None
        if match is None:
            return (
                self._finish_cut(text, len(text))
                if at_end
                else (scanner.hold_from(text, position) if scanner else position)
            )
        closer = self._ends_call(text, match.start(), at_end)
        if isinstance(closer, Matched):
            return self._finish(closer.end if closer.number >= 0 else match.start(), is_complete=True)
        if isinstance(closer, Partial):
            return self._finish_cut(text, len(text)) if at_end else match.start()
        return match.start() + 1

    def _commit(self, text: str, position: int) -> None:
        self._fate = self._region.commit(self._name, self._index, text, position)

    def _end_call(self, text: str, position: int) -> int:
        """The closer has come; a call without a name of its own gets one now, or was none."""
        if self._fate is None and not self._infer(text, position):
            return position
        return self._finish(position, is_complete=True)

    def _finish_cut(self, text: str, position: int) -> int:
        """The text ends inside the call."""
        if self._fate is None and self._number < 0:
            if not self._infer(text, position):
                return position
        elif self._fate is None:
            output = self._region.output
            if not output.is_declared(self._name) and not output.drops_undeclared:
                self.has_failed = True
                return position
            self._commit(text, position)
        return self._finish(position, is_complete=False)

    def _finish(self, position: int, is_complete: bool) -> int:
        assert self._fate is not None
        self.is_done = True
        arguments = self._block_arguments(self._block) if self._block else self._tagged_arguments(is_complete)
        self._region.output.end(self._fate, self._name, arguments, is_complete)
        return position

    def _unwraps(self, key: str) -> bool:
        """Whether an only argument of this name is an envelope around the arguments."""
        tool = self._region.output.schemas.get(self._name)
        return key in self._tables.grammar.envelopes and not (tool is not None and declared(tool, key))

    def _tagged_arguments(self, is_complete: bool) -> str:
        """The arguments as JSON; an envelope's inside in its place, also where the text ends in it."""
        arguments = self._collected() if self._fate is Fate.DISPATCH else {}
        if len(arguments) == 1:
            [(key, value)] = arguments.items()
            if self._unwraps(key) and isinstance(value, dict):
                return dumps(value)
            if self._unwraps(key) and isinstance(value, str) and not is_complete:
                return _cut_object(value) or dumps(arguments)
        return dumps(arguments)

    def _block_arguments(self, block: JsonScanner) -> str:
        """The object as JSON; an envelope's inside in its place."""
        keys = list(block.starts)
        if len(keys) == 1 and self._unwraps(keys[0]):
            inside = block.value_of(keys[0])
            if inside is not None and inside.startswith("{"):
                return inside
        return block.closed() or "{}"

    def _infer(self, text: str, position: int) -> bool:
        """Name a call after its parameters: the one declared tool that has them all and needs no other."""
        output = self._region.output
        names = [name for name, schema in output.schemas.items() if _fits(schema, self._keys())]
        if len(names) != 1:
            output.may_infer = False  # so that a text full of them is read no more than twice
            self.has_failed = True
            return False
        self._name = names[0]
        self._commit(text, position)
        return True

    def _schema(self, key: str) -> Schema | None:
        tool = self._region.output.schemas.get(self._name)
        return tool.property(key) if tool is not None else None


def unescape(text: str, escapes: tuple[tuple[str, str], ...]) -> str:
    """An attribute's text as it was meant."""
    for written, meant in escapes:
        text = text.replace(written, meant)
    return text


def _cut_object(text: str) -> str | None:
    """A JSON object of which `text` is the beginning, closed; None when it is no beginning of one."""
    text = text.lstrip()
    if text and text[0] != "{":
        return None
    scanner = JsonScanner()
    scanner.scan(text, 0, at_end=True)
    return None if scanner.has_failed else scanner.closed() or "{}"


def _fits(schema: Schema, keys: list[str]) -> bool:
    node = schema.node if isinstance(schema.node, dict) else {}
    required = node.get("required")
    return (
        bool(keys)
        and all(declared(schema, key) for key in keys)
        and all(key in keys for key in (required if isinstance(required, list) else ()))
    )
