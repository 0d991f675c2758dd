"""What becomes of the calls and the text that a reader finds in one answer.

Owns the events, the calls' indexes and ids, and the decision which calls are dispatched (D2, D7, rule 10). Knows no
marker.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from fnmatch import fnmatchcase
from typing import Any

from atom_spec.formats import FormatSpec

from atom.entrypoints.openai.events import (
    ContentDelta,
    Event,
    ReasoningDelta,
    ToolCallArguments,
    ToolCallEnd,
    ToolCallStart,
)
from atom.entrypoints.openai.tool_parser.schema import Schema, parameters_schema


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that the request declares; `parameters` is its JSON Schema."""

    name: str
    parameters: dict[str, Any] = field(default_factory=dict)


class Fate(Enum):
    """What happens to a call: sent to the client, read and dropped, or released as the text that it was written as."""

    DISPATCH = "dispatch"
    DROP = "drop"
    RELEASE = "release"


def new_call_id() -> str:
    """An id that no other call has, in this conversation or any other."""
    return f"call_{secrets.token_hex(12)}"


class CallOutput:
    """The events of one answer, in order. num_undeclared: complete calls that named no declared tool."""

    def __init__(
        self,
        spec: FormatSpec,
        tools: Sequence[Tool],
        suppress_calls: bool,
        parallel: bool,
        num_earlier_calls: int,
        id_factory: Callable[[], str],
    ) -> None:
        self.schemas: dict[str, Schema] = {tool.name: parameters_schema(tool.parameters) for tool in tools}
        self.num_undeclared = 0
        self.may_infer = True
        self._builtins = spec.channels.builtins if spec.channels else ()
        self._wire_id = spec.writing_of(None).id if spec.ids == "wire" else ""
        self.drops_undeclared = spec.undeclared == "drop"
        self._undeclared = Fate.DROP if spec.undeclared == "drop" else Fate.RELEASE
        self._suppress_calls = suppress_calls
        self._parallel = parallel
        self._id_factory = id_factory
        self._num_earlier_calls = num_earlier_calls
        self._next_wire_index = num_earlier_calls
        self._shift: int | None = None
        self._num_calls = 0
        self._events: list[Event] = []
        self._text: list[str] = []

    def is_declared(self, name: str) -> bool:
        """Whether a call of this name may be dispatched."""
        return name in self.schemas or any(fnmatchcase(name, builtin) for builtin in self._builtins)

    def content(self, text: str) -> None:
        """Text of the answer."""
        if text:
            self._text.append(text)

    def reasoning(self, text: str) -> None:
        """A thought, where the format itself tells thoughts from the answer."""
        if text:
            self._flush()
            self._events.append(ReasoningDelta(text))

    def begin(self, name: str, wire_index: str | None) -> Fate:
        """A call is certain: announce it, if it is to be dispatched. `wire_index`: its number on the wire."""
        if not self.is_declared(name):
            return self._undeclared
        if self._suppress_calls or (self._num_calls and not self._parallel):
            return Fate.DROP
        self._flush()
        self._events.append(ToolCallStart(self._num_calls, self._call_id(name, wire_index), name))
        return Fate.DISPATCH

    def end(self, fate: Fate, name: str, arguments: str, is_complete: bool) -> None:
        """The call has been read. `arguments`: their JSON text."""
        if fate is Fate.DISPATCH:
            self._events.append(ToolCallArguments(self._num_calls, arguments))
            self._events.append(ToolCallEnd(self._num_calls))
            self._num_calls += 1
        elif is_complete and not self.is_declared(name):
            self.num_undeclared += 1

    def take(self) -> list[Event]:
        """The events since the last time."""
        self._flush()
        events, self._events = self._events, []
        return events

    def _flush(self) -> None:
        if self._text:
            self._events.append(ContentDelta("".join(self._text)))
            self._text.clear()

    def _call_id(self, name: str, wire_index: str | None) -> str:
        """The wire's id, with an index that no earlier call of the conversation has; else a made-up id."""
        if not self._wire_id:
            return self._id_factory()
        index = int(wire_index) if wire_index else self._next_wire_index
        if self._shift is None:  # a model that counts from 0 again is moved behind the conversation's calls
            self._shift = self._num_earlier_calls if index < self._num_earlier_calls else 0
        index = max(index + self._shift if wire_index else index, self._next_wire_index)
        self._next_wire_index = index + 1
        return self._wire_id.replace("{name}", name).replace("{index}", str(index))
