"""Realistic tools from data/families/*.txt: parsing the tables, making a tool of a family, and wording a request for it.

Owns: the table grammar (data/families/README.md). Does not know: dialogues, formats, invented tools.
"""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass
from typing import Any

from tools.builtin_model.toolset import Parameter, Tool
from tools.builtin_model.values import json_type, make_value, text_of
from tools.builtin_model.words import DATA, Words

_SLOT = re.compile(r"<([^<>]+)>")
_ALTERNATIVES = re.compile(r"\(([^()]*/[^()]*)\)")
_HOLE = re.compile(r"\{([\w.]+)\}")
_STRAY_SPACE = re.compile(r" +([ .,?!]|$)")
_LAST_ITEM = re.compile(r"^(.*?)\s*\[(.*)\]$")


@dataclass(frozen=True, slots=True)
class Ask:
    """One wording. `implied`: arguments that the words imply. `is_fixed`: never rephrased as a polite request."""

    text: str
    implied: dict[str, Any]
    is_fixed: bool
    keys: frozenset[str]


@dataclass(frozen=True, slots=True)
class Field:
    """One parameter line of a family."""

    aliases: tuple[str, ...]
    kind: str
    descriptions: tuple[str, ...]
    is_required: bool
    parent: str
    choices: tuple[tuple[Any, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class Family:
    """A tool in several wordings. Families of one `group` are never declared together."""

    names: tuple[str, ...]
    descriptions: tuple[str, ...]
    group: str
    fields: tuple[Field, ...]
    asks: tuple[Ask, ...]
    slots: tuple[str, ...]


@functools.cache
def load_families() -> tuple[Family, ...]:
    """All families; ValueError with the file and the header for a malformed one."""
    families: list[Family] = []
    for path in sorted((DATA / "families").glob("*.txt")):
        for block in re.split(r"\n\s*\n", path.read_text(encoding="utf-8").strip()):
            try:
                families.append(_parse(block.splitlines()))
            except (ValueError, KeyError, IndexError) as error:
                raise ValueError(f"{path.name}: {block.splitlines()[0]}: {error}") from error
    return tuple(families)


def _parse(lines: list[str]) -> Family:
    names, _, rest = lines[0].partition(" :: ")
    descriptions, _, group = rest.partition(" @")
    fields = tuple(_parse_field(line) for line in lines[1:] if not line.startswith(">"))
    asks = tuple(_parse_ask(line) for line in lines[1:] if line.startswith(">"))
    known = {(f"{f.parent}." if f.parent else "") + f.aliases[0] for f in fields}
    for ask in asks:
        if ask.keys - known or set(ask.implied) - known:
            raise ValueError(f"unknown parameter in {ask.text!r}")
    if not asks or not rest:
        raise ValueError("a family needs a description and requests")
    return Family(
        tuple(names.split("|")),
        tuple(descriptions.split("|")),
        group.strip() or names,
        fields,
        asks,
        tuple(dict.fromkeys(_SLOT.findall("\n".join(lines)))),
    )


def _parse_field(line: str) -> Field:
    head, _, rest = line.partition(": ")
    kind, _, descriptions = rest.partition("~")
    kind = kind.strip()
    is_required = not head.endswith("?")
    aliases = head.rstrip("?").split("|")
    parent, dot, first = aliases[0].rpartition(".")
    choices: tuple[tuple[Any, tuple[str, ...]], ...] = ()
    if kind.startswith("enum("):
        pairs = [item.partition("=") for item in kind[5:-1].split("|")]
        choices = tuple((value, tuple(surface.split("/")) if surface else (value,)) for value, _, surface in pairs)
        kind = "enum"
    elif kind.startswith("bool("):
        choices = tuple(zip((True, False), ((surface,) for surface in kind[5:-1].split("|")), strict=True))
        kind = "bool"
    names = (first, *aliases[1:]) if dot else tuple(aliases)
    texts = tuple(text.strip() for text in descriptions.split("|")) if descriptions.strip() else ()
    return Field(tuple(name.rstrip("?") for name in names), kind, texts, is_required, parent, choices)


def _parse_ask(line: str) -> Ask:
    is_fixed = line.startswith(">=")
    text = (line[2:].strip() if is_fixed else line[1:].strip()).replace("\\n", "\n")
    implied: dict[str, Any] = {}
    match = _LAST_ITEM.match(text)
    if match and "=" in match.group(2):
        text = match.group(1)
        for item in match.group(2).split(", "):
            key, _, value = item.partition("=")
            implied[key] = json.loads(value)
    return Ask(text, implied, is_fixed, frozenset(_HOLE.findall(text)))


@dataclass(slots=True)
class FamilyTool:
    """A tool made of a family, able to word requests for itself."""

    family: Family
    tool: Tool
    slots: dict[str, str]

    @property
    def group(self) -> str:
        return self.family.group

    def request(self, words: Words) -> tuple[str, dict[str, Any]]:
        """(request, arguments in schema order)."""
        ask = words.choose(self.family.asks)
        text = _ALTERNATIVES.sub(lambda match: words.choose(match.group(1).split("/")), ask.text)
        text = _SLOT.sub(lambda match: self.slots[match.group(1)], text)
        text = _STRAY_SPACE.sub(r"\1", text).strip()
        surfaces: dict[str, str] = {}
        arguments = _arguments(words, self.tool.parameters, ask, "", surfaces)
        text = _HOLE.sub(lambda match: surfaces[match.group(1)], text)
        text = text if ask.text.startswith("{") else rephrase(words, text, ask.is_fixed)
        return (f"{words.choose(_CHATTER)} {text}" if words.chance(0.04) else text), arguments


def _arguments(
    words: Words, parameters: list[Parameter], ask: Ask, prefix: str, surfaces: dict[str, str]
) -> dict[str, Any]:
    """Values for every parameter that the ask states or implies; fills `surfaces` with the wording of the stated ones."""
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
            if parameter.surfaces:
                value = words.choose(list(parameter.surfaces))
                surfaces[key] = words.choose(parameter.surfaces[value])
            else:
                value = make_value(words, parameter.kind)
                surfaces[key] = text_of(words, value)
                if (
                    parameter.kind.startswith("int")
                    and 0 < value < len(_NUMBER_WORDS)
                    and words.chance(0.1)
                    and _is_word(ask.text, key)
                ):
                    surfaces[key] = _NUMBER_WORDS[value]
                if parameter.kind == "sentence" and not _is_delimited(ask.text, key):
                    value = surfaces[key] = value.rstrip(".!?")
            arguments[parameter.name] = value
    return arguments


_NUMBER_WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_CHATTER = ("I have a question.", "Good morning!", "Quick question:", "I am planning my day.", "My boss asked me for something.", "Listen.", "Thanks for your help so far.",
            "Sorry to bother you.", "I am in a hurry.", "Hi there.", "One more thing:", "Let me see.")  # fmt: skip


def _is_word(text: str, key: str) -> bool:
    """Whether a number stands between spaces in a request, so that it may be written out."""
    hole = "{" + key + "}"
    start = text.find(hole)
    return text[start - 1 : start] in (" ", "") and text[start + len(hole) : start + len(hole) + 1] in (
        " ",
        ".",
        "?",
        "",
    )


def _is_delimited(text: str, key: str) -> bool:
    """Whether a request shows where the value ends: it is quoted, or the request ends with it."""
    hole = "{" + key + "}"
    return text.endswith(hole) or f'"{hole}"' in text


_POLITE = ("Please {}", "Can you {}?", "Could you {}?", "I want you to {}.", "Would you {}?", "I need you to {}.", "Hi! {}", "Hello, {}", "{} Thanks!",
           "Hey, {}", "{}, please.", "Could you please {}?", "Can you help me? {}", "ok, {}", "Now {}")  # fmt: skip


def rephrase(words: Words, text: str, is_fixed: bool) -> str:
    """The request with a capital, at times lower case, without its end mark, or as a polite question."""
    roll = words.random()
    if not is_fixed and text.endswith(".") and roll < 0.3 and text[:2] not in ("I ", "I'", "My"):
        form = words.choose(_POLITE)
        body = text[:-1] if form[-1] in "?." and form != "Can you help me? {}" else text
        lowered = (
            body[:1].lower() + body[1:]
            if not form.startswith(("Hi!", "Can you help", "{}")) and not _starts_with_name(body)
            else body
        )
        return form.format(lowered)
    if roll < 0.88:
        return text[:1].upper() + text[1:]
    return (
        text[:-1]
        if roll < 0.94 and text[-1:] in ".?"
        else (text[:1].lower() + text[1:] if not _starts_with_name(text) else text)
    )


def _starts_with_name(text: str) -> bool:
    """Whether the first word must keep its capital: it is all capitals, "I", or no plain word."""
    first = text.split(" ", 1)[0]
    return first in ("I", "I'm") or not first[1:].islower() or not first.isalpha()


def make_family_tool(words: Words, family: Family) -> FamilyTool:
    """A tool of the family with names, descriptions and slots drawn at random."""
    slots = {slot: (words.choose(slot.split("/")) if "/" in slot else words.pick(slot)) for slot in family.slots}
    name = _SLOT.sub(
        lambda match: slots[match.group(1)].replace(" ", "_").replace("-", "_").lower(), words.choose(family.names)
    )
    description = words.choose(family.descriptions) if words.chance(0.92) else ""
    description = _SLOT.sub(lambda match: slots[match.group(1)], description)
    parameters: list[Parameter] = []
    parents: dict[str, Parameter] = {}
    used: dict[str, set[str]] = {"": set()}
    for field in family.fields:
        taken = used.setdefault(field.parent, set())
        options = [alias for alias in field.aliases if alias not in taken] or [field.aliases[0] + "_2"]
        alias = options[0] if words.chance(0.4) else words.choose(options)
        alias = _SLOT.sub(lambda match: slots[match.group(1)].replace(" ", "_"), alias)
        taken.add(alias)
        parameter = _parameter(words, field, alias)
        if field.kind == "object":
            parents[field.aliases[0]] = parameter
        (parents[field.parent].fields if field.parent else parameters).append(parameter)
    return FamilyTool(family, Tool(_case(words, name), description, parameters), slots)


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
    elif field.kind == "object":
        schema = {"type": "object"}
    else:
        schema = json_type(field.kind)
    if field.descriptions and words.chance(0.5):
        description = words.choose(field.descriptions)
        if description:
            schema["description"] = description
    is_required = field.is_required or words.chance(0.15)
    surfaces = {value: list(texts) for value, texts in field.choices}
    return Parameter(field.aliases[0], name, field.kind, schema, is_required, surfaces)
