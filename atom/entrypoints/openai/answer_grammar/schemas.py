"""JSON Schemas on their way into a grammar: are they understood, and what is added to them.

Owns the refusal of what can not be enforced, by its keyword; string formats as patterns; strings that certain literals
must not occur in; and a part of a schema as a schema of its own. Knows no wire format.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from itertools import islice
from typing import Any

import llguidance

from atom.entrypoints.openai.answer_grammar.free_text import texts_without
from atom.entrypoints.openai.answer_grammar.keywords import check_keywords
from atom.entrypoints.openai.answer_grammar.numbers import check_anywhere, check_numbers, with_near_bounds
from atom.entrypoints.openai.answer_grammar.parts import put_together
from atom.entrypoints.openai.answer_grammar.references import check_ends
from atom.entrypoints.openai.answer_grammar.schema_tree import NOTES, SchemaError, mapped, nodes
from atom.entrypoints.openai.answer_grammar.string_formats import STRING_FORMATS

MOST_LEVELS = 128
_MOST_PLACES = 300  # that are tried in the search for what is wrong
_ROOT, _ANY = "atom:root", {"$ref": "#/$defs/atom:any"}
_COMBINING = frozenset(("anyOf", "oneOf", "$ref"))
_OWN = {
    "object": ("properties", "additionalProperties", "patternProperties", "required"),
    "string": ("minLength", "maxLength", "pattern"),
    "array": ("minItems", "maxItems"),
}
_NOT_FOR_THE_LIBRARY = ("default", "examples", "x-guidance")  # the last would change how strict it is
_LIMITS = llguidance.LLParserLimits(verbose_errors=False)
_UNKNOWN_KEYWORDS = re.compile(r'Unimplemented keys: \["([^"]+)"')
_LIBRARY_WORDS = re.compile(r"^at \d+\(\d+\): (?:failed to compile JSON schema: )?")


def enforceable(schema: Any) -> Any:
    """The schema, with objects of parts put together.

    Raises SchemaError when it is none, can not be met, or has a keyword that is not supported.
    """
    if not isinstance(schema, dict | bool):
        raise SchemaError("a JSON Schema is an object")
    _check_depth(schema)
    check_keywords(schema)
    check_ends(schema)
    for place, node in nodes(schema):
        check_numbers(node, place)
    whole = put_together(schema)
    check_anywhere(with_formats(whole))
    message = _refusal(closed(whole))
    if message is not None:
        raise SchemaError(_explained(message, schema))
    return whole


def _refusal(schema: Any) -> str | None:
    """What the library has against a schema."""
    is_error, messages = llguidance.LLMatcher.validate_grammar_with_warnings(
        f"start: %json {json.dumps(with_formats(schema))}", limits=_LIMITS
    )
    return str(messages[0]) if is_error else None


def _explained(message: str, schema: Any) -> str:
    """The library's message in the terms of whoever wrote the schema, with the place that it is about."""
    unknown = _UNKNOWN_KEYWORDS.search(message)
    if unknown is not None:
        keyword = unknown[1]
        place = next((place for place, node in nodes(schema) if keyword in node), "#")
        return f"the keyword {keyword!r} (at {place}) is not supported"
    place, node, message = _innermost_refused(message, schema)
    if "regex parse error" in message and "pattern" in node:
        return f"'pattern' (at {place}): {message.partition('error: ')[2].splitlines()[0]}"
    if "coerce_one_of" in message:
        return f"'oneOf' (at {place}) is supported where its options can not overlap; 'anyOf' always is"
    return said(message) if place == "#" else f"{said(message)} (at {place})"


def said(message: str) -> str:
    """The library's message without the grammar that it quotes."""
    return _LIBRARY_WORDS.sub("", message.partition("\n   1 |")[0]).replace(f"/$defs/{_ROOT}", "").strip()


def _innermost_refused(message: str, schema: Any) -> tuple[str, dict[str, Any], str]:
    """A smallest subschema that is refused by itself: its place, and what the library has against it."""
    refused: list[tuple[str, dict[str, Any], str]] = []
    for place, node in islice(nodes(schema), _MOST_PLACES):
        against = _refusal(embedded(node, schema))
        if against is not None:
            refused = [one for one in refused if not place.startswith(f"{one[0]}/")]
            refused.append((place, node, against))
    named = [one for one in refused if "$ref" not in one[1]]
    return next(iter(named or refused), ("#", schema if isinstance(schema, dict) else {}, message))


def _check_depth(schema: Any) -> None:
    pending = [(schema, 0)]
    while pending:
        node, depth = pending.pop()
        if depth > MOST_LEVELS:
            raise SchemaError(f"the schema is nested more than {MOST_LEVELS} levels deep")
        below = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
        pending += ((one, depth + 1) for one in below)


def with_formats(schema: Any) -> Any:
    """The schema with known string formats as patterns and bounds that can be held, without what only makes notes."""

    def change(node: dict[str, Any]) -> dict[str, Any]:
        name = node.pop("format", None)
        for keyword in _NOT_FOR_THE_LIBRARY:
            node.pop(keyword, None)
        node = with_near_bounds(node)
        return _with_patterns(node, STRING_FORMATS.get(name, "") if isinstance(name, str) else "")

    return mapped(schema, change)


def closed(schema: Any) -> Any:
    """The schema, of objects that have no members but those it names, where it names some and is silent on others.

    Nothing changes in a schema that puts objects together from parts: no part knows the members of the others.
    """
    if any("allOf" in node or ("properties" in node and _COMBINING & set(node)) for _, node in nodes(schema)):
        return schema

    def change(node: dict[str, Any]) -> dict[str, Any]:
        is_silent = not {"additionalProperties", "patternProperties"} & set(node)
        return {**node, "additionalProperties": False} if node.get("properties") and is_silent else node

    return mapped(schema, change)


def guarded(schema: Any, literals: tuple[str, ...]) -> Any:
    """The schema, of JSON in whose strings none of the literals occurs as it is written.

    The same holds for the keys of objects, unless they may have members beside those that the schema names.
    """
    patterns = texts_without(literals)
    if not patterns:
        return schema

    def change(node: dict[str, Any]) -> dict[str, Any]:
        if not set(node) - NOTES:
            return {**node, **_ANY}
        if "$ref" in node or "enum" in node or "const" in node:
            return node
        if _may_be(node, "string"):
            node = _with_patterns(node, *patterns)
        if _may_be(node, "array") and not {"items", "prefixItems"} & set(node):
            node = {**node, "items": _ANY}
        if _may_be(node, "object"):
            node = _with_guarded_keys(node, patterns)
        return node

    changed = mapped(schema, change, opens=True)
    if _ANY["$ref"] not in json.dumps(changed):
        return changed
    return {**changed, "$defs": {**changed.get("$defs", {}), "atom:any": _anything(patterns)}}


def _anything(patterns: tuple[str, ...]) -> dict[str, Any]:
    return {
        "anyOf": [
            _with_patterns({"type": "string"}, *patterns),
            {"type": ["number", "boolean", "null"]},
            {"type": "array", "items": _ANY},
            _with_guarded_keys({"type": "object"}, patterns),
        ]
    }


def _with_guarded_keys(node: dict[str, Any], patterns: tuple[str, ...]) -> dict[str, Any]:
    extra = node.get("additionalProperties", _ANY)
    if extra is False:
        return node
    if {"properties", "required", "patternProperties"} & set(node) or len(patterns) > 1:
        return {**node, "additionalProperties": extra}
    return {**node, "patternProperties": {f"^{patterns[0]}$": extra}, "additionalProperties": False}


def _may_be(node: Mapping[str, Any], kind: str) -> bool:
    stated = node.get("type")
    if isinstance(stated, str):
        return stated == kind
    if isinstance(stated, list):
        return kind in stated
    return any(keyword in node for keyword in _OWN[kind])


def _with_patterns(node: dict[str, Any], *expressions: str) -> dict[str, Any]:
    """The node, with every one of the expressions as a pattern."""
    patterns = [f"^{expression}$" for expression in expressions if expression]
    if not patterns:
        return node
    if "pattern" not in node:
        node = {**node, "pattern": patterns.pop(0)}
    if patterns:
        node = {**node, "allOf": [*node.get("allOf", []), *({"pattern": pattern} for pattern in patterns)]}
    return node


def embedded(node: Any, root: Any) -> Any:
    """A part of the schema `root` that stands on its own."""
    if not isinstance(node, dict) or node is root or '"$ref"' not in json.dumps(node):
        return node

    def change(inner: dict[str, Any]) -> dict[str, Any]:
        inner = {key: value for key, value in inner.items() if key not in ("$id", "$schema")}
        reference = inner.get("$ref")
        if isinstance(reference, str) and reference.startswith("#"):
            inner["$ref"] = f"#/$defs/{_ROOT}{reference[1:]}"
        return inner

    return {**mapped(node, change), "$defs": {_ROOT: mapped(root, change)}}
