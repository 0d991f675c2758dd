"""Calls are written by the templates alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from atom_spec.formats import FORMATS, Form, FormatSpec, Writing

from conformance.case import DrawnCall
from conformance.render import Spelling, begin_call, wire_id, write_section, write_value

FORM = Form(
    name="canonical",
    variant=None,
    section="[[\n{calls}]]",
    call="<{name} {index}>{arguments}</{name}>\n",
    argument="<{key|attribute}:{type}>{value};",
    call_separator="+",
    argument_separator=",",
    many_calls=True,
    empty_call="<{name}/>\n",
    at="anywhere",
    requires=(),
    trims_newline=False,
)
WRITING = Writing(
    content="{text}",
    reasoning=None,
    part_separator="",
    epilogue="",
    starts_inside_content=False,
    values={
        "string": ("raw",),
        "boolean": ("json", "python"),
        "null": ("json", "python"),
        "number": ("json",),
        "object": ("elements",),
        "array": ("elements",),
    },
    element="({key} {value})",
    item_key="item",
    never_in_string=(),
    id="{name}:{index}",
    index_base=1,
)
CALL = DrawnCall("f", {"k": "a<b", "n&": [1, {"x": True}]})


def test_a_section_is_its_templates_filled_from_the_inside_out() -> None:
    section = write_section(WRITING, FORM, [CALL, DrawnCall("g", {})], Spelling(), 0)
    assert section.text == "[[\n<f 1><k:string>a<b;,<n&amp;:array>(item 1)(item (x true));</f>\n+<g/>\n]]"
    assert section.calls == ("<f 1><k:string>a<b;,<n&amp;:array>(item 1)(item (x true));</f>", "<g/>")


def test_the_name_is_due_with_the_first_character_of_the_first_value() -> None:
    section = write_section(WRITING, FORM, [CALL], Spelling(), 0)
    assert section.name_due is not None
    assert section.text[section.name_due :].startswith("a<b;")


@pytest.mark.parametrize(
    "form",
    [replace(FORM, call="<{arguments} {name}>"), replace(FORM, section=" " * 300 + "{calls}")],
    ids=["name behind the arguments", "long head"],
)
def test_a_name_that_is_not_readable_early_is_not_due(form: Form) -> None:
    assert write_section(WRITING, form, [CALL], Spelling(), 0).name_due is None


def test_without_an_argument_template_the_arguments_are_one_object() -> None:
    form = replace(FORM, argument=None, call='{"n": {name|json}, "a": {arguments}}', empty_call=None)
    section = write_section(WRITING, form, [DrawnCall("f", {"k": [1]})], Spelling(separators=(",", ":")), 0)
    assert section.text == '[[\n{"n": "f", "a": {"k":[1]}}]]'
    assert section.name_due is not None
    assert section.text[section.name_due :] == "[1]}}]]"


@pytest.mark.parametrize(
    ("value", "spelling", "text"),
    [
        ("", Spelling(), ""),
        (True, Spelling(), "true"),
        (True, Spelling(literals="python"), "True"),
        (None, Spelling(literals="python"), "None"),
        (1.5, Spelling(literals="python"), "1.5"),
        ([], Spelling(), ""),
    ],
)
def test_values(value: object, spelling: Spelling, text: str) -> None:
    assert write_value(WRITING, value, spelling) == text


def test_ids_count_from_the_formats_base() -> None:
    assert wire_id(WRITING, FORM, CALL, 4) == "f:5"


def test_a_wire_without_an_index_or_a_format_without_ids_carries_none() -> None:
    assert wire_id(WRITING, replace(FORM, call="<{name}>{arguments}"), CALL, 4) is None
    assert wire_id(replace(WRITING, id=""), FORM, CALL, 4) is None


def test_a_begun_call_ends_with_its_name() -> None:
    assert begin_call(FORM, "now") == "[[\n<now"
    assert begin_call(replace(FORM, call='{"n": {name|json}}'), "now") == '[[\n{"n": "now'


@pytest.mark.parametrize("spec", FORMATS.values(), ids=lambda spec: spec.name)
def test_every_form_of_every_format_can_be_written(spec: FormatSpec) -> None:
    for form in spec.forms:
        writing = spec.writing_of(form.variant)
        arguments = {} if "no_arguments" in form.requires else {"x": "value"}
        section = write_section(writing, form, [DrawnCall("now", arguments)], Spelling(), 0)
        assert "now" in section.text
        assert ("value" in section.text) is bool(arguments)
