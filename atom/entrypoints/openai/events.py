"""What the text pipeline emits, in the order of the answer.

Every endpoint folds or streams the same events; a whole answer is the fold of the streamed one. Owns the types only.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """Text of the reasoning channel, as it was written."""

    text: str


@dataclass(frozen=True, slots=True)
class ContentDelta:
    """Text of the answer, as it was written."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallStart:
    """A declared tool's name is known. `index` counts the answer's dispatched calls from 0; sent once a call."""

    index: int
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class ToolCallArguments:
    """The call's arguments, as compact JSON text; the deltas of a call concatenate to a JSON object."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class ToolCallEnd:
    """All of the call's arguments have been sent."""

    index: int


Event = ReasoningDelta | ContentDelta | ToolCallStart | ToolCallArguments | ToolCallEnd
