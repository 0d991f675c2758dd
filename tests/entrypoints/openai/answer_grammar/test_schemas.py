"""What is refused by its keyword, and what is added to a schema."""

from __future__ import annotations

import json
import re
from typing import Any

import llguidance
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atom.entrypoints.openai.answer_grammar.free_text import texts_without
from atom.entrypoints.openai.answer_grammar.schema_tree import SchemaError
from atom.entrypoints.openai.answer_grammar.schemas import closed, embedded, enforceable, guarded, with_formats
from atom.entrypoints.openai.answer_grammar.shapes import shapes_of
from atom.entrypoints.openai.answer_grammar.string_formats import STRING_FORMATS

MARKERS = ("</parameter>", "<parameter=", "</function>")


@pytest.mark.parametrize(
    ("schema", "word"),
    [
        ({"not": {}}, "'not' (at #)"),
        ({"properties": {"a": {"items": {"uniqueItems": True}}}}, "'uniqueItems' (at #/properties/a/items)"),
        ({"type": "strin"}, "strin"),
        ({"type": "string", "minLength": 5, "maxLength": 2}, "minLength"),
        ({"$ref": "#/nowhere"}, "/nowhere"),
        ({"type": "string", "pattern": "(?=a)b"}, "look-around"),
        (5, "an object"),
        ([{}], "an object"),
    ],
)
def test_what_can_not_be_enforced_is_named(schema: Any, word: str) -> None:
    with pytest.raises(SchemaError, match=re.escape(word)):
        enforceable(schema)


def test_a_schema_nested_beyond_reason_is_refused() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(500):
        schema = {"type": "array", "items": schema}
    with pytest.raises(SchemaError, match="nested"):
        enforceable(schema)


def test_notes_and_unknown_formats_are_no_constraints() -> None:
    enforceable({"type": "string", "format": "int32", "title": "t", "x-any": 1, "deprecated": True})
    assert with_formats({"type": "integer", "format": "int64"}) == {"type": "integer"}


def test_a_schema_has_no_say_in_how_strictly_it_is_taken() -> None:
    with pytest.raises(SchemaError, match="'not'"):
        enforceable({"x-guidance": {"lenient": True}, "not": {"type": "string"}})
    assert with_formats({"x-guidance": {"whitespace_pattern": "z"}, "type": "integer"}) == {"type": "integer"}


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date", "2024-02-29 2000-02-29 0001-01-01", "2023-02-29 1900-02-29 2023-04-31 0000-01-01"),
        ("date-time", "2024-01-02T03:04:05Z 2024-01-02T03:04:05.5+02:00", "2024-01-02"),
        ("ipv4", "255.1.0.10", "256.1.1.1 01.1.1.1"),
        ("ipv6", "::1 1:: fe80::1:2 1:2:3:4:5:6:7:8", "1::2::3 12345::"),
        ("email", "a.b+c@x-y.org", "a..b@c @x"),
        ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123e4567"),
        ("uri", "https://a.b:80/x?y=1#z mailto:a@b.c", "nope"),
        ("duration", "P1Y PT5M P3W P1DT2H", "P PT"),
    ],
)
def test_string_formats(name: str, good: str, bad: str) -> None:
    assert all(re.fullmatch(STRING_FORMATS[name], text) for text in good.split())
    assert not any(re.fullmatch(STRING_FORMATS[name], text) for text in bad.split())


PIECES = st.sampled_from((*MARKERS, "</", "<p", "<", "/parameter>", "</parameter", "x", "\n", "<</function"))


@given(st.lists(PIECES, max_size=6).map("".join))
def test_texts_without_literals_are_exactly_those(text: str) -> None:
    [pattern] = texts_without(MARKERS)
    assert bool(re.fullmatch(pattern, text)) == (not any(marker in text for marker in MARKERS))


def test_literals_that_begin_differently_need_an_expression_each() -> None:
    first, second = texts_without(("<think>", "[CALL]"))
    assert re.fullmatch(first, "a [CALL] <thin") and not re.fullmatch(second, "a [CALL] <thin")


def accepts(schema: Any, text: str) -> bool:
    """Whether the grammar of the schema takes the text as a whole."""
    tokenizer = llguidance.LLTokenizer("byte")
    matcher = llguidance.LLMatcher(tokenizer, f"start: %json {json.dumps(schema)}")
    assert not matcher.is_error(), matcher.get_error()
    return matcher.consume_tokens(list(text.encode())) and matcher.is_accepting()


@pytest.mark.parametrize("schema", [True, {}, {"type": "object"}, {"type": "array"}, {"type": "string"}])
def test_no_string_of_guarded_json_has_a_marker(schema: Any) -> None:
    held = guarded(schema, MARKERS)
    for value in ({"k": ["x</parameter>"]}, ["x</parameter>"], "x</parameter>", {"a</function>": 1}):
        assert not accepts(held, json.dumps(value))
    kinds = {"object": {"k": ["</param", "a < b"]}, "array": ["<p>"], "string": "</par"}
    kind = schema.get("type", "object") if isinstance(schema, dict) else "object"
    assert accepts(held, json.dumps(kinds[kind]))


def test_objects_have_the_members_that_they_name_and_no_others() -> None:
    one = {"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {}}}}}
    assert closed(one)["additionalProperties"] is False
    assert closed(one)["properties"]["a"]["additionalProperties"] is False
    assert closed({"type": "object"}) == {"type": "object"}
    said = {**one, "additionalProperties": True}
    assert closed(said)["additionalProperties"] is True
    parts = {"allOf": [one, {"properties": {"c": {}}}]}
    assert closed(parts) == parts


def test_a_part_of_a_schema_keeps_what_it_refers_to() -> None:
    root = {
        "$id": "http://example.com/x",
        "properties": {"p": {"type": "array", "items": {"$ref": "#/definitions/d"}}},
        "definitions": {"d": {"type": "array", "items": {"$ref": "#/definitions/d"}}},
    }
    alone = embedded(root["properties"]["p"], root)  # type: ignore[index]  # a literal of nested dicts
    assert accepts({"x-guidance": {"whitespace_flexible": False}, **alone}, "[[],[[]]]")
    assert not accepts({"x-guidance": {"whitespace_flexible": False}, **alone}, "[1]")


def test_shapes_put_parts_together() -> None:
    root = {
        "$defs": {"base": {"properties": {"a": {"type": "string"}}, "required": ["a"]}},
        "allOf": [{"$ref": "#/$defs/base"}],
        "properties": {"b": {"type": "integer"}},
        "anyOf": [{"required": ["b"]}, {"properties": {"c": {}}}],
    }
    one, other = shapes_of(root, root, is_open=False)
    assert (set(one.properties), one.required, one.extra) == ({"a", "b"}, {"a", "b"}, False)
    assert (set(other.properties), other.required) == ({"a", "b", "c"}, {"a"})
    with pytest.raises(SchemaError, match="patternProperties"):
        shapes_of({"patternProperties": {}}, {}, is_open=False)
