"""From the forms of a format file to the tables that the reader runs on.

Owns how a template splits into an opener, a hole and closers. White space at the edge of a marker is layout and no part
of it. Knows neither YAML nor the emitted text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from codegen.format_tables import Form, Tag

HOLES = frozenset(
    {"calls", "arguments", "value", "name", "key", "type", "is_string", "index", "id", "ws", "json", "text"}
)
HOLE = re.compile(r"\{(\w+)(?:\|(\w+))?\}")


class DeriveError(ValueError):
    """A form that doesn't add up; `field` is the template's name in the file."""

    def __init__(self, form: str, field: str, message: str) -> None:
        super().__init__(f"form {form!r}: {message}")
        self.form = form
        self.field = field


@dataclass(frozen=True, slots=True)
class Markers:
    """What the forms of one grammar say together."""

    wrappers: tuple[Tag, ...]
    is_bare: bool
    calls: tuple[Tag, ...]
    arguments: tuple[Tag, ...]
    blocks: tuple[Tag, ...]
    separator: str
    at_start: bool


def layout_free(text: str) -> str:
    """A marker without the white space and `{ws}` around it."""
    return re.sub(r"^(?:\s|\{ws\})+|(?:\s|\{ws\})+$", "", text)


def split(form: Form, field: str, template: str, hole: str) -> tuple[str, str]:
    """What stands before and behind a hole, layout taken off. Raises DeriveError unless it is there exactly once."""
    places = [match.span() for match in HOLE.finditer(template) if match.group(1) == hole]
    if len(places) != 1:
        raise DeriveError(form.name, field, f"{{{hole}}} must stand in it exactly once")
    start, end = places[0]
    return layout_free(template[:start]), layout_free(template[end:])


def head_of(pattern: str) -> str:
    """The literal that a pattern begins with."""
    match = HOLE.search(pattern)
    return pattern if match is None else pattern[: match.start()]


def group(pairs: Iterable[tuple[str, str]]) -> tuple[Tag, ...]:
    """One Tag an opener, in order of first appearance, with every closer that any form gives it."""
    closers: dict[str, dict[str, None]] = {}
    for opener, closer in pairs:
        known = closers.setdefault(opener, {})
        if closer:
            known[closer] = None
    return tuple(Tag(opener, tuple(known)) for opener, known in closers.items())


def derive(forms: Sequence[Form], is_object_call: bool) -> Markers:
    """The markers of one grammar. Raises DeriveError."""
    sections = [split(form, "section", form.section, "calls") for form in forms]
    bodies = [] if is_object_call else [_call_pair(form, template) for form in forms for template in _templates(form)]
    calls = [pair for pair, hole in bodies if hole == "arguments"]
    blocks = [_block(pair, calls) for pair, hole in bodies if hole == "json"]
    # A call without arguments either leaves the space between the tags empty, or closes itself.
    calls += [pair for pair, hole in bodies if not hole and not any(pair[0].startswith(opener) for opener, _ in calls)]
    arguments = [split(form, "argument", form.argument, "value") for form in forms if form.argument is not None]
    separators = {layout_free(form.call_separator) for form in forms if form.many_calls}
    return Markers(
        wrappers=group(pair for pair in sections if pair[0]),
        is_bare=any(not opener and form.at != "start" for (opener, _), form in zip(sections, forms, strict=True)),
        calls=group(calls),
        arguments=group(arguments),
        blocks=group(blocks),
        separator=next((one for one in sorted(separators) if one), ""),
        at_start=any(form.at == "start" for form in forms),
    )


def _templates(form: Form) -> list[str]:
    return [form.call] if form.empty_call is None else [form.call, form.empty_call]


def _call_pair(form: Form, template: str) -> tuple[tuple[str, str], str]:
    """A call's opener and closer, and which hole its arguments are in (none: it has no arguments)."""
    holes = {match.group(1) for match in HOLE.finditer(template)}
    hole = "json" if "json" in holes else "arguments"
    if hole not in holes:
        return (layout_free(template), ""), ""
    return split(form, "call", template, hole), hole


def _block(pair: tuple[str, str], calls: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """The tags around a JSON object inside a call: what the call's own tags leave over."""
    opener, closer = pair
    known = max((one for one, _ in calls if opener.startswith(one)), key=len, default="")
    ends = max((end for one, end in calls if one == known and end and closer.endswith(end)), key=len, default="")
    return layout_free(opener[len(known) :]), layout_free(closer[: len(closer) - len(ends)])


def object_keys(calls: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Name keys, arguments keys and other keys of calls that are one JSON object. Raises ValueError."""
    names: dict[str, None] = {}
    arguments: dict[str, None] = {}
    others: dict[str, None] = {}
    for call in calls:
        parsed = json.loads(HOLE.sub(lambda match: json.dumps(f"\0{match.group(1)}"), call))
        if not isinstance(parsed, dict):
            raise ValueError("a call without tags must be a JSON object")
        for key, value in parsed.items():
            (names if value == "\0name" else arguments if value == "\0arguments" else others)[key] = None
    if not names or not arguments:
        raise ValueError("a call's object needs a key for {name} and one for {arguments}")
    return tuple(names), tuple(arguments), tuple(others)
