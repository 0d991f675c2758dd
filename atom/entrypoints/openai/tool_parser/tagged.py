"""The inside of a tagged call: an argument is a value between two tags.

Owns where a value ends and what it becomes. A value's own closer ends it only where something can follow that belongs
to the call; else it is data, so that nothing of a value is lost. Once the head has shown a name and what must follow
it, there is a call, whatever comes. Knows neither wrappers nor formats.
"""

from __future__ import annotations

from typing import Any

from atom.entrypoints.openai.tool_parser.calls import Fate
from atom.entrypoints.openai.tool_parser.json_calls import JsonBlock
from atom.entrypoints.openai.tool_parser.patterns import PARTIAL, Matched, Partial
from atom.entrypoints.openai.tool_parser.region import SPACE, Region
from atom.entrypoints.openai.tool_parser.schema import Schema, coerce, declared, dumps


def open_tagged(region: Region, text: str, position: int, at_end: bool) -> tuple[TaggedBody, int] | Partial | None:
    """The body of the call that begins at `position`; None: none does."""
    tables = region.tables
    found = tables.call.match(text, position)
    if isinstance(found, Partial):
        return None if at_end else PARTIAL
    if found is not None:
        return TaggedBody(region, found.number, found.holes), found.end
    if not (tables.grammar.infers_name and region.output.may_infer and region.is_wrapped):
        return None
    nameless = tables.argument.match(text, position)
    if isinstance(nameless, Partial):
        return None if at_end else PARTIAL
    return None if nameless is None else (TaggedBody(region, -1, {"name": ""}), position)


class TaggedBody:
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
        self._arguments: dict[str, Any] = {}
        self._parts: list[str] = []
        self._between: list[str] = []
        self._key = ""
        self._holes: dict[str, str] = {}
        self._block: JsonBlock | None = None
        self._scanner = self._tables.value_scanner(number, 0)
        self._argument = 0
        self._state = self._follow

    def take_plain(self, text: str) -> bool:
        """Take `text` whole if it is plainly the middle of a value."""
        if self._state == self._value:
            if self._scanner.is_plain(text):
                self._parts.append(text)
                return True
            return False
        return self._block is not None and self._block.take_plain(text)

    def advance(self, text: str, position: int, at_end: bool) -> int:
        """Read from `position` on; the index up to which `text` has been read."""
        while not self.is_done and not self.has_failed:
            state, before = self._state, position
            position = state(text, position, at_end)
            if position == before and self._state == state:
                break
        return position

    def _follow(self, text: str, position: int, at_end: bool) -> int:
        """Behind the call's tag: what makes the name believed."""
        if self._is_self_closing:
            self._commit(text, position)
            return self._finish(position, is_complete=True)
        position = SPACE.match(text, position).end()  # type: ignore[union-attr]  # it matches anything
        if position == len(text):
            return self._finish_cut(text, position) if at_end else position
        if self._tables.has_direct_json and text[position] == "{":
            return self._open_block(position, -1)
        block = self._tables.block.match(text, position)
        if isinstance(block, Matched):
            return self._open_block(block.end, block.number)
        closer = self._ends_call(text, position)
        argument = self._tables.argument.match(text, position)
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

    def _ends_call(self, text: str, position: int) -> Matched | Partial | None:
        """The call's closer; number -1: the wrapper's, or another call, which end it and are no part of it."""
        found = self._closers.match(text, position)
        if found is None and self._region.is_wrapped:
            found = self._tables.wrapper_close.match(text, position)
            found = Matched(found.end, -1, found.holes) if isinstance(found, Matched) else found
        return found

    def _open_argument(self, found: Matched) -> int:
        escapes = self._tables.grammar.values.escapes
        self._argument = found.number
        self._key = unescape(found.holes["key"], escapes)
        self._holes = found.holes
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
            closer = self._tables.argument_closers[self._argument].match(text, at)
            if isinstance(closer, Matched):
                self._parts.append(text[position:at])
                self._between = [text[at : closer.end]]
                self._state = self._behind_value
                return closer.end
            ends = self._closers.match(text, at)
            if isinstance(ends, Matched):
                self._parts.append(text[position:at])
                self._store(is_whole=True)
                self.was_cut = True
                return self._end_call(text, ends.end)
            following = self._tables.argument.match(text, at)
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
        end = SPACE.match(text, position).end()  # type: ignore[union-attr]  # it matches anything
        self._between.append(text[position:end])
        if end == len(text):
            if not at_end:
                return end
            self._store(is_whole=True)
            return self._finish_cut(text, end)
        argument = self._tables.argument.match(text, end)
        if isinstance(argument, Matched):
            self._store(is_whole=True)
            return self._open_argument(argument)
        closer = self._ends_call(text, end)
        if isinstance(closer, Matched):
            self._store(is_whole=True)
            return self._end_call(text, closer.end if closer.number >= 0 else end)
        again = self._tables.all_argument_closers.match(text, end)
        if isinstance(again, Matched):  # a closer written twice
            self._between.append(text[end : again.end])
            return again.end
        call = self._tables.call.match(text, end)
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
        """The value is over."""
        self._state = self._follow
        if self._fate is Fate.RELEASE:
            return
        grammar, value = self._tables.grammar, "".join(self._parts)
        if grammar.trims_newline:
            value = value.removeprefix("\n").removesuffix("\n")
        schema = self._schema(self._key) if self._fate is not None else None
        if self._fate is None and is_whole:
            self._arguments[self._key] = (value, self._wire_type())  # typed when the tool is known
        else:
            typing = grammar.values
            self._arguments[self._key] = (
                coerce(value, schema, self._wire_type(), typing.default, typing.literals) if is_whole else value
            )

    def _wire_type(self) -> str | None:
        """The type that the argument's tag names."""
        if "is_string" in self._holes:
            return "string" if self._holes["is_string"] != "false" else "any"
        return self._holes.get("type") or None

    def _schema(self, key: str) -> Schema | None:
        tool = self._region.output.schemas.get(self._name)
        return tool.property(key) if tool is not None else None

    def _open_block(self, position: int, number: int) -> int:
        closers = self._tables.blocks[number].close if number >= 0 else ()
        self._block = JsonBlock(closers)
        self._state = self._in_block
        return position

    def _in_block(self, text: str, position: int, at_end: bool) -> int:
        """Arguments that are one JSON object, between the call's tags."""
        assert self._block is not None
        position = self._block.advance(text, position, at_end)
        if self._fate is None and self._block.is_believed:
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
        closer = self._ends_call(text, match.start())
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
            if not self._region.output.is_declared(self._name):
                self.has_failed = True
                return position
            self._commit(text, position)
        return self._finish(position, is_complete=False)

    def _finish(self, position: int, is_complete: bool) -> int:
        assert self._fate is not None
        self.is_done = True
        arguments = self._block.arguments(self._unwraps) if self._block else dumps(self._unwrapped())
        self._region.output.end(self._fate, self._name, arguments, is_complete)
        return position

    def _unwraps(self, key: str) -> bool:
        """Whether an only argument of this name is an envelope around the arguments."""
        tool = self._region.output.schemas.get(self._name)
        return key in self._tables.grammar.envelopes and not (tool is not None and declared(tool, key))

    def _unwrapped(self) -> dict[str, Any]:
        if len(self._arguments) == 1:
            [(key, value)] = self._arguments.items()
            if self._unwraps(key) and isinstance(value, dict):
                return value
        return self._arguments

    def _infer(self, text: str, position: int) -> bool:
        """Name a call after its parameters: the one declared tool that has them all and needs no other."""
        output = self._region.output
        names = [name for name, schema in output.schemas.items() if _fits(schema, self._arguments)]
        if len(names) != 1:
            output.may_infer = False  # so that a text full of them is read no more than twice
            self.has_failed = True
            return False
        self._name = names[0]
        self._commit(text, position)
        typing = self._tables.grammar.values
        for key, value in self._arguments.items():
            if isinstance(value, tuple):
                raw, wire_type = value
                self._arguments[key] = coerce(raw, self._schema(key), wire_type, typing.default, typing.literals)
        return True


def unescape(text: str, escapes: tuple[tuple[str, str], ...]) -> str:
    """An attribute's text as it was meant."""
    for written, meant in escapes:
        text = text.replace(written, meant)
    return text


def _fits(schema: Schema, arguments: dict[str, Any]) -> bool:
    node = schema.node if isinstance(schema.node, dict) else {}
    required = node.get("required")
    return (
        bool(arguments)
        and all(declared(schema, key) for key in arguments)
        and all(key in arguments for key in (required if isinstance(required, list) else ()))
    )
