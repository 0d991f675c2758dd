"""The wire formats by name, and which one a model's template speaks.

Owns names, aliases and the detection from evidence in what the template renders (rule 9). Never looks at a model's
output. Knows no format by name: the evidence is in the tables.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from atom_spec.formats import FORMATS, Detect, FormatSpec

FORMAT_NAMES: tuple[str, ...] = tuple(sorted(FORMATS))
"""Canonical names, without aliases."""

_BY_NAME = {name: spec for spec in FORMATS.values() for name in (spec.name, *spec.aliases)}
_MAX_EVIDENCE = 3


class UnknownFormatError(ValueError):
    """Nobody knows a format of this name; the message lists those that there are."""


@dataclass(frozen=True, slots=True)
class Detection:
    """A recognised format: its name, the variant where the evidence tells it, and the evidence as a line to log."""

    name: str
    variant: str | None
    evidence: str


def get_format(name: str) -> FormatSpec:
    """The format of that name or alias. Raises UnknownFormatError."""
    spec = _BY_NAME.get(name)
    if spec is None:
        raise UnknownFormatError(f"no tool-call format is called {name!r}; there are: {', '.join(FORMAT_NAMES)}")
    return spec


def detect_format(rendered_template: str, formats: Iterable[FormatSpec] = FORMATS.values()) -> Detection | None:
    """The format of a template rendered with tools (or of an encoder's output); None: nothing is recognised.

    Over all formats, the lowest order whose evidence holds wins.
    """
    candidates = sorted(
        ((one.order, spec.name, one) for spec in formats for one in spec.detect), key=lambda row: row[0]
    )
    for _, name, detect in candidates:
        found = _evidence(detect, rendered_template)
        if found is not None:
            return Detection(name, detect.variant, found)
    return None


def variant_of(spec: FormatSpec, rendered_template: str) -> str | None:
    """The variant of a known format that a template speaks; its first one where the template shows none."""
    found = detect_format(rendered_template, (spec,))
    if found is not None and found.variant is not None:
        return found.variant
    return spec.variants[0] if spec.variants else None


def _evidence(detect: Detect, text: str) -> str | None:
    """What was found, for the log; None where the evidence doesn't hold."""
    if not all(literal in text for literal in detect.all) or any(literal in text for literal in detect.none):
        return None
    one_of = [literal for literal in detect.any if literal in text]
    if detect.any and not one_of:
        return None
    found = [*detect.all, *one_of[:1]][:_MAX_EVIDENCE]
    return "the template shows " + " and ".join(repr(literal) for literal in found)
