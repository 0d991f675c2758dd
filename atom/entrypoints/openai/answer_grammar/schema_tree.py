"""JSON Schemas as trees: which subschemas there are, where they stand, and a copy with each of them changed.

Owns the walk and the keywords that say nothing about a value. Knows neither grammars nor what can be enforced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

NOTES = frozenset(("$schema", "$id", "$comment", "$defs", "definitions", "title", "description", "default", "examples"))
NOTES |= {"deprecated", "readOnly", "writeOnly", "format", "contentMediaType", "contentEncoding", "discriminator"}
NOTES |= {"nullable"}
_ONE = ("items", "additionalItems", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
_LIST = ("anyOf", "oneOf", "allOf", "prefixItems", "items")
_MAP = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")


class SchemaError(ValueError):
    """A schema that can not be enforced; the message names the keyword."""


def mapped(schema: Any, change: Callable[[dict[str, Any]], dict[str, Any]], *, opens: bool = False) -> Any:
    """A copy of the schema with every subschema changed, the inner ones first. opens: `true` is an empty schema."""
    if schema is True and opens:
        return change({})
    if not isinstance(schema, dict):
        return schema
    node: dict[str, Any] = dict(schema)
    for keyword, value in schema.items():
        if keyword in _MAP and isinstance(value, dict):
            node[keyword] = {key: mapped(below, change, opens=opens) for key, below in value.items()}
        elif keyword in _LIST and isinstance(value, list):
            node[keyword] = [mapped(below, change, opens=opens) for below in value]
        elif keyword in _ONE:
            node[keyword] = mapped(value, change, opens=opens)
    return change(node)


def nodes(schema: Any, place: str = "#") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every subschema with its place, the outer ones first."""
    if not isinstance(schema, dict):
        return
    yield place, schema
    for keyword, value in schema.items():
        if keyword in _MAP and isinstance(value, dict):
            for key, below in value.items():
                yield from nodes(below, f"{place}/{keyword}/{key}")
        elif keyword in _LIST and isinstance(value, list):
            for number, below in enumerate(value):
                yield from nodes(below, f"{place}/{keyword}/{number}")
        elif keyword in _ONE:
            yield from nodes(value, f"{place}/{keyword}")
