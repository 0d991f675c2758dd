"""Schemas that are none, or that nothing can meet, are refused with the keyword and its place."""

from __future__ import annotations

from typing import Any

import pytest

from atom.entrypoints.openai.answer_grammar.answers import Speech, Wanted
from atom.entrypoints.openai.answer_grammar.calls import ToolSchema
from atom.entrypoints.openai.answer_grammar.made import make
from atom.entrypoints.openai.answer_grammar.schema_tree import SchemaError
from atom.entrypoints.openai.answer_grammar.schemas import enforceable
from atom.entrypoints.openai.tool_parser.registry import get_format

NODE: dict[str, Any] = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}
NO_SCHEMAS: list[tuple[Any, str]] = [
    ({"properties": []}, "'properties' (at #)"),
    ({"properties": {"a": 5}}, "'properties' (at #)"),
    ({"type": "integer", "allOf": 5}, "'allOf' (at #)"),
    ({"type": "boolean", "required": 2.5}, "'required' (at #)"),
    ({"type": "string", "items": {"additionalProperties": 1}}, "'additionalProperties' (at #/items)"),
    ({"$defs": "x", "type": "string"}, "'$defs' (at #)"),
    ({"type": 5}, "'type' (at #)"),
    ({"enum": {}}, "'enum' (at #)"),
    ({"anyOf": [{"pattern": 1}]}, "'pattern' (at #/anyOf/0)"),
    ({"$ref": 5}, "'$ref' (at #)"),
]
REFUSED: list[tuple[Any, str]] = [
    ({"properties": {"a": {"type": "string", "pattern": "(?=a)b"}}}, "'pattern' (at #/properties/a): look-around"),
    (
        {"$defs": {"d": {"oneOf": [{"type": "integer"}, {"type": "number"}]}}, "$ref": "#/$defs/d"},
        "'oneOf' (at #/$defs/d)",
    ),
    ({"properties": {"a": {"items": {"$ref": "#/nowhere"}}}}, "'/nowhere' does not exist (at #/properties/a/items)"),
    ({"properties": {"a": {"type": "strin"}}}, "strin (at #/properties/a)"),
    ({"type": "object", "properties": {"a": {}}, "required": ["z"]}, "'z'"),
]
ENDLESS: list[Any] = [
    {"$ref": "#"},
    {"allOf": [{"$ref": "#"}]},
    {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]},
    {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
    {"$defs": {"node": {**NODE, "required": ["next"]}}, "$ref": "#/$defs/node"},
    {"type": "array", "items": {"$ref": "#"}, "minItems": 1},
]


@pytest.mark.parametrize(("schema", "words"), NO_SCHEMAS + REFUSED, ids=str)
def test_what_is_wrong_is_named_with_its_place(schema: Any, words: str) -> None:
    with pytest.raises(SchemaError) as error:
        enforceable(schema)
    assert words in str(error.value)


@pytest.mark.parametrize("name", ["qwen", "harmony", "kimi"])
@pytest.mark.parametrize("schema", [schema for schema, _ in NO_SCHEMAS], ids=str)
def test_no_schema_is_a_refusal_wherever_it_stands(name: str, schema: Any) -> None:
    speech = Speech(get_format(name), None, None, False, False, ("<|im_end|>",))
    tool = ToolSchema("tools[0]", "f", {"type": "object", "properties": {"p": schema}})
    for wanted in (Wanted(json=schema), Wanted(tools=(tool,), must_call=True)):
        with pytest.raises(SchemaError, match="must be"):
            make(speech, wanted)


@pytest.mark.parametrize("schema", ENDLESS, ids=str)
def test_what_contains_itself_without_end_is_refused(schema: Any) -> None:
    with pytest.raises(SchemaError, match="without end"):
        enforceable(schema)


def test_what_contains_itself_and_may_end_is_no_error() -> None:
    enforceable({"$defs": {"node": NODE}, "$ref": "#/$defs/node"})
    enforceable({"anyOf": [{"$ref": "#"}, {"type": "string"}]})
    enforceable({"type": "array", "items": {"$ref": "#"}})
    enforceable({"$defs": {"a": {"$anchor": "A", "type": "integer"}}, "$ref": "#A"})


@pytest.mark.parametrize("kind", ["string", ["array", "null"]], ids=str)
def test_parameters_of_a_tool_are_an_object(kind: Any) -> None:
    speech = Speech(get_format("kimi"), None, None, False, False, ("<|im_end|>",))
    with pytest.raises(SchemaError, match=r"tools\[0\], 'f': 'type'"):
        make(speech, Wanted(tools=(ToolSchema("tools[0]", "f", {"type": kind}),), must_call=True))
    make(speech, Wanted(tools=(ToolSchema("tools[0]", "f", {"type": ["object", "null"]}),), must_call=True))
