"""Objects that a JSON Schema puts together from parts, as objects of their own.

Owns writing `allOf`, `$ref` and `anyOf` or `oneOf` beside members as one object, or as a choice of objects. Of one
object a grammar can say that it has no other members, and hold all its strings; of the meeting of several it can not.
What is no plain object is left as it is. Knows neither grammars nor wire formats.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from typing import Any

from atom.entrypoints.openai.answer_grammar.references import target_of
from atom.entrypoints.openai.answer_grammar.schema_tree import NOTES, mapped, nodes

_MOST_PARTS = 64
_MOST_PASSES = 8
_PLAIN = frozenset(("type", "properties", "required", "additionalProperties"))
# Where a reference may lead, so that it still leads there when objects have been put together.
_KEPT_PLACES = re.compile(r"#(?:/(?:\$defs|definitions)/[^/]+)?")

Node = dict[str, Any]


def put_together(schema: Any) -> Any:
    """An equal schema, in which objects that were made of parts are single ones where that can be said."""
    references = [node["$ref"] for _, node in nodes(schema) if "$ref" in node]
    if not all(isinstance(reference, str) and _KEPT_PLACES.fullmatch(reference) for reference in references):
        return schema
    for _ in range(_MOST_PASSES):  # what a reference led to may itself hold objects made of parts
        before, schema = schema, mapped(schema, partial(_as_one, root=schema))
        if schema == before:
            break
    return schema


def _as_one(node: Node, root: Any) -> Node:
    choice = next((keyword for keyword in ("anyOf", "oneOf") if isinstance(node.get(keyword), list)), None)
    is_made_of_parts = "allOf" in node or (_PLAIN & set(node) and ("$ref" in node or choice is not None))
    if not is_made_of_parts or "$id" in node:
        return node
    parts = _parts({key: value for key, value in node.items() if key != choice}, root)
    if parts is None:
        return node
    made: Node | None
    if choice is None:
        made = _joined(parts, root)
    else:
        options = [_parts(option, root) for option in node[choice]]
        objects = [None if option is None else _joined([*parts, *option], root) for option in options]
        made = None if None in objects else {choice: objects}
    return node if made is None else {**{key: value for key, value in node.items() if key in NOTES}, **made}


def _parts(node: Any, root: Any) -> list[Node] | None:
    """The plain objects that a schema is the meeting of; None when something else is among them, or too many."""
    found: list[Node] = []
    waiting = [node]
    while waiting:
        part = waiting.pop(0)
        if not isinstance(part, dict) or ("$id" in part and part is not node) or len(found) >= _MOST_PARTS:
            return None
        if set(part) - NOTES - _PLAIN - {"$ref", "allOf"} or part.get("nullable"):
            return None
        if part.get("type", "object") != "object" or part.get("additionalProperties", True) is not True:
            return None
        members, required, parts = part.get("properties", {}), part.get("required", []), part.get("allOf", [])
        if not (isinstance(members, dict) and isinstance(parts, list) and isinstance(required, list)):
            return None
        if not all(isinstance(name, str) for name in required):
            return None
        found.append(part)
        referred = [target_of(part["$ref"], root)] if "$ref" in part else []
        waiting = [*referred, *parts, *waiting]
    return found


def _joined(parts: Iterable[Node], root: Any) -> Node | None:
    """One object that is all of the parts; None when none of them speaks of an object."""
    made: Node = {}
    properties: Node = {}
    required: dict[str, None] = {}
    for part in parts:
        made |= {key: part[key] for key in ("type", "additionalProperties") if key in part}
        required |= dict.fromkeys(part.get("required", ()))
        for name, schema in part.get("properties", {}).items():
            known = properties.get(name, True)
            properties[name] = schema if known in (True, schema) else _as_one({"allOf": [known, schema]}, root)
    if not properties and "type" not in made:
        return None
    made |= {"properties": properties} if properties else {}
    return made | ({"required": list(required)} if required else {})
