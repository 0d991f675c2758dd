"""What is under test: each wire format with the reasoning dialects that go with it, and each dialect alone.

Owns how a fresh reader is made from a request. This is the suite's only door to the readers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count

from atom_spec.dialects import DIALECTS, ReasoningDialect
from atom_spec.formats import FORMATS, FormatSpec

from atom.entrypoints.openai.pipeline import TextStages
from atom.entrypoints.openai.tool_parser.registry import get_format
from atom.entrypoints.openai.tool_parser.stream import Tool
from conformance.case import Request
from conformance.corpus import Vector
from conformance.delivery import Reader


@dataclass(frozen=True, slots=True)
class Subject:
    """A format with its dialects, or a dialect with no format."""

    name: str
    spec: FormatSpec | None
    dialects: tuple[ReasoningDialect, ...]

    @property
    def max_hold(self) -> int:
        """Characters that may be held outside of regions: a marker's beginning, in each of the two stages."""
        of_dialect = max((len(marker) for one in self.dialects for marker in (one.start, one.end)), default=0)
        return (self.spec.max_hold if self.spec else 0) + max(0, of_dialect - 1)

    def dialects_of(self, variant: str | None) -> tuple[ReasoningDialect, ...]:
        """The dialects that go with a variant of the format."""
        return dialects_of(self.spec, variant) if self.spec else self.dialects

    def open(self, request: Request) -> Reader:
        """A fresh reader, told what a server would tell it."""
        dialect = next((one for one in self.dialects if one.name == request.dialect), None)
        ids = count()
        return TextStages(
            dialect=dialect,
            begins_inside=request.begins_inside,
            spec=self.spec,
            tools=[Tool(one["function"]["name"], one["function"].get("parameters") or {}) for one in request.tools],
            suppress_calls=request.suppress_calls,
            num_earlier_calls=request.num_earlier_calls,
            id_factory=lambda: f"call_{next(ids)}",
        )


def all_subjects(formats: Mapping[str, FormatSpec] = FORMATS) -> tuple[Subject, ...]:
    """Every format, then every dialect that isn't part of a format."""
    with_format = [Subject(name, spec, _all_dialects(spec)) for name, spec in formats.items()]
    alone = [Subject(f"reasoning {one.name}", None, (one,)) for one in DIALECTS.values() if not one.in_format]
    return (*with_format, *alone)


def _all_dialects(spec: FormatSpec) -> tuple[ReasoningDialect, ...]:
    variants = spec.variants or (None,)
    return tuple({one.name: one for variant in variants for one in dialects_of(spec, variant)}.values())


def dialects_of(spec: FormatSpec, variant: str | None = None) -> tuple[ReasoningDialect, ...]:
    """The dialects that models of this format (of this variant) write."""
    return tuple(DIALECTS[name] for name in spec.dialects_of(variant))


def open_vector(vector: Vector) -> Reader:
    """A fresh reader for a recorded vector, with its variant's first dialect. Raises UnknownFormatError."""
    spec = get_format(vector.format)
    dialects = dialects_of(spec, vector.variant)
    request = Request(
        tools=vector.tools, begins_inside=vector.starts_in_reasoning, dialect=dialects[0].name if dialects else None
    )
    return Subject(vector.format, spec, dialects).open(request)
