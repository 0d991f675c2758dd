"""The type of a tagged value: by the schema, then by the wire, then by the format (decision D5)."""

from __future__ import annotations

from typing import Any

import pytest

from atom.entrypoints.openai.tool_parser.schema import coerce, declared, dumps, parameters_schema

ROOT: dict[str, Any] = {
    "type": "object",
    "$defs": {"Level": {"enum": [1, 2]}, "Place": {"type": "object", "properties": {"floor": {"type": "integer"}}}},
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "flag": {"type": "boolean"},
        "maybe": {"type": ["string", "null"]},
        "optional": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "either": {"oneOf": [{"type": "boolean"}, {"type": "string"}]},
        "level": {"$ref": "#/$defs/Level"},
        "place": {"allOf": [{"$ref": "#/$defs/Place"}]},
        "list": {"type": "array", "items": {"type": "integer"}},
        "open": {"type": "integer", "nullable": True},
        "loop": {"$ref": "#/properties/loop"},
        "lost": {"$ref": "#/nowhere"},
        "anything": {"description": "no type at all"},
        "one": {"const": "x"},
        "shape": {"properties": {"a": {}}},
        "word": {"type": ["string", "boolean", "number"], "enum": ["true", 7]},
    },
}


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("text", "0042", "0042"),
        ("text", "true", "true"),
        ("text", "null", "null"),
        ("text", '{"a": 1}', '{"a": 1}'),
        ("count", "5", 5),
        ("count", " 5\n", 5),
        ("count", "5.0", 5),
        ("count", "1e2", 100),
        ("count", "5.5", "5.5"),
        ("count", "007", "007"),
        ("count", "0x1F", "0x1F"),
        ("count", "three", "three"),
        ("count", "", ""),
        ("count", "true", "true"),
        ("count", "null", "null"),
        ("ratio", "-0.0015", -0.0015),
        ("ratio", "3", 3),
        ("ratio", "NaN", "NaN"),
        ("ratio", "Infinity", "Infinity"),
        ("ratio", "1e999", "1e999"),
        ("flag", "true", True),
        ("flag", "True", True),
        ("flag", "1", "1"),
        ("maybe", "null", None),
        ("maybe", "None", None),
        ("maybe", "nul", "nul"),
        ("maybe", "12", "12"),
        ("optional", "7", 7),
        ("optional", "null", None),
        ("optional", "x", "x"),
        ("either", "false", False),
        ("either", "maybe", "maybe"),
        ("level", "2", 2),
        ("place", '{"floor": 3}', {"floor": 3}),
        ("place", "{'floor': None}", {"floor": None}),
        ("place", "[1]", "[1]"),
        ("list", "[1, 2]", [1, 2]),
        ("list", "1, 2", "1, 2"),
        ("list", "(1, 2)", "(1, 2)"),
        ("open", "null", None),
        ("loop", "12", "12"),
        ("lost", "12", "12"),
        ("anything", "12", "12"),
        ("one", "12", "12"),
        ("shape", '{"a": 1}', {"a": 1}),
        ("word", "true", "true"),
        ("word", "7", 7),
    ],
)
def test_the_schema_says_the_type(key: str, text: str, value: Any) -> None:
    found = coerce(text, parameters_schema(ROOT).property(key), None, "string", ("json", "python"))
    assert found == value
    assert type(found) is type(value)


def test_python_literals_count_only_where_templates_write_them() -> None:
    schema = parameters_schema(ROOT)
    assert coerce("True", schema.property("flag"), None, "string", ("json",)) == "True"
    assert coerce("{'floor': 1}", schema.property("place"), None, "string", ("json",)) == "{'floor': 1}"


@pytest.mark.parametrize(
    ("text", "wire", "default", "value"),
    [
        ("12", "number", "string", 12),
        ("12", "string", "json", "12"),
        ("x", "number", "string", "x"),
        ("true", "boolean", "string", True),
        ("null", "null", "string", None),
        ("[1]", "any", "string", [1]),
        ("Nice", "any", "string", "Nice"),
        ("12", None, "json", 12),
        ("12", None, "string", "12"),
        ("x", None, "json", "x"),
    ],
)
def test_without_a_schema_the_wire_and_then_the_format_say_it(
    text: str, wire: str | None, default: str, value: Any
) -> None:
    assert coerce(text, None, wire, default, ("json",)) == value


def test_the_schema_comes_before_the_wire() -> None:
    schema = parameters_schema(ROOT)
    assert coerce("12", schema.property("text"), "number", "string", ("json",)) == "12"
    assert coerce("12", schema.property("count"), "string", "string", ("json",)) == 12


def test_members_and_items_are_found_through_references() -> None:
    schema = parameters_schema(ROOT)
    place = schema.property("place")
    assert place is not None
    assert declared(place, "floor")
    assert not declared(place, "roof")
    assert coerce("3", place.property("floor"), None, "string", ("json",)) == 3
    items = schema.property("list")
    assert items is not None
    inner = items.items()
    assert inner is not None
    assert inner.types() == {"integer"}
    free = parameters_schema({"additionalProperties": {"type": "integer"}})
    assert coerce("3", free.property("any"), None, "string", ("json",)) == 3
    for nothing in (None, True, [], "x", {"properties": []}, {"anyOf": [True, None]}):
        assert parameters_schema(nothing).property("a") is None


def test_schemas_that_refer_to_themselves_end() -> None:
    tree: dict[str, Any] = {"anyOf": [{"$ref": "#"}, {"$ref": "#"}, {"type": "integer"}]}
    assert coerce("3", parameters_schema(tree), None, "string", ("json",)) == 3
    halves = {f"n{n}": {"anyOf": [{"$ref": f"#/$defs/n{n + 1}"}] * 2} for n in range(40)}
    root = {"$defs": halves, "properties": {"a": {"$ref": "#/$defs/n0"}}}
    assert coerce("3", parameters_schema(root).property("a"), None, "string", ("json",)) == "3"


def test_values_too_deep_or_too_large_stay_text() -> None:
    schema = parameters_schema(ROOT).property("list")
    for text in ("[" * 100_000, "9" * 10_000):
        assert coerce(text, schema, None, "string", ("json", "python")) == text


def test_json_is_compact_and_its_characters_are_written_out() -> None:
    assert dumps({"b": "é", "a": [1, None]}) == '{"b":"é","a":[1,null]}'
    assert dumps({"a": "\ud83d"}) == '{"a":"\\ud83d"}'
