"""Which dialect a model thinks in, and whether a prompt leaves its channel open.

Owns the evidence: both questions are answered from what a template or encoder renders, never from the model's output.
The dialects themselves are data (`spec/formats/reasoning/`). Knows neither templates nor how a text is split.
"""

from __future__ import annotations

from dataclasses import dataclass

from atom_spec.dialects import DIALECTS, ReasoningDialect


@dataclass(frozen=True, slots=True)
class DialectDetection:
    """A dialect and the literal that named it."""

    dialect: ReasoningDialect
    evidence: str


def get_dialect(name: str) -> ReasoningDialect:
    """The dialect of that name. Raises ValueError with the list of names."""
    try:
        return DIALECTS[name]
    except KeyError:
        raise ValueError(f"unknown reasoning dialect {name!r}; known: {', '.join(DIALECTS)}") from None


def detect_dialect(rendered: str) -> DialectDetection | None:
    """The first dialect, in the order of detection, that has a literal of its evidence in `rendered`."""
    for dialect in DIALECTS.values():
        for literal in dialect.evidence:
            if literal in rendered:
                return DialectDetection(dialect, literal)
    return None


def resolve_dialect(rendered: str) -> ReasoningDialect | None:
    """The dialect of a model whose template or encoder renders this; None when nothing in it is known."""
    detection = detect_dialect(rendered)
    return detection.dialect if detection else None


def begins_inside(dialect: ReasoningDialect | None, rendered_prompt: str) -> bool:
    """Whether an answer to this prompt starts inside the reasoning channel: the prompt ends by opening it.

    Only whitespace may follow the start marker: a marker that a message quotes is followed by the turn's end.
    """
    if dialect is None or dialect.in_format:
        return False
    return rendered_prompt.rstrip().endswith(dialect.start)
