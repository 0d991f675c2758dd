"""Writes drawn calls the way a model would, by a format's `writing` tables.

Owns the spelling of values and the nesting section > call > argument > value. It shares no line with the readers: the
tables it expands are templates of what models write, not patterns of what readers accept. Knows no format by name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from atom_spec.formats import Form, Writing

from conformance.case import DrawnCall
from conformance.templates import fill

HEAD_CHARACTERS = 256
"""How much of a region is read for its name (rule 6)."""


@dataclass(frozen=True, slots=True)
class Spelling:
    """The choices that JSON and the templates leave to the model."""

    literals: str = "json"
    """`json` writes true, false, null; `python` writes True, False, None, as templates that print Python values do."""
    separators: tuple[str, str] = (", ", ": ")
    indent: int | None = None
    ensure_ascii: bool = False
    ws: str = ""
    """What is written where a template leaves white space to the model."""

    def json(self, value: Any) -> str:
        """`value` as JSON text of this spelling."""
        return json.dumps(value, separators=self.separators, indent=self.indent, ensure_ascii=self.ensure_ascii)


@dataclass(frozen=True, slots=True)
class Section:
    """A written section, and each call's part of it without the white space at its ends.

    `name_due` is the offset by which the first call's name is readable, where that is early.
    """

    text: str
    calls: tuple[str, ...]
    name_due: int | None


def write_section(
    writing: Writing, form: Form, calls: Sequence[DrawnCall], spelling: Spelling, first_index: int
) -> Section:
    """Calls in one section. `first_index` is the first call's place in its message, counted from 0."""
    written = [_write_call(writing, form, call, spelling, first_index + n) for n, call in enumerate(calls)]
    section = fill(form.section, {"ws": spelling.ws, "calls": form.call_separator.join(text for text, _ in written)})
    within_call = written[0][1]
    due = None if within_call is None else section.places["calls"] + within_call
    is_early = due is not None and due <= HEAD_CHARACTERS
    return Section(section.text, tuple(text.strip() for text, _ in written), due if is_early else None)


def wire_id(writing: Writing, form: Form, call: DrawnCall, index: int) -> str | None:
    """The id that the wire carries for the call at `index`; None where the format or the form carries none."""
    is_numbered = "{index" in form.call or "{id" in form.call
    return _id(writing, call, index) if writing.id and is_numbered else None


def _id(writing: Writing, call: DrawnCall, index: int) -> str:
    return fill(writing.id, {"name": call.name, "index": str(index + writing.index_base)}).text


def begin_call(form: Form, name: str) -> str:
    """A section up to the end of its first call's name; the whole text before the name where that comes last."""
    section, _, _ = form.section.partition("{calls}")
    call, hole, _ = re.split(r"(\{name\|json\}|\{(?:name|id|arguments|json)\b)", form.call, maxsplit=1)
    quote = '"' if hole == "{name|json}" else ""
    return fill(section + call, {"ws": "", "index": "0"}).text + quote + name


def _write_call(
    writing: Writing, form: Form, call: DrawnCall, spelling: Spelling, index: int
) -> tuple[str, int | None]:
    """The call's text, and where in it the first value begins, once the name has been written."""
    template = form.call if call.arguments or form.empty_call is None else form.empty_call
    is_object = form.argument is None or "{json}" in template
    body, within_body = (
        _write_object(call.arguments, spelling)
        if is_object
        else _write_arguments(writing, form, call.arguments, spelling)
    )
    holes = {
        "name": call.name,
        "arguments": body,
        "json": body,
        "index": str(index + writing.index_base),
        "id": _id(writing, call, index) if writing.id else f"mark{index:05}",
        "ws": spelling.ws,
    }
    filled = fill(template, holes)
    name_at = min((filled.places[hole] for hole in ("name", "id") if hole in filled.places), default=len(filled.text))
    body_at = min((filled.places[hole] for hole in ("arguments", "json") if hole in filled.places), default=-1)
    return filled.text, body_at + within_body if call.arguments and name_at < body_at else None


def _write_object(arguments: dict[str, Any], spelling: Spelling) -> tuple[str, int]:
    """The arguments as one JSON object, and where the first value begins in it."""
    body = spelling.json(arguments)
    return body, body.find(":") + 1


def _write_arguments(writing: Writing, form: Form, arguments: dict[str, Any], spelling: Spelling) -> tuple[str, int]:
    """The arguments one by one, and where the first value begins in their text."""
    assert form.argument is not None
    filled = [fill(form.argument, _argument_holes(writing, key, value, spelling)) for key, value in arguments.items()]
    return form.argument_separator.join(one.text for one in filled), filled[0].places["value"] if filled else 0


def _argument_holes(writing: Writing, key: str, value: Any, spelling: Spelling) -> dict[str, str]:
    return {
        "key": key,
        "value": write_value(writing, value, spelling),
        "type": json_type(value),
        "is_string": "true" if isinstance(value, str) else "false",
        "ws": spelling.ws,
    }


def write_value(writing: Writing, value: Any, spelling: Spelling) -> str:
    """One argument's value, as the format writes values of its type."""
    how = writing.values[json_type(value)]
    if how == ("elements",):
        return _write_elements(writing, value, spelling)
    if how == ("raw",):
        return str(value)
    if "python" in how and spelling.literals == "python" and not isinstance(value, dict | list):
        return str(value)
    return spelling.json(value)


def _write_elements(writing: Writing, value: Any, spelling: Spelling) -> str:
    """An object as one element a member, an array as one element an item."""
    members = value.items() if isinstance(value, dict) else ((writing.item_key, item) for item in value)
    return "".join(
        fill(writing.element, {"key": key, "value": write_value(writing, member, spelling)}).text
        for key, member in members
    )


def json_type(value: Any) -> str:
    """The JSON type's name, which is also what typed wires write."""
    if value is None:
        return "null"
    names = {str: "string", bool: "boolean", int: "number", float: "number", list: "array", dict: "object"}
    return names[type(value)]
