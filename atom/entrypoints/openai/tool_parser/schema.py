"""From the text of a tagged value to JSON, by the tool's schema, the wire's own type, or the format's default.

Owns decision D5: the schema first, with `anyOf`, `oneOf`, `allOf`, `$ref`, `enum`, `const` and lists of types; the
non-string types that the text parses as, else a string; `null` only where the schema allows null. What doesn't fit its
type stays a string. Knows neither markers nor requests.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

_PYTHON = {"True": True, "False": False, "None": None}
_MAX_DEPTH = 32
_FAILED = object()
_SURROGATE = re.compile("[\ud800-\udfff]")


def dumps(value: Any) -> str:
    """Compact JSON, characters written out (decision D6); half a surrogate pair stays an escape."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except TypeError:  # a number that had to be kept as it was written
        return msgspec.json.encode(value, enc_hook=_raw_number).decode()
    return json.dumps(value, separators=(",", ":")) if _SURROGATE.search(text) else text


class WrittenNumber:
    """A number in an object or array that is too large for a float: JSON may have it, so it goes on as written."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


def _raw_number(number: WrittenNumber) -> msgspec.Raw:
    return msgspec.Raw(number.text.encode())


class Schema:
    """One parameter's schema, with the root that its `$ref`s point into."""

    __slots__ = ("node", "root")

    def __init__(self, node: Any, root: Any) -> None:
        self.node = node
        self.root = root

    def types(self) -> frozenset[str]:
        """The JSON types that the schema allows; empty when it says nothing about the type."""
        return _types(self.node, self.root, {}) or frozenset()

    def property(self, key: str) -> Schema | None:
        """The schema of an object's member; None when it isn't declared."""
        for node in _alternatives(self.node, self.root):
            properties = node.get("properties")
            if isinstance(properties, Mapping) and key in properties:
                return Schema(properties[key], self.root)
        for node in _alternatives(self.node, self.root):
            if isinstance(node.get("additionalProperties"), Mapping):
                return Schema(node["additionalProperties"], self.root)
        return None

    def items(self) -> Schema | None:
        """The schema of an array's items; None when nothing is said of them."""
        for node in _alternatives(self.node, self.root):
            if isinstance(node.get("items"), Mapping):
                return Schema(node["items"], self.root)
        return None


def parameters_schema(parameters: Any) -> Schema:
    """The schema of a tool's `parameters`."""
    return Schema(parameters, parameters)


def declared(schema: Schema, key: str) -> bool:
    """Whether an object of this schema declares the member by name."""
    return any(
        key in node["properties"]
        for node in _alternatives(schema.node, schema.root)
        if isinstance(node.get("properties"), Mapping)
    )


def coerce(text: str, schema: Schema | None, wire_type: str | None, default: str, literals: Sequence[str]) -> Any:
    """The value that `text` stands for.

    wire_type: the JSON type that the wire names for it, None where it names none. default: `string` or `json`, for a
    value of which neither says anything. literals: `json`, and `python` where True, False and None count as well.
    """
    types = schema.types() if schema is not None else frozenset()
    if not types:
        if wire_type is not None:
            types = frozenset() if wire_type == "any" else frozenset({wire_type})
        elif default == "string":
            return text
    if types == {"string"}:
        return text
    value = _parse(text, "python" in literals)
    if value is _FAILED:
        return text
    if not types:
        return value
    return _fitted(text, value, types)


def _fitted(text: str, value: Any, types: frozenset[str]) -> Any:
    """`value` if its type is allowed, else the text."""
    if value is None:
        return None if "null" in types else text
    if isinstance(value, bool):
        return value if "boolean" in types else text
    if isinstance(value, int):
        return value if types & {"integer", "number"} else text
    if isinstance(value, float):
        if "number" in types:
            return value
        return int(value) if "integer" in types and value.is_integer() else text
    if isinstance(value, dict):
        return value if "object" in types else text
    if isinstance(value, list):
        return value if "array" in types else text
    return text  # a quoted string: the quotes are the model's


def _parse(text: str, is_python: bool) -> Any:
    try:
        value = json.loads(text, parse_float=_number, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return _parse_python(text.strip()) if is_python else _FAILED
    return _FAILED if isinstance(value, WrittenNumber) else value


def _number(text: str) -> float | WrittenNumber:
    value = float(text)
    return value if math.isfinite(value) else WrittenNumber(text)


def _refuse(constant: str) -> Any:
    raise ValueError(f"JSON has no {constant}")


def _parse_python(text: str) -> Any:
    if text in _PYTHON:
        return _PYTHON[text]
    if text[:1] not in ("{", "["):
        return _FAILED
    try:
        value = ast.literal_eval(text)
        json.dumps(value, allow_nan=False)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return _FAILED
    return value if isinstance(value, dict | list) else _FAILED


def _resolved(node: Any, root: Any) -> Any:
    """`node`, or what its `$ref` points at; a reference that leads nowhere says nothing."""
    for _ in range(_MAX_DEPTH):
        if not isinstance(node, Mapping) or not isinstance(node.get("$ref"), str):
            return node
        reference, node = node["$ref"], root
        if not reference.startswith("#"):
            return {}
        for part in reference[1:].split("/")[1:]:
            step = part.replace("~1", "/").replace("~0", "~")
            node = node.get(step) if isinstance(node, Mapping) else None
    return {}


def _members(node: Mapping[str, Any], keyword: str) -> Sequence[Any]:
    """The schemas under `anyOf`, `oneOf` or `allOf`."""
    members = node.get(keyword)
    return members if isinstance(members, list | tuple) else ()


def _alternatives(node: Any, root: Any) -> list[Mapping[str, Any]]:
    """The schema and everything that it is put together from, references resolved, each once."""
    found: dict[int, Mapping[str, Any]] = {}
    waiting = [node]
    while waiting:
        current = _resolved(waiting.pop(0), root)
        if isinstance(current, Mapping) and id(current) not in found:
            found[id(current)] = current
            waiting += [one for keyword in ("anyOf", "oneOf", "allOf") for one in _members(current, keyword)]
    return list(found.values())


def _types(node: Any, root: Any, known: dict[int, frozenset[str] | None], depth: int = 0) -> frozenset[str] | None:
    """The types that a schema allows; empty: it doesn't say; None: it refers to a schema that is being looked at.

    `known`: what has been found, by node, so that no node is looked at twice however often it is referred to.
    """
    node = _resolved(node, root)
    if not isinstance(node, Mapping) or depth > _MAX_DEPTH:
        return frozenset()
    if id(node) in known:
        return known[id(node)]
    known[id(node)] = None
    types = _own_types(node)
    for keyword in ("anyOf", "oneOf"):
        found = [one for one in (_types(m, root, known, depth + 1) for m in _members(node, keyword)) if one is not None]
        types = _both(types, frozenset().union(*found) if all(found) else frozenset())
    for member in _members(node, "allOf"):
        types = _both(types, _types(member, root, known, depth + 1) or frozenset())
    known[id(node)] = types | {"null"} if types and node.get("nullable") is True else types
    return known[id(node)]


def _both(left: frozenset[str], right: frozenset[str]) -> frozenset[str]:
    """What two statements about a type leave; one that says nothing leaves the other."""
    return left & right if left and right else left or right


def _own_types(node: Mapping[str, Any]) -> frozenset[str]:
    stated = node.get("type")
    values = node["enum"] if isinstance(node.get("enum"), list) else [node["const"]] if "const" in node else []
    listed = frozenset(_type_of(value) for value in values)
    if isinstance(stated, str):
        return frozenset({stated})
    if isinstance(stated, Sequence):
        types = frozenset(one for one in stated if isinstance(one, str))
        if "number" in types and "integer" in listed:
            listed |= {"number"}
        return types & listed or types
    if listed:
        return listed
    if "properties" in node:
        return frozenset({"object"})
    return frozenset({"array"}) if "items" in node else frozenset()


def _type_of(value: Any) -> str:
    names: dict[type, str] = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array"}
    return "null" if value is None else names.get(type(value), "object")
