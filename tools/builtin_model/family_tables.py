"""The tables of realistic tools, data/families/*.txt, parsed.

Owns: the table grammar (data/families/README.md). Does not know: how tools and requests are made of a family.
"""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass
from typing import Any

from tools.builtin_model.words import DATA

SLOT = re.compile(r"<([^<>]+)>")
HOLE = re.compile(r"\{([\w.]+)\}")
_LAST_ITEM = re.compile(r"^(.*?)\s*\[(.*)\]$")


@dataclass(frozen=True, slots=True)
class Ask:
    """One wording. `implied`: arguments that the words imply. `is_fixed`: never rephrased as a polite request."""

    text: str
    implied: dict[str, Any]
    is_fixed: bool
    keys: frozenset[str]


@dataclass(frozen=True, slots=True)
class Field:
    """One parameter line of a family."""

    aliases: tuple[str, ...]
    kind: str
    descriptions: tuple[str, ...]
    is_required: bool
    parent: str
    choices: tuple[tuple[Any, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class Family:
    """A tool in several wordings. Families of one `group` are never declared together."""

    names: tuple[str, ...]
    descriptions: tuple[str, ...]
    group: str
    fields: tuple[Field, ...]
    asks: tuple[Ask, ...]
    slots: tuple[str, ...]


@functools.cache
def load_families() -> tuple[Family, ...]:
    """All families; ValueError with the file and the header for a malformed one."""
    families: list[Family] = []
    for path in sorted((DATA / "families").glob("*.txt")):
        for block in re.split(r"\n\s*\n", path.read_text(encoding="utf-8").strip()):
            try:
                families.append(_parse(block.splitlines()))
            except (ValueError, KeyError, IndexError) as error:
                raise ValueError(f"{path.name}: {block.splitlines()[0]}: {error}") from error
    return tuple(families)


def _parse(lines: list[str]) -> Family:
    names, _, rest = lines[0].partition(" :: ")
    descriptions, _, group = rest.partition(" @")
    fields = tuple(_parse_field(line) for line in lines[1:] if not line.startswith(">"))
    asks = tuple(_parse_ask(line) for line in lines[1:] if line.startswith(">"))
    known = {(f"{f.parent}." if f.parent else "") + f.aliases[0] for f in fields}
    for ask in asks:
        if ask.keys - known or set(ask.implied) - known:
            raise ValueError(f"unknown parameter in {ask.text!r}")
    if not asks or not rest:
        raise ValueError("a family needs a description and requests")
    return Family(
        tuple(names.split("|")),
        tuple(descriptions.split("|")),
        group.strip() or names,
        fields,
        asks,
        tuple(dict.fromkeys(SLOT.findall("\n".join(lines)))),
    )


def _parse_field(line: str) -> Field:
    head, _, rest = line.partition(": ")
    kind, _, descriptions = rest.partition("~")
    kind = kind.strip()
    is_required = not head.endswith("?")
    aliases = head.rstrip("?").split("|")
    parent, dot, first = aliases[0].rpartition(".")
    choices: tuple[tuple[Any, tuple[str, ...]], ...] = ()
    if kind.startswith("enum("):
        pairs = [item.partition("=") for item in kind[5:-1].split("|")]
        choices = tuple((value, tuple(surface.split("/")) if surface else (value,)) for value, _, surface in pairs)
        kind = "enum"
    elif kind.startswith("bool("):
        choices = tuple(zip((True, False), ((surface,) for surface in kind[5:-1].split("|")), strict=True))
        kind = "bool"
    names = (first, *aliases[1:]) if dot else tuple(aliases)
    texts = tuple(text.strip() for text in descriptions.split("|")) if descriptions.strip() else ()
    return Field(tuple(name.rstrip("?") for name in names), kind, texts, is_required, parent, choices)


def _parse_ask(line: str) -> Ask:
    is_fixed = line.startswith(">=")
    text = (line[2:].strip() if is_fixed else line[1:].strip()).replace("\\n", "\n")
    implied: dict[str, Any] = {}
    match = _LAST_ITEM.match(text)
    if match and "=" in match.group(2):
        text = match.group(1)
        for item in match.group(2).split(", "):
            key, _, value = item.partition("=")
            implied[key] = json.loads(value)
    return Ask(text, implied, is_fixed, frozenset(HOLE.findall(text)))
