"""JSON Schemas in words: the type, the range and the default of a field, for docs/api.md.

Owns wording. A schema with a name is a link to its own place on the page. Knows no operation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Schema = dict[str, Any]

_SCHEMAS = "#/components/schemas/"
_PLURALS = {"string": "strings", "integer": "integers", "number": "numbers", "boolean": "booleans", "object": "objects"}


def schema_name(schema: Schema) -> str | None:
    """The name of the schema that this one refers to."""
    reference = schema.get("$ref")
    return None if reference is None else str(reference).removeprefix(_SCHEMAS)


def named_schemas(node: Any) -> Iterator[str]:
    """The names of the schemas that a schema refers to, in its order, with repetitions."""
    if isinstance(node, dict):
        if name := schema_name(node):
            yield name
        for key, value in node.items():
            if key != "discriminator":
                yield from named_schemas(value)
    elif isinstance(node, list):
        for item in node:
            yield from named_schemas(item)


def type_text(schema: Schema, *, is_request: bool) -> str:
    """What a value may be. In a request null is left out: it stands for a field that is absent."""
    options = list(dict.fromkeys(_options(schema, is_request)))
    values = [text for text in options if text != "null"]
    if "null" in options and not (is_request and values):
        values.append("null")
    return " or ".join(values)


def _options(schema: Schema, is_request: bool) -> list[str]:
    if name := schema_name(schema):
        return [f"[{name}](#{name.lower()})"]
    for union in ("oneOf", "anyOf"):
        if union in schema:
            return [text for option in schema[union] for text in _options(option, is_request)]
    if "const" in schema:
        return [_value(schema["const"])]
    if "enum" in schema:
        return [_value(value) for value in schema["enum"]]
    kinds = schema.get("type", "any value")
    return [_kind(kind, schema, is_request) for kind in (kinds if isinstance(kinds, list) else [kinds])]


def _kind(kind: str, schema: Schema, is_request: bool) -> str:
    if kind == "array" and "items" in schema:
        items = type_text(schema["items"], is_request=is_request)
        return f"list of {_PLURALS.get(items, items)}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        values = type_text(schema["additionalProperties"], is_request=is_request)
        return f"object of {_PLURALS.get(values, values)}"
    return kind


def _value(value: Any) -> str:
    return "null" if value is None else f"`{value}`" if isinstance(value, str) else f"`{str(value).lower()}`"


def range_text(schema: Schema) -> str:
    """The bounds of a value, of its length or of its items; empty for none. Bounds of 64 bits say nothing to people."""
    if "oneOf" in schema:
        return "; ".join(filter(None, dict.fromkeys(map(range_text, schema["oneOf"]))))
    parts = [_numbers(schema), _count(schema, "Items", "items"), _count(schema, "Length", "characters")]
    if "pattern" in schema:
        parts.append(f"`{schema['pattern']}`")
    items = schema.get("items", schema.get("additionalProperties"))
    if isinstance(items, dict) and (inner := range_text(items)):
        parts.append(f"each {inner}")
    return ", ".join(filter(None, parts))


def _numbers(schema: Schema) -> str:
    low, above, high = schema.get("minimum"), schema.get("exclusiveMinimum"), schema.get("maximum")
    if high is not None and high >= 2**31 - 1:
        high = None
    if low is not None and low <= -(2**31):
        low = None
    if low is not None and high is not None:
        return f"{low:g} to {high}" if low != high else f"{low:g}"
    first = f"{low:g} or more" if low is not None else f"above {above:g}" if above is not None else ""
    last = f"{high} at most" if high is not None else ""
    return ", ".join(filter(None, (first, last)))


def _count(schema: Schema, suffix: str, unit: str) -> str:
    least, most = schema.get(f"min{suffix}"), schema.get(f"max{suffix}")
    if most is not None:
        return f"{least} to {most} {unit}" if least else f"{most} {unit} at most" if most else f"no {unit}"
    return "not empty" if least == 1 else f"{least} {unit} or more" if least else ""


def default_text(schema: Schema) -> str:
    """The default; empty where absent means absent."""
    value = schema.get("default")
    return "" if value is None else _value(value)
