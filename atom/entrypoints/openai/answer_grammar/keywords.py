"""What the keywords of a JSON Schema may hold.

Owns the refusal of a schema that is none, before anything looks into it: the grammar library passes over keywords of
types that a value can not have. Knows nothing of what can be enforced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from atom.entrypoints.openai.answer_grammar.schema_tree import SchemaError, nodes

_SCHEMA = ("additionalProperties", "additionalItems", "not", "if", "then", "else", "contains", "propertyNames")
_SCHEMAS = ("anyOf", "oneOf", "allOf", "prefixItems")
_NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")


def check_keywords(schema: Any) -> None:
    """Raise SchemaError for the first keyword, in the schema or below it, that holds something else than it may."""
    for place, node in nodes(schema):
        for keyword, value in node.items():
            known = _MAY_HOLD.get(keyword)
            if known is not None and not known[1](value):
                raise SchemaError(f"{keyword!r} (at {place}) must be {known[0]}")


def _is_schema(value: Any) -> bool:
    return isinstance(value, dict | bool)


def _are_schemas(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_schema, value))


def _are_named_schemas(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_schema, value.values()))


def _are_strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


_Rule = tuple[str, Callable[[Any], bool]]
_MAY_HOLD: dict[str, _Rule] = {
    **dict.fromkeys(_SCHEMA, ("a schema", _is_schema)),
    **dict.fromkeys(_SCHEMAS, ("a list of schemas", _are_schemas)),
    **dict.fromkeys(_NAMED, ("an object of schemas", _are_named_schemas)),
    **dict.fromkeys(("$ref", "pattern"), ("a string", lambda value: isinstance(value, str))),
    "items": ("a schema", lambda value: _is_schema(value) or _are_schemas(value)),
    "type": ("a type or a list of types", lambda value: isinstance(value, str) or _are_strings(value)),
    "required": ("a list of names", _are_strings),
    "enum": ("a list", lambda value: isinstance(value, list)),
}
