"""A drawn case: a model's output, what each stretch of it is, and the answer that must come of it.

Owns the expectations: what comes out, and by when. Both follow from the drawn values and from where the renderer put
them; no reader is asked. Knows nothing of formats.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

NEVER = 1 << 60


class Kind(Enum):
    """What a stretch of the output is."""

    TEXT = "text"
    """Prose of the answer."""
    REASONING = "reasoning"
    """Prose of the reasoning channel."""
    QUOTE = "quote"
    """Prose that holds a call's opener but no call; a reader may have to see what follows before it can let go."""
    MARKUP = "markup"
    """Markers that are dropped: a channel's, a dialect's."""
    REGION = "region"
    """Calls, with everything from the first marker to the last."""


@dataclass(frozen=True, slots=True)
class DrawnCall:
    """A call as it was drawn: the values that the reader must come to."""

    name: str
    arguments: dict[str, Any]
    wire_id: str | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of the output. `output` is what a client must see of it, `may_come_out` all that it may see.

    `calls` are the calls that must be dispatched.

    `name_due` is the offset (in the whole text) by which the first call's name is readable, where the format puts it
    first.
    """

    kind: Kind
    start: int
    end: int
    output: str = ""
    may_come_out: str = ""
    calls: tuple[DrawnCall, ...] = ()
    name_due: int | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """What the reader is told about the request: tools as OpenAI's function objects, and how the prompt ended."""

    tools: tuple[dict[str, Any], ...] = ()
    suppress_calls: bool = False
    dialect: str | None = None
    begins_inside: bool = False
    num_earlier_calls: int = 0

    @property
    def declared(self) -> frozenset[str]:
        """The names that may be dispatched."""
        return frozenset(tool["function"]["name"] for tool in self.tools)


@dataclass(frozen=True)
class Case:
    """One drawn output. `spans` cover `text` without gaps; None when nothing but invariants can be said about it.

    `max_hold` is what a reader may hold back outside of regions, in characters. `drops_undeclared`: the format frames
    its calls in channels of their own, which are no part of the answer (decision D2).
    """

    scenario: str
    text: str
    request: Request
    spans: tuple[Span, ...] | None
    forms: tuple[str, ...] = ()
    max_hold: int = 0
    drops_undeclared: bool = False

    @cached_property
    def content(self) -> str:
        """The content that must come out."""
        return "".join(span.output for span in self.spans or () if span.kind is not Kind.REASONING)

    @cached_property
    def most_content(self) -> str:
        """All content that may come out; the same as `content`, except where some calls of a section are undeclared."""
        return "".join(span.may_come_out for span in self.spans or () if span.kind is not Kind.REASONING)

    @cached_property
    def reasoning(self) -> str:
        """The reasoning that must come out, byte for byte."""
        return "".join(span.output for span in self.spans or () if span.kind is Kind.REASONING)

    @cached_property
    def calls(self) -> tuple[DrawnCall, ...]:
        """The calls that must be dispatched, in order."""
        return tuple(call for span in self.spans or () for call in span.calls)

    @cached_property
    def character_dues(self) -> tuple[int, ...]:
        """For each character that comes out, in order: how much of the text may be read before it must be out.

        Outside of regions that is its own offset and `max_hold` more. A quoted opener may hold what follows until the
        next real region has ended. White space behind a region may be the region's own until something else follows.
        """
        dues: list[int] = []
        latest = held_until = 0
        for index, span in enumerate(self.spans or ()):
            if span.kind is Kind.QUOTE:
                held_until = self._next_region_end(index)
            elif span.kind is Kind.REGION:
                rest = self.text[span.end :]
                held_until = span.end + len(rest) - len(rest.lstrip()) + 1
            for offset in range(len(span.output)):
                own = self._region_end(index) if span.kind is Kind.REGION else max(span.start + offset + 1, held_until)
                latest = max(latest, own + self.max_hold)
                dues.append(latest)
        return tuple(dues)

    @cached_property
    def call_dues(self) -> tuple[int, ...]:
        """For each call: how much of the text may be read before its arguments must be out."""
        return tuple(
            self._region_end(index) + self.max_hold for index, span in enumerate(self.spans or ()) for _ in span.calls
        )

    def _region_end(self, index: int) -> int:
        """Where a region has surely ended: with itself or, since its form may lack a closer, with the markup behind."""
        spans = self.spans or ()
        following = spans[index + 1] if index + 1 < len(spans) else None
        return following.end if following is not None and following.kind is Kind.MARKUP else spans[index].end

    def _next_region_end(self, index: int) -> int:
        regions = (at for at, span in enumerate(self.spans or ()) if at > index and span.kind is Kind.REGION)
        return next(map(self._region_end, regions), NEVER)
