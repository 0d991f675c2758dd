"""The forms of a format file, and the two ways of looking at them.

Owns inheritance (a form takes from its variant's first form what it doesn't say, else from the grammar's first). As
spelled, a form has `{ws}` wherever white space is optional, or `{nl}` where models write a line break there: the
reader's markers derive from that. As written, it is what a model writes: the renderer, the grammars of enforced calls
and the docs use that. Knows neither markers nor values.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from codegen.format_tables import Form
from codegen.source import NodePath, YamlFile

HOLE = re.compile(r"\{(\w+)(?:\|(\w+))?\}")
HOLES = frozenset(
    {"calls", "arguments", "json", "value", "name", "key", "type", "is_string", "index", "id", "ws", "nl"}
)
SAMPLE_ID = "a1b2c3d4e"
_TEMPLATES = ("section", "call", "empty_call", "argument", "call_separator", "argument_separator")


def spelled_forms(file: YamlFile, raw: dict[str, Any], at: NodePath) -> list[Form]:
    """The forms under `raw["forms"]`, `{ws}` in place. Raises SpecError."""
    forms: list[Form] = []
    firsts: dict[str | None, dict[str, Any]] = {}
    for number, own in enumerate(raw["forms"]):
        where = (*at, "forms", number)
        variant = own.get("variant", raw.get("variant"))
        first = firsts.get(variant, raw["forms"][0])
        full = {field: first[field] for field in _TEMPLATES if field in first} | own
        firsts.setdefault(variant, full)
        _check_holes(file, full, where)
        form = Form(
            name=full["name"],
            variant=variant,
            section=full["section"],
            call=full["call"],
            argument=full.get("argument"),
            call_separator=full.get("call_separator", ""),
            argument_separator=full.get("argument_separator", ""),
            many_calls=full.get("many_calls", False),
            empty_call=full.get("empty_call"),
            at=full.get("at", "anywhere"),
            requires=tuple(full.get("requires", ())),
            trims_newline=False,
        )
        if any((form.name, form.variant) == (other.name, other.variant) for other in forms):
            raise file.error(f"form {form.name!r} is there twice", *where, "name")
        forms.append(form)
    return forms


def read(form: Form) -> Form:
    """The form as the reader's markers derive from it."""
    texts = {field: getattr(form, field) for field in _TEMPLATES}
    return dataclasses.replace(
        form, **{field: None if text is None else text.replace("{nl}", "{ws}") for field, text in texts.items()}
    )


def trims_newline(forms: list[Form]) -> bool:
    """Whether one newline on either side of a value is markup in this grammar."""
    return any("\n{value}\n" in (form.argument or "") for form in forms)


def written(form: Form, grammar_trims: bool) -> Form:
    """The form as a model writes it."""
    texts = {field: getattr(form, field) for field in _TEMPLATES}
    plain = {
        field: None if text is None else text.replace("{ws}", "").replace("{nl}", "\n").replace("{id}", SAMPLE_ID)
        for field, text in texts.items()
    }
    return dataclasses.replace(
        form, **plain, trims_newline=grammar_trims and "\n{value}\n" not in (form.argument or "")
    )


def _check_holes(file: YamlFile, full: dict[str, Any], where: NodePath) -> None:
    for field in ("section", "call"):
        if field not in full:
            raise file.error(f"the first form of a grammar must have a {field}", *where)
    for field in _TEMPLATES:
        for match in HOLE.finditer(full.get(field) or ""):
            if match.group(1) not in HOLES:
                raise file.error(f"unknown hole {match.group()}; known: {', '.join(sorted(HOLES))}", *where, field)
