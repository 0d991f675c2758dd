"""Tagged arguments that nest: an object is an element a member, an array an element an item.

Owns the tree of elements in one call and what it becomes by the tool's schema. Only tags of the format's own spelling
are tags; everything else is text. Knows neither wrappers nor formats.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from atom.entrypoints.openai.tool_parser.calls import Fate
from atom.entrypoints.openai.tool_parser.patterns import Matched, Partial, behind_space
from atom.entrypoints.openai.tool_parser.region import Region
from atom.entrypoints.openai.tool_parser.schema import Schema, coerce, declared
from atom.entrypoints.openai.tool_parser.tagged_call import TaggedCall

_MAX_DEPTH = 64
_CONTAINERS = frozenset({"object", "array"})


@dataclass(slots=True)
class Element:
    """One element. `start` and `end`: its inside among the call's pieces of text; is_cut: the text ended inside it."""

    key: str
    schema: Schema | None
    start: int
    end: int = -1
    is_cut: bool = False
    text: list[str] = field(default_factory=list)
    children: list[Element] = field(default_factory=list)


class ElementCall(TaggedCall):
    """A call whose values are texts or elements."""

    def __init__(self, region: Region, number: int, holes: dict[str, str]) -> None:
        super().__init__(region, number, holes)
        self._roots: list[Element] = []
        self._open: list[Element] = []
        self._pieces: list[str] = []
        self._scanner = self._tables.value_scanner(number, 0)

    def take_plain(self, text: str) -> bool:
        """Take `text` whole if it is plainly the middle of a value."""
        if self._state == self._inside:
            if self._scanner.is_plain(text):
                self._add_text(text)
                return True
            return False
        return super().take_plain(text)

    def _open_argument(self, found: Matched) -> int:
        self._push(found.holes["key"])
        self._state = self._inside
        return found.end

    def _push(self, key: str) -> None:
        parent = self._open[-1] if self._open else None
        element = Element(key, self._schema_below(parent, key), len(self._pieces))
        (parent.children if parent else self._roots).append(element)
        self._open.append(element)

    def _schema_below(self, parent: Element | None, key: str) -> Schema | None:
        if parent is None:
            return self._schema(key)
        if parent.schema is None:
            return None
        return parent.schema.items() if "array" in parent.schema.types() else parent.schema.property(key)

    def _pop(self, *, is_cut: bool = False) -> None:
        element = self._open.pop()
        element.end = len(self._pieces)
        element.is_cut = is_cut

    def _add_text(self, text: str) -> None:
        if text and self._fate is not Fate.RELEASE:
            self._pieces.append(text)
            self._open[-1].text.append(text)

    def _inside(self, text: str, position: int, at_end: bool) -> int:
        """In an element: text and tags, up to the closer of the outermost one."""
        start = position
        while True:
            match = self._scanner.search(text, start)
            if match is None:
                end = self._scanner.hold_from(text, position)
                self._add_text(text[position:end])
                return self._cut(text) if at_end else end
            at = match.start()
            ends = self._closers.match(text, at, at_end)
            closer = self._tables.all_argument_closers.match(text, at, at_end)
            opener = self._tables.argument.match(text, at, at_end)
            if isinstance(ends, Matched):
                self._add_text(text[position:at])
                self.was_cut = True
                while self._open:
                    self._pop()
                return self._end_call(text, ends.end)
            if isinstance(closer, Matched) and any(one.key == closer.holes["key"] for one in self._open):
                self._add_text(text[position:at])
                return self._close_element(closer)
            if isinstance(opener, Matched) and len(self._open) < _MAX_DEPTH:
                self._add_text(text[position:at])
                return self._open_inside(text[at : opener.end], opener)
            if isinstance(ends, Partial) or isinstance(closer, Partial) or isinstance(opener, Partial):
                self._add_text(text[position:at])
                return self._cut(text) if at_end else at
            start = at + 1

    def _close_element(self, closer: Matched) -> int:
        key = closer.holes["key"]
        while self._open[-1].key != key:
            self._pop()
        self._pop()
        if self._open:
            self._pieces.append(self._tables.argument_closers[0].patterns[0].source.replace("{key}", key))
        else:
            self._state = self._behind_element
        return closer.end

    def _open_inside(self, tag: str, opener: Matched) -> int:
        """A child; or a sibling, where the open element can have no children and its neighbours are known by name."""
        key = opener.holes["key"]
        while self._open and self._takes_no_children(self._open[-1]) and self._is_sibling(key):
            self._pop()
        if self._open:
            self._pieces.append(tag)
        self._push(key)
        return opener.end

    def _takes_no_children(self, element: Element) -> bool:
        types = element.schema.types() if element.schema else frozenset()
        return bool(types) and not types & _CONTAINERS

    def _is_sibling(self, key: str) -> bool:
        if len(self._open) > 1:
            above = self._open[-2].schema
        else:
            above = self._region.output.schemas.get(self._name)
        return above is not None and declared(above, key)

    def _behind_element(self, text: str, position: int, at_end: bool) -> int:
        """Between two arguments; what stands there and is no tag belongs to nothing."""
        position = behind_space(text, position)
        if position == len(text):
            return self._finish_cut(text, position) if at_end else position
        closer = self._ends_call(text, position, at_end)
        if isinstance(closer, Matched):
            return self._end_call(text, closer.end if closer.number >= 0 else position)
        opener = self._tables.argument.match(text, position, at_end)
        if isinstance(opener, Matched):
            return self._open_argument(opener)
        call = self._tables.call.match(text, position, at_end)
        if isinstance(call, Matched):
            return self._end_call(text, position)
        if isinstance(closer, Partial) or isinstance(opener, Partial) or isinstance(call, Partial):
            return self._finish_cut(text, len(text)) if at_end else position
        return position + 1

    def _cut(self, text: str) -> int:
        self._pop(is_cut=True)
        while self._open:
            self._pop()
        return self._finish_cut(text, len(text))

    def _keys(self) -> list[str]:
        return [element.key for element in self._roots]

    def _collected(self) -> dict[str, Any]:
        return self._members(self._roots)

    def _members(self, elements: list[Element]) -> dict[str, Any]:
        """Elements by their names; a name that comes more than once is a list."""
        groups: dict[str, list[Element]] = {}
        for element in elements:
            groups.setdefault(element.key, []).append(element)
        return {
            key: self._value_of(group[0]) if len(group) == 1 else [self._item_of(element) for element in group]
            for key, group in groups.items()
        }

    def _item_of(self, element: Element) -> Any:
        """One of several elements of a name: an item, where the schema says that the name is an array."""
        if element.schema is not None and "array" in element.schema.types():
            element.schema = element.schema.items()
        return self._value_of(element)

    def _value_of(self, element: Element) -> Any:
        types = element.schema.types() if element.schema else frozenset()
        if not element.children:
            return self._leaf(element, types)
        if types and not types & _CONTAINERS:
            return "".join(self._pieces[element.start : element.end])
        item = self._tables.grammar.item
        is_array = (
            all(child.key == item for child in element.children) if len(types & _CONTAINERS) != 1 else "array" in types
        )
        if is_array:
            return [self._value_of(child) for child in element.children]
        return self._members(element.children)

    def _leaf(self, element: Element, types: frozenset[str]) -> Any:
        text = "".join(element.text)
        if not text.strip() and "string" not in types and types & _CONTAINERS and not element.is_cut:
            return [] if "array" in types else {}
        typing = self._tables.grammar.values
        return text if element.is_cut else coerce(text, element.schema, None, typing.default, typing.literals)
