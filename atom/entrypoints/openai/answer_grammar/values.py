"""A tool's arguments where each is written between tags of its own.

Owns the grammar of such arguments: which there are, and how each value is written by its schema and by the tables of
the format: strings as they stand, other values as JSON, objects and arrays as nested elements where the format has
them. What is written is what the format's reader takes for a value of the schema. Knows no format by name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from atom_spec.formats import Form, Grammar, Writing

from atom.entrypoints.openai.answer_grammar.lark import Rules, choice, escaped, quoted
from atom.entrypoints.openai.answer_grammar.schema_tree import NOTES, SchemaError
from atom.entrypoints.openai.answer_grammar.schemas import closed, embedded, guarded, with_formats
from atom.entrypoints.openai.answer_grammar.shapes import Shape, resolved, shapes_of
from atom.entrypoints.openai.answer_grammar.texts import text_terminal
from atom.entrypoints.openai.tool_parser.schema import Schema, coerce

SEPARATORS = {"item_separator": ", ?", "key_separator": ": ?", "whitespace_flexible": False}
_TEXT_KEYWORDS = frozenset(("type", "minLength", "maxLength", "pattern", "format"))
_PLAIN_KEYWORDS = frozenset(("type",)) | NOTES
_WORDS = {"null": ("null",), "boolean": ("true", "false")}
_WIRE_TYPES = {"integer": "number"}
# What no tag can quote.
_BAD_KEY = re.compile(r"[\n<>\"]")
_BAD_ELEMENT = re.compile(r"[\n<>\"'=]|^[\s/]")
# A number that a reader can hold.
_NUMBER = r"/-?(?:0|[1-9][0-9]{0,99})(?:\.[0-9]{1,99})?(?:[eE][+\-]?[0-9]{1,2})?/"
_FREE_KEY = r"[A-Za-z_][A-Za-z0-9_\-]{0,63}"

Option = tuple[str, str]  # the JSON type that the wire is told, and the body of the value with what follows it
Part = tuple[str, Any]  # "literals" and a list of values, or a JSON type and a schema of that type alone


class ArgumentRules:
    """The arguments of one tool. `root`: its schema, which references point into."""

    def __init__(self, rules: Rules, form: Form, writing: Writing, grammar: Grammar, root: Any) -> None:
        assert form.argument is not None
        self._rules = rules
        self._template = form.argument
        self._separator = form.argument_separator
        self._writing = writing
        self._grammar = grammar
        self._root = root
        self._escapes = [(meant, written) for written, meant in reversed(grammar.values.escapes)]
        self._text = rules.text_without(writing.never_in_string)
        self._says_type = "{type}" in form.argument or "{is_string}" in form.argument
        self._root_schema = with_formats(root)
        self._elements: dict[str, str] = {}

    def all(self) -> str:
        """The body of everything between the call's tags. Raises SchemaError."""
        shapes = shapes_of(self._root, self._root, is_open=False)
        if not shapes:
            raise SchemaError("no arguments can meet the schema")
        return choice(self._members(shape, self._template, self._separator) for shape in shapes)

    def escaped(self, text: str) -> str:
        """A text as it is written where the format escapes it."""
        for meant, written in self._escapes:
            text = text.replace(meant, written)
        return text

    # ---- members

    def _members(self, shape: Shape, template: str, separator: str) -> str:
        names = [*shape.properties, *(name for name in sorted(shape.required) if name not in shape.properties)]
        missing = [name for name in names if name not in shape.properties]
        if missing and shape.extra is False:
            raise SchemaError(f"{missing[0]!r} is required, but no property of that name is allowed")
        free = None
        # What can only be closed by its name is left out, where there are others to write.
        if shape.extra is not False and not (names and "{key" in template.partition("{value}")[2]):
            free = [self._free_member(names, shape.extra, lead + template) for lead in ("", separator)]
        members = [
            ([self._member(name, shape.properties.get(name, shape.extra), template, lead) for lead in ("", separator)])
            for name in names
        ]
        return self._sequence(members, [name in shape.required for name in names], free, separator)

    def _sequence(self, members: list[list[str]], required: list[bool], free: list[str] | None, separator: str) -> str:
        """Members in their order, those that need not be there left out at will, then any number of free ones.

        Each comes without and with the separator before it: the two must be one literal, since a literal that another
        one begins with is never taken for itself.
        """
        if not separator:
            pairs = zip(members, required, strict=True)
            written = [body if is_required else f"( {body} )?" for (body, _), is_required in pairs]
            written += [] if free is None else [f"( {free[0]} )*"]
            return " ".join(written) or quoted("")
        more = quoted("") if free is None else self._rules.rule(f"( {free[1]} )*")
        first = quoted("") if free is None else self._rules.rule(f"( {free[0]} {more} )?")
        for (bare, separated), is_required in zip(reversed(members), reversed(required), strict=True):
            first = self._rules.rule(f"{bare} {more}" if is_required else f"{bare} {more} | {first}")
            more = self._rules.rule(f"{separated} {more}" if is_required else f"{separated} {more} | {more}")
        return first

    def _member(self, key: str, node: Any, template: str, lead: str = "") -> str:
        """One argument, or one element, with its tags; `lead` before them."""
        if not _can_be_key(key, template):
            raise SchemaError(f"the property name {key!r} can not be written in this model's call format")
        before, after = (self._keyed(half, key) for half in template.split("{value}"))
        by_head: dict[str, list[str]] = {}
        for wire_type, body in self._options(node, after):
            by_head.setdefault(lead + self._typed(before, wire_type), []).append(body)
        return self._rules.rule(" | ".join(f"{quoted(head)} {choice(bodies)}" for head, bodies in by_head.items()))

    def _free_member(self, names: Iterable[str], node: Any, template: str) -> str:
        """A member of a name that the schema leaves open; its closing tag must not need the name."""
        before, after = template.split("{value}")
        if "{key" in after:
            raise SchemaError("arguments without names of their own are not supported for this model's call format")
        known = "|".join(escaped(name) for name in names)
        key = f"(/{_FREE_KEY}/" + (f" & ~/(?:{known})/)" if known else ")")
        head, rest = re.split(r"\{key(?:\|\w+)?\}", before)
        options = []
        for kind, body in self._options(node, after):
            tag = f"{quoted(self._typed(head, kind))} {key} {quoted(self._typed(rest, kind))}"
            options.append(f"{self._rules.terminal(tag)} {body}")
        return choice(options)

    def _keyed(self, half: str, key: str) -> str:
        return half.replace("{key|attribute}", self.escaped(key)).replace("{key}", key)

    @staticmethod
    def _typed(text: str, kind: str) -> str:
        said = text.replace("{type}", _WIRE_TYPES.get(kind, kind))
        return said.replace("{is_string}", "true" if kind == "string" else "false")

    # ---- values

    def _options(self, node: Any, after: str) -> list[Option]:
        """How a value of this schema may be written, `after` behind it."""
        node = resolved(node, self._root)
        types = Schema(node, self._root).types()
        if types and "string" not in types:
            return self._data(node, types, after)
        if types:
            return self._with_text(self._parts(node), after)
        return self._untyped(node, after)

    def _data(self, node: Any, types: frozenset[str], after: str) -> list[Option]:
        """Values that are never strings."""
        if self._writing.element and types & {"object", "array"}:
            return [option for part in self._parts(node) for option in self._part(part, after)]
        kinds = sorted(types)
        if len(kinds) > 1 and (self._says_type or "number" in types):
            return [option for part in self._parts(node) for option in self._part(part, after)]
        return self._part((kinds[0], node), after)

    def _untyped(self, node: Any, after: str) -> list[Option]:
        """A schema that says nothing of the type: a string, if that can be told apart from other values."""
        if not isinstance(node, dict) or not set(node) - NOTES:
            text = ("string", self._rules.lazy(f"({self._text}) {quoted(after)}"))
            kinds = ("number", "boolean", "null", "object", "array") if self._says_type else ()
            return [text, *(option for kind in kinds for option in self._part((kind, {"type": kind}), after))]
        if self._grammar.values.default == "json" and not self._says_type:
            return [("object", f"{self._json(node)} {quoted(after)}")]
        return self._with_text([("string", node)], after)

    def _with_text(self, parts: list[Part], after: str) -> list[Option]:
        """A string, or one of several types of which one is a string.

        A text that the reader would take for a value of another type must be a value that the schema allows.
        """
        strings = [node for kind, node in parts if kind == "string"]
        others = [part for part in parts if part[0] not in ("string", "literals")]
        literals = [value for kind, values in parts if kind == "literals" for value in values]
        limited = {kind for kind, node in others if set(node) - _PLAIN_KEYWORDS} | {_type_of(one) for one in literals}
        if any(set(node) - _PLAIN_KEYWORDS for node in strings):
            limited |= {kind for kind, _ in others if kind not in _WORDS}
        terminals = [self._string(node, limited) for node in strings]
        schema = Schema({"anyOf": [self._schema_of(part) for part in parts]}, self._root)
        kept = [value for value in literals if self._is_read_as(value, schema)]
        if literals and not kept and not others and not strings:
            raise SchemaError("none of the values of 'enum' can be written in this model's call format")
        terminals += [quoted(value) for value in kept if isinstance(value, str)]
        hidden = {kind for kind, _ in others if strings and not self._says_type and kind not in limited}
        terminals += [quoted(word) for kind in sorted(hidden) for word in _WORDS.get(kind, ())]
        options: list[Option] = []
        if terminals:
            body = terminals[0] if len(terminals) == 1 else f"({' | '.join(terminals)})"
            options.append(("string", self._rules.lazy(f"{body} {quoted(after)}")))
        for value in kept:
            if not isinstance(value, str):
                options.append((_type_of(value), quoted(json.dumps(value, ensure_ascii=False) + after)))
        return options + [option for part in others if part[0] not in hidden for option in self._part(part, after)]

    def _string(self, node: dict[str, Any], limited: set[str]) -> str:
        """The body of a terminal for a string that can not be taken for a value of these types."""
        body = text_terminal(
            self._text,
            node,
            not_numbers=bool(limited & {"integer", "number"}),
            not_containers=bool(limited & {"object", "array"}),
        )
        words = ["[Tt]rue", "[Ff]alse"] * ("boolean" in limited) + ["null", "None"] * ("null" in limited)
        return f"({body} & ~/\\s*(?:{'|'.join(words)})\\s*/)" if words else f"({body})"

    def _part(self, part: Part, after: str) -> list[Option]:
        """One type that is no string."""
        kind, node = part
        if kind in ("literals", "string"):
            return self._with_text([part], after)
        if self._writing.element and kind in ("object", "array"):
            return [(kind, f"{self._nested(node, kind)} {quoted(after)}")]
        if kind == "number" and not set(resolved(node, self._root)) - _PLAIN_KEYWORDS:
            return [(kind, f"{self._rules.terminal(_NUMBER)} {quoted(after)}")]
        return [(kind, f"{self._json(node)} {quoted(after)}")]

    def _nested(self, node: Any, kind: str) -> str:
        """An object or array as elements; as JSON where its schema is more than a list of members or items."""
        key = json.dumps(node)  # a schema that contains itself comes by here again
        known = self._elements.get(key)
        if known is None:
            known = self._elements[key] = self._rules.reserve()
            self._rules.define(known, self._nested_body(node, kind))
        return known

    def _nested_body(self, node: Any, kind: str) -> str:
        element = self._writing.element
        if kind == "array":
            if set(node) - _PLAIN_KEYWORDS - {"items", "minItems", "maxItems"} or not isinstance(
                node.get("items", {}), dict | bool
            ):
                return self._json(node)
            item = self._member(self._writing.item_key, node.get("items", True), element)
            return f"( {item} ){{{int(node.get('minItems', 0))},{int(node['maxItems']) if 'maxItems' in node else ''}}}"
        try:
            shapes = shapes_of(node, self._root, is_open=True)
            return choice(self._members(shape, element, "") for shape in shapes)
        except SchemaError:
            return self._json(node)

    def _json(self, node: Any) -> str:
        alone = closed(embedded(with_formats(node), self._root_schema))
        return self._rules.json(guarded(alone, self._writing.never_in_string), **SEPARATORS)

    # ---- schemas of values that may be strings, taken apart

    def _parts(self, node: Any) -> list[Part]:
        node = resolved(node, self._root)
        if not isinstance(node, dict):
            return [("string", {"type": "string"})]
        stated = node.get("type")
        kinds = [stated] if isinstance(stated, str) else list(stated or ())
        for keyword in ("enum", "const"):
            if keyword in node:
                values = node["enum"] if keyword == "enum" else [node["const"]]
                return [("literals", [value for value in values if not kinds or _is_of(value, kinds)])]
        for keyword in ("anyOf", "oneOf", "allOf"):
            if keyword in node:
                self._check_alone(node, keyword)
                return [part for member in node[keyword] for part in self._parts(member)]
        if not kinds:
            kinds = ["string"] if set(node) & _TEXT_KEYWORDS else sorted(Schema(node, self._root).types()) or ["string"]
        return [(kind, {**node, "type": kind}) for kind in kinds]

    @staticmethod
    def _check_alone(node: dict[str, Any], keyword: str) -> None:
        beside = sorted(set(node) - NOTES - {keyword, "type"})
        if beside:
            raise SchemaError(f"{keyword!r} with {beside[0]!r} is not supported for a value that may be a string")
        if keyword == "allOf" and len(node["allOf"]) > 1:
            raise SchemaError("'allOf' of several schemas is not supported for a value that may be a string")

    @staticmethod
    def _schema_of(part: Part) -> Any:
        kind, node = part
        return {"enum": node} if kind == "literals" else node

    def _is_read_as(self, value: Any, schema: Schema) -> bool:
        """Whether the value, written out, is what the reader takes it for, and can stand there at all."""
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        values, kind = self._grammar.values, _type_of(value)
        wire_type = _WIRE_TYPES.get(kind, kind) if self._says_type else None
        read = coerce(text, schema, wire_type, values.default, values.literals)
        is_safe = not any(literal in text for literal in self._writing.never_in_string)
        return is_safe and read == value and isinstance(read, bool) == isinstance(value, bool)


def _can_be_key(key: str, template: str) -> bool:
    """Whether the tag of an argument can hold the name."""
    if "{key|" in template:
        return bool(key) and "\n" not in key
    return bool(key) and not (_BAD_ELEMENT if "<{key}>" in template else _BAD_KEY).search(key)


def _type_of(value: Any) -> str:
    if value is None:
        return "null"
    names = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}
    return names[type(value)]


def _is_of(value: Any, kinds: list[str]) -> bool:
    kind = _type_of(value)
    return kind in kinds or (kind == "integer" and "number" in kinds)
