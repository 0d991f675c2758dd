"""Reading a text with a format's reader, at any cut, and folding what it says; shared by the tests of this folder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from atom_spec.formats import FORMATS, FormatSpec

from atom.entrypoints.openai.events import (
    ContentDelta,
    Event,
    ReasoningDelta,
    ToolCallArguments,
    ToolCallEnd,
    ToolCallStart,
)
from atom.entrypoints.openai.tool_parser.stream import Tool, ToolCallReader

WEATHER = Tool(
    "get_weather",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "where": {"type": "object", "properties": {"floor": {"type": "integer"}}},
        },
        "required": ["city"],
    },
)
CLOCK = Tool("clock", {"type": "object", "properties": {}})
NOTE = Tool("note", {"type": "object", "properties": {"text": {"type": "string"}, "path": {"type": "string"}}})
TOOLS = (WEATHER, CLOCK, NOTE)
SIZES = (0, 1, 3, 7, 16)


@dataclass
class Answer:
    """What came of a text."""

    content: str = ""
    reasoning: str = ""
    calls: list[tuple[str, str]] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    num_undeclared: int = 0

    @property
    def parsed(self) -> list[tuple[str, Any]]:
        """The calls with their arguments as JSON means them."""
        return [(name, json.loads(arguments)) for name, arguments in self.calls]


def pieces_of(text: str, size: int) -> list[str]:
    """`text` in pieces of `size` characters; 0: whole."""
    return [text[start : start + size] for start in range(0, len(text), size)] if size else [text]


def open_reader(spec: FormatSpec | str, tools: Sequence[Tool] = TOOLS, **options: Any) -> ToolCallReader:
    """A reader whose ids are id0, id1 and so on."""
    numbers = count()
    found = FORMATS[spec] if isinstance(spec, str) else spec
    return ToolCallReader(found, tools, id_factory=lambda: f"id{next(numbers)}", **options)


def fold(events: Sequence[Event]) -> Answer:
    """The answer that the events make; fails on an impossible order."""
    answer = Answer()
    is_open = False
    for event in events:
        if isinstance(event, ContentDelta | ReasoningDelta):
            assert event.text, "an empty delta"
            assert not is_open, "text inside a call"
        if isinstance(event, ContentDelta):
            answer.content += event.text
        elif isinstance(event, ReasoningDelta):
            answer.reasoning += event.text
        elif isinstance(event, ToolCallStart):
            assert not is_open
            assert event.index == len(answer.calls)
            is_open = True
            answer.calls.append((event.name, ""))
            answer.ids.append(event.id)
        else:
            assert is_open
            assert event.index == len(answer.calls) - 1
            name, arguments = answer.calls[-1]
            if isinstance(event, ToolCallArguments):
                answer.calls[-1] = (name, arguments + event.text)
            is_open = not isinstance(event, ToolCallEnd)
    assert not is_open, "a call without an end"
    return answer


def read(spec: FormatSpec | str, text: str, size: int = 0, tools: Sequence[Tool] = TOOLS, **options: Any) -> Answer:
    """The answer of a text in pieces of `size`."""
    reader = open_reader(spec, tools, **options)
    events = [event for piece in pieces_of(text, size) for event in reader.feed(piece)]
    answer = fold(events + reader.finish())
    answer.num_undeclared = reader.num_undeclared
    return answer


def read_every_way(spec: FormatSpec | str, text: str, tools: Sequence[Tool] = TOOLS, **options: Any) -> Answer:
    """The answer, which must be the same whole, in pieces, and cut in two anywhere."""
    whole = read(spec, text, 0, tools, **options)
    for size in SIZES[1:]:
        assert read(spec, text, size, tools, **options) == whole, f"in pieces of {size}"
    for cut in range(1, len(text), max(1, len(text) // 60)):
        reader = open_reader(spec, tools, **options)
        halves = fold(reader.feed(text[:cut]) + reader.feed(text[cut:]) + reader.finish())
        halves.num_undeclared = reader.num_undeclared
        assert halves == whole, f"cut at {cut}"
    return whole
