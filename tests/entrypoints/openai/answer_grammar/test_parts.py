"""Objects made of parts become single ones that mean the same, so that they can be closed and guarded."""

from __future__ import annotations

from itertools import product
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atom.entrypoints.openai.answer_grammar.parts import put_together
from atom.entrypoints.openai.answer_grammar.schemas import closed, enforceable, guarded, with_formats
from tests.entrypoints.openai.answer_grammar.test_schemas import accepts

MARKERS = ("</parameter>", "<function=")
A: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
B: dict[str, Any] = {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]}
BASE = {"$defs": {"base": A}}
MADE_OF_PARTS: dict[str, Any] = {
    "both": {"allOf": [A, B]},
    "base and more": {**BASE, "allOf": [{"$ref": "#/$defs/base"}, B]},
    "base beside members": {**BASE, "$ref": "#/$defs/base", **B, "required": ["b", "a"]},
    "in a member": {"type": "object", "properties": {"x": {"allOf": [A, B]}}, "required": ["x"]},
    "in a part": {"$defs": {"base": {**A, "allOf": [B]}}, "allOf": [{"$ref": "#/$defs/base"}, {"required": ["b"]}]},
    "contains itself": {
        "$defs": {
            "base": A,
            "tree": {"allOf": [{"$ref": "#/$defs/base"}, {"properties": {"b": {"$ref": "#/$defs/tree"}}}]},
        },
        "$ref": "#/$defs/tree",
    },
    "one of its members": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    },
}


@pytest.mark.parametrize("name", MADE_OF_PARTS)
def test_objects_made_of_parts_can_be_enforced_where_markers_are_kept_out(name: str) -> None:
    schema = put_together(MADE_OF_PARTS[name])
    enforceable(schema)
    held = guarded(closed(with_formats(schema)), MARKERS)
    enforceable(held)
    texts = (
        '{"a": 1}',
        '{"a": 1, "b": "y"}',
        '{"b": "y", "a": 1}',
        '{"x": {"a": 1, "b": "y"}}',
        '{"b": {"a": 2}, "a": 1}',
    )
    assert any(accepts(held, text) for text in texts)
    assert not any(accepts(held, text.replace("y", "</parameter>")) for text in texts if "y" in text)
    assert not any(accepts(held, text.replace("}", ', "other": 1}')) for text in texts)


PROPERTIES = st.dictionaries(
    st.sampled_from("ab"),
    st.sampled_from([True, False, {"type": "integer"}, {"minimum": 1}, {"allOf": [{"maximum": 1}, {"minimum": 1}]}]),
)
OBJECTS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.just("object"),
        "properties": PROPERTIES,
        "required": st.lists(st.sampled_from("abc"), unique=True),
        "additionalProperties": st.sampled_from([True, False, {"type": "integer"}]),
        "$ref": st.sampled_from(["#/$defs/one", "#/$defs/two", "#"]),
        "minProperties": st.just(1),
    },
)
PARTS = st.lists(
    st.one_of(OBJECTS, st.just(True), st.builds(lambda parts: {"allOf": parts}, st.lists(OBJECTS))), max_size=3
)
INSTANCES = [
    {key: value for key, value in zip("abc", values, strict=True) if value is not None}
    for values in product((None, 0, 1, "x"), repeat=3)
] + [5, "text", None]


@settings(max_examples=150)
@given(
    made=st.fixed_dictionaries({"allOf": PARTS}, optional={"anyOf": PARTS.filter(bool), "oneOf": PARTS.filter(bool)}),
    own=OBJECTS.filter(lambda node: "$ref" not in node),
    one=OBJECTS.filter(lambda node: "$ref" not in node),
)
def test_what_is_put_together_means_the_same(made: Any, own: Any, one: Any) -> None:
    schema = {"$defs": {"one": one, "two": {"allOf": [one, B]}}, **own, **made}
    if "#'" in str(schema):  # a schema that is its own part says nothing, and no validator ends over it
        return
    before, after = (jsonschema.Draft202012Validator(each) for each in (schema, put_together(schema)))
    assert [before.is_valid(value) for value in INSTANCES] == [after.is_valid(value) for value in INSTANCES]


def test_what_is_no_plain_object_is_left_as_it_is() -> None:
    for schema in (
        {"allOf": [{"type": "string"}, {"maxLength": 3}]},
        {"allOf": [A, {**B, "additionalProperties": False}]},
        {"allOf": [A, {"$ref": "#/allOf/0/properties/a"}]},
        {"allOf": [{"$ref": "#"}, A]},
        {**A, "anyOf": [B, {"type": "null"}]},
        {"allOf": [A, {"allOf": 5}]},
        {"allOf": [A, {"required": [{}]}]},
        {"allOf": "A", "$ref": 5},
    ):
        assert put_together(schema) == schema


def test_other_members_beside_patterns_of_names_are_held_too() -> None:
    held = guarded({"type": "object", "patternProperties": {"^x": {"type": "integer"}}}, MARKERS)
    assert accepts(held, '{"x": 1, "y": "</par"}') and not accepts(held, '{"y": "</parameter>"}')
