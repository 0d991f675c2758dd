"""Which members an object has by its schema, for formats that write one member at a time.

Owns putting `$ref`, `allOf`, `anyOf` and `oneOf` together. Knows neither grammars nor wire formats.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from atom.entrypoints.openai.answer_grammar.schema_tree import NOTES, SchemaError

_MOST_SHAPES = 64
_MOST_REFERENCES = 64
_UNKNOWN = ("patternProperties", "minProperties", "maxProperties")


@dataclass(frozen=True, slots=True)
class Shape:
    """Members by name, in the order in which they are written. extra: the schema of others; False: there are none."""

    properties: dict[str, Any]
    required: frozenset[str]
    extra: Any


def shapes_of(node: Any, root: Any, *, is_open: bool) -> list[Shape]:
    """The shapes that objects of a schema may have, one of which is to be met. Raises SchemaError.

    is_open: an object of which nothing is said at all may have any member. One that names some has no others, unless
    the schema says so.
    """
    shapes = _shapes(node, root, 0)
    return [
        replace(shape, extra=is_open and not shape.properties) if shape.extra is None else shape for shape in shapes
    ]


def resolved(node: Any, root: Any) -> Any:
    """What a schema that is a reference, and nothing else, refers to."""
    for _ in range(_MOST_REFERENCES):
        if not isinstance(node, dict) or "$ref" not in node or set(node) - NOTES - {"$ref"}:
            return node
        node = _target(node["$ref"], root)
    raise SchemaError("a '$ref' refers to itself")


def _target(reference: Any, root: Any) -> Any:
    if not isinstance(reference, str) or not reference.startswith("#"):
        raise SchemaError(f"'$ref' {reference!r}: only references into the schema itself are supported")
    node = root
    for part in reference[1:].split("/")[1:]:
        step = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, list) and step.isdigit() and int(step) < len(node):
            node = node[int(step)]
        elif isinstance(node, dict) and step in node:
            node = node[step]
        else:
            raise SchemaError(f"'$ref' {reference!r} refers to nothing")
    return node


def _shapes(node: Any, root: Any, depth: int) -> list[Shape]:
    """The same, with `extra` None where nothing is said."""
    if depth > _MOST_REFERENCES:
        raise SchemaError("a '$ref' refers to itself")
    node = resolved(node, root)
    if not isinstance(node, dict):
        return [Shape({}, frozenset(), None)] if node is True else []
    for keyword in _UNKNOWN:
        if keyword in node:
            raise SchemaError(f"the keyword {keyword!r} is not supported where arguments are written one by one")
    shapes = [
        Shape(
            _allowed(node.get("properties", {})), frozenset(node.get("required", ())), node.get("additionalProperties")
        )
    ]
    if "$ref" in node:
        shapes = _joined(shapes, _shapes(_target(node["$ref"], root), root, depth + 1))
    for member in node.get("allOf", ()):
        shapes = _joined(shapes, _shapes(member, root, depth + 1))
    for keyword in ("anyOf", "oneOf"):
        if keyword in node:
            options = [shape for member in node[keyword] for shape in _shapes(member, root, depth + 1)]
            shapes = _joined(shapes, options)
    return shapes


def _allowed(properties: dict[str, Any]) -> dict[str, Any]:
    return {name: schema for name, schema in properties.items() if schema is not False}


def _joined(left: list[Shape], right: list[Shape]) -> list[Shape]:
    """Every shape of the one together with every shape of the other."""
    joined = [_both(one, other) for one in left for other in right]
    if len(joined) > _MOST_SHAPES:
        raise SchemaError(f"'anyOf' and 'allOf' together give more than {_MOST_SHAPES} kinds of objects")
    return joined


def _both(one: Shape, other: Shape) -> Shape:
    properties = dict(one.properties)
    for name, schema in other.properties.items():
        known = properties.get(name, True)
        properties[name] = schema if known in (True, schema) else {"allOf": [known, schema]}
    extras = [shape.extra for shape in (one, other) if shape.extra is not None]
    if False in extras:
        extra: Any = False
    else:
        extra = None if not extras else extras[0] if len(extras) == 1 else {"allOf": extras}
    return Shape(properties, one.required | other.required, extra)
