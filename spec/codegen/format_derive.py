"""From the forms of a grammar to the markers that the reader runs on.

Owns how a template splits into an opener, a hole and a closer. White space at the edge of a marker is layout and no
part of it. Knows neither YAML nor the emitted text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from codegen.format_forms import HOLE
from codegen.format_tables import Form, Tag

Pair = tuple[str, str]
_LAYOUT = re.compile(r"^(?:\s|\{ws\})+|(?:\s|\{ws\})+$")


class DeriveError(ValueError):
    """A form that doesn't add up: its number, and its template's name in the file."""

    def __init__(self, form: int, field: str, message: str) -> None:
        super().__init__(message)
        self.form = form
        self.field = field


@dataclass(frozen=True, slots=True)
class Markers:
    """What the forms of one grammar say together; see Grammar for the fields."""

    wrappers: tuple[Tag, ...]
    is_bare: bool
    calls: tuple[Tag, ...]
    arguments: tuple[Tag, ...]
    blocks: tuple[Tag, ...]
    separator: str
    at_start: bool


def derive(forms: Sequence[Form], is_object_call: bool) -> Markers:
    """The markers of one grammar. Raises DeriveError."""
    sections = [_split(number, "section", form.section, "calls") for number, form in enumerate(forms)]
    calls, blocks = ([], []) if is_object_call else _calls_and_blocks(forms)
    arguments = [_argument(number, form.argument) for number, form in enumerate(forms) if form.argument is not None]
    separators = [_layout_free(form.call_separator) for form in forms if form.many_calls]
    # An envelope: the object is the value of an ordinary argument.
    blocks = [(tag, end) for tag, end in blocks if not tag or not any(tag.startswith(head_of(o)) for o, _ in arguments)]
    return Markers(
        wrappers=_grouped(pair for pair in sections if pair[0]),
        is_bare=any(not opener and form.at != "start" for (opener, _), form in zip(sections, forms, strict=True)),
        calls=_grouped(calls),
        arguments=_grouped(arguments),
        blocks=_grouped(blocks),
        separator=next(filter(None, separators), ""),
        at_start=any(form.at == "start" for form in forms),
    )


def object_keys(forms: Sequence[Form]) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Name keys, arguments keys and other keys of calls that are one JSON object. Raises DeriveError."""
    found: tuple[dict[str, None], ...] = ({}, {}, {})
    for number, form in enumerate(forms):
        for call in filter(None, (form.call, form.empty_call)):
            try:
                keys = json.loads(HOLE.sub(lambda match: json.dumps(f"\0{match.group(1)}"), call))
            except ValueError as error:
                raise DeriveError(number, "call", f"without a tag of its own a call must be JSON: {error}") from error
            for key, value in keys.items():
                found[{"\0name": 0, "\0arguments": 1}.get(value, 2)][key] = None
    if not found[0] or not found[1]:
        raise DeriveError(0, "call", "a call's object needs a key for {name} and one for {arguments}")
    names, arguments, others = (tuple(keys) for keys in found)
    return names, arguments, others


def head_of(pattern: str) -> str:
    """The literal that a pattern begins with."""
    match = HOLE.search(pattern)
    return pattern if match is None else pattern[: match.start()]


def _calls_and_blocks(forms: Sequence[Form]) -> tuple[list[Pair], list[Pair]]:
    """Tags around calls, and tags around JSON objects inside calls."""
    calls: list[Pair] = []
    with_json: list[Pair] = []
    without_arguments: list[str] = []
    for number, form in enumerate(forms):
        for field, template in (("call", form.call), ("empty_call", form.empty_call)):
            if template is None:
                continue
            holes = {match.group(1) for match in HOLE.finditer(template)}
            if "json" in holes:
                with_json.append(_split(number, field, template, "json"))
            elif "arguments" in holes:
                calls.append(_split(number, field, template, "arguments"))
            else:
                without_arguments.append(_layout_free(template))
    # A call without arguments leaves the space between the tags empty, or is one tag that closes itself.
    calls += [(tag, "") for tag in without_arguments if not any(tag.startswith(opener) for opener, _ in calls)]
    return calls, [_block(pair, calls) for pair in with_json]


def _block(pair: Pair, calls: Sequence[Pair]) -> Pair:
    """The tags around a JSON object inside a call: what the call's own tags leave over."""
    opener, closer = pair
    known = max((one for one, _ in calls if opener.startswith(one)), key=len, default="")
    ends = max((end for one, end in calls if one == known and closer.endswith(end)), key=len, default="")
    return _layout_free(opener[len(known) :]), _layout_free(closer[: len(closer) - len(ends)])


def _argument(number: int, template: str) -> Pair:
    """The tags around a value. Next to it only a newline is layout; a space is part of the tag."""
    start, end = _place(number, "argument", template, "value")
    opener = template[:start].removesuffix("\n").lstrip()
    return opener, template[end:].removeprefix("\n").rstrip()


def _split(number: int, field: str, template: str, hole: str) -> Pair:
    """What stands before and behind a hole, layout taken off. Raises DeriveError unless it is there exactly once."""
    start, end = _place(number, field, template, hole)
    return _layout_free(template[:start]), _layout_free(template[end:])


def _place(number: int, field: str, template: str, hole: str) -> tuple[int, int]:
    places = [match.span() for match in HOLE.finditer(template) if match.group(1) == hole]
    if len(places) != 1:
        raise DeriveError(number, field, f"{{{hole}}} must stand in it exactly once")
    return places[0]


def _layout_free(text: str) -> str:
    """A marker without the white space and `{ws}` around it."""
    return _LAYOUT.sub("", text)


def _grouped(pairs: Iterable[Pair]) -> tuple[Tag, ...]:
    """One Tag an opener, in order of first appearance, with every closer that any form gives it."""
    closers: dict[str, dict[str, None]] = {}
    for opener, closer in pairs:
        known = closers.setdefault(opener, {})
        if closer:
            known[closer] = None
    return tuple(Tag(opener, tuple(known)) for opener, known in closers.items())
