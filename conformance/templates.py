"""Templates with holes: `{hole}` or `{hole|escape}`, as the `writing` tables of the formats use them.

Owns expansion and the escapes. Every other brace is literal, so that JSON can be written as it stands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

_HOLE = re.compile(r"\{(\w+)(?:\|(\w+))?\}")

ESCAPES: dict[str, Callable[[str], str]] = {
    "": str,
    "json": lambda text: json.dumps(text, ensure_ascii=False),
    "attribute": lambda text: text.replace("&", "&amp;").replace('"', "&quot;"),
}


@dataclass(frozen=True, slots=True)
class Filled:
    """A filled template, and where each hole's text begins in it (a hole that occurs twice: the first place)."""

    text: str
    places: Mapping[str, int]


def fill(template: str, holes: Mapping[str, str]) -> Filled:
    """`template` with every hole filled; raises `KeyError` on a hole or an escape that nobody knows."""
    parts: list[str] = []
    places: dict[str, int] = {}
    length = position = 0
    for match in _HOLE.finditer(template):
        name, escape = match.group(1), match.group(2) or ""
        literal, value = template[position : match.start()], ESCAPES[escape](holes[name])
        places.setdefault(name, length + len(literal))
        parts += (literal, value)
        length += len(literal) + len(value)
        position = match.end()
    return Filled("".join((*parts, template[position:])), places)


def literals(template: str) -> list[str]:
    """The stretches of a template between its holes, empty ones left out."""
    return [part for part in _HOLE.sub("\0", template).split("\0") if part]
