"""Realistic tools made of the families, and requests for them.

Owns: names, parameters and wordings of family tools. Does not know: the table grammar (family_tables.py), dialogues,
formats.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from tools.builtin_model.family_tables import HOLE, SLOT, Ask, Family, Field, load_families
from tools.builtin_model.toolset import Parameter, Tool
from tools.builtin_model.values import json_type, make_value, text_of
from tools.builtin_model.words import Words

__all__ = ["FamilyTool", "any_family_tool", "load_families", "make_family_tool"]

_ALTERNATIVES = re.compile(r"\(([^()]*/[^()]*)\)")
_STRAY_SPACE = re.compile(r" +([ .,?!]|$)")
_NUMBER_WORDS = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
]


@dataclass(slots=True)
class FamilyTool:
    """A tool made of a family, able to word requests for itself."""

    family: Family
    tool: Tool
    slots: dict[str, str]

    @property
    def group(self) -> str:
        """Tools of the same group are never declared together."""
        return self.family.group

    def request(self, words: Words) -> tuple[str, dict[str, Any]]:
        """(request, arguments in schema order)."""
        ask = words.choose(self.family.asks)
        text = _ALTERNATIVES.sub(lambda match: words.choose(match.group(1).split("/")), ask.text)
        text = SLOT.sub(lambda match: self.slots[match.group(1)], text)
        text = _STRAY_SPACE.sub(r"\1", text).strip()
        surfaces: dict[str, str] = {}
        arguments = _arguments(words, self.tool.parameters, ask, "", surfaces)
        text = HOLE.sub(lambda match: surfaces[match.group(1)], text)
        text = text if ask.text.startswith("{") else rephrase(words, text, ask.is_fixed)
        return (f"{words.phrase('chatter')} {text}" if words.chance(0.04) else text), arguments


def _arguments(
    words: Words, parameters: list[Parameter], ask: Ask, prefix: str, surfaces: dict[str, str]
) -> dict[str, Any]:
    """Values for every parameter that the ask states or implies; fills `surfaces` with the wording of stated ones."""
    arguments: dict[str, Any] = {}
    for parameter in parameters:
        key = prefix + parameter.key
        if parameter.fields:
            nested = _arguments(words, parameter.fields, ask, f"{key}.", surfaces)
            if nested:
                arguments[parameter.name] = nested
        elif key in ask.implied:
            arguments[parameter.name] = ask.implied[key]
        elif key in ask.keys:
            arguments[parameter.name], surfaces[key] = _stated(words, parameter, ask.text, "{" + key + "}")
    return arguments


def _stated(words: Words, parameter: Parameter, text: str, hole: str) -> tuple[Any, str]:
    """A value and its wording at its place in the request."""
    if parameter.surfaces:
        value = words.choose(list(parameter.surfaces))
        return value, words.choose(parameter.surfaces[value])
    value = make_value(words, parameter.kind)
    start = text.find(hole)
    before, after = text[start - 1 : start], text[start + len(hole) : start + len(hole) + 1]
    stands_alone = before in ("", " ") and after in ("", " ", ".", "?")
    if parameter.kind == "sentence" and not text.endswith(hole) and before != '"':
        value = value.rstrip(".!?")  # nothing would show where the value ends
    elif parameter.kind.startswith("int") and 0 < value < len(_NUMBER_WORDS) and stands_alone and words.chance(0.1):
        return value, _NUMBER_WORDS[value]
    elif parameter.kind == "money" and stands_alone and words.chance(0.15):
        return value, f"${value}"
    return value, text_of(words, value)


def rephrase(words: Words, text: str, is_fixed: bool) -> str:
    """The request with a capital, at times lower case, without its end mark, or as a polite question."""
    roll = words.random()
    if not is_fixed and text.endswith(".") and roll < 0.3 and text[:2] not in ("I ", "I'", "My"):
        return _politely(words.phrase("polite"), text)
    if roll < 0.88:
        return text[:1].upper() + text[1:]
    if roll < 0.94 and text[-1:] in ".?":
        return text[:-1]
    return text if _starts_with_name(text) else text[:1].lower() + text[1:]


def _politely(form: str, text: str) -> str:
    ends_itself = form[-1] in "?." and not form.endswith("? {}")
    body = text[:-1] if ends_itself else text
    if not form.startswith(("Hi!", "Can you help", "{}")) and not _starts_with_name(body):
        body = body[:1].lower() + body[1:]
    return form.format(body)


def _starts_with_name(text: str) -> bool:
    """Whether the first word must keep its capital: it is all capitals, "I", or no plain word."""
    first = text.split(" ", 1)[0]
    return first in ("I", "I'm") or not first[1:].islower() or not first.isalpha()


def any_family_tool(words: Words) -> FamilyTool:
    """A tool of any family."""
    return make_family_tool(words, words.choose(load_families()))


def make_family_tool(words: Words, family: Family) -> FamilyTool:
    """A tool of the family with names, descriptions and slots drawn at random."""
    slots = {slot: (words.choose(slot.split("/")) if "/" in slot else words.pick(slot)) for slot in family.slots}

    def identifier(text: str) -> str:
        return SLOT.sub(lambda match: re.sub(r"[ -]", "_", slots[match.group(1)]).lower(), text)

    description = words.choose(family.descriptions) if words.chance(0.92) else ""
    description = SLOT.sub(lambda match: slots[match.group(1)], description)
    parameters: list[Parameter] = []
    parents: dict[str, Parameter] = {}
    used: dict[str, set[str]] = {}
    for field in family.fields:
        taken = used.setdefault(field.parent, set())
        options = [alias for alias in field.aliases if alias not in taken] or [field.aliases[0] + "_2"]
        alias = options[0] if words.chance(0.4) else words.choose(options)
        taken.add(alias)
        parameter = _parameter(words, field, identifier(alias))
        if field.kind == "object":
            parents[field.aliases[0]] = parameter
        (parents[field.parent].fields if field.parent else parameters).append(parameter)
    name = _case(words, identifier(words.choose(family.names)))
    return FamilyTool(family, Tool(name, description, parameters), slots)


def _case(words: Words, name: str) -> str:
    """Mostly snake_case, at times camelCase or with dashes."""
    roll = words.random()
    if roll < 0.9 or "_" not in name:
        return name
    if roll < 0.96:
        first, *rest = name.split("_")
        return first + "".join(part.capitalize() for part in rest)
    return name.replace("_", "-")


def _parameter(words: Words, field: Field, name: str) -> Parameter:
    if field.kind == "enum":
        schema: dict[str, Any] = {"type": "string", "enum": [value for value, _ in field.choices]}
    else:
        schema = {"type": "object"} if field.kind == "object" else json_type(field.kind)
    description = words.choose(field.descriptions) if field.descriptions and words.chance(0.5) else ""
    if description:
        schema["description"] = description
    is_required = field.is_required or words.chance(0.15)
    surfaces = {value: list(texts) for value, texts in field.choices}
    return Parameter(field.aliases[0], name, field.kind, schema, is_required, surfaces)
