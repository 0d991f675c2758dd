"""Tools that nobody has, put together from word lists, so that the model learns to read declarations.

Owns: the shapes of invented names, descriptions and parameters. Does not know: how they are asked for (wording.py),
realistic families, dialogues, formats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tools.builtin_model.toolset import Parameter, Tool, spoken
from tools.builtin_model.values import json_type, make_value
from tools.builtin_model.wording import PAIRED_KINDS, STRING_KINDS, Subject, kind_words, word_request
from tools.builtin_model.words import Words, capitalize, is_held_out

_FLAT_KINDS = [
    "city",
    "person",
    "phrase",
    "phrase",
    "sentence",
    "email",
    "code",
    "date",
    "time",
    "path",
    "url",
    "int",
    "int",
    "number",
    "bool",
    "enum",
    "enum",
    "list",
]
_ALL_KINDS = (*_FLAT_KINDS, "object")
_FIELD_KINDS = ("city", "person", "phrase", "int", "int", "code", "number")
_PLAIN_REMARKS = ("Required value", "A value given by the user", "See the manual", "Optional setting")
_KIND_REMARKS = {"city": "City name", "int": "A whole number", "date": "A date", "path": "A file path"}


@dataclass(slots=True)
class InventedTool:
    """An invented tool with the verb and noun that requests use."""

    tool: Tool
    verb: str
    noun: str
    is_getter: bool
    must_say_verb: bool = False
    """Another declared tool has the same noun, so a request must say what to do with it."""

    @property
    def group(self) -> str:
        """Tools of the same group are never declared together."""
        return f"{self.verb} {self.noun}"

    def request(self, words: Words) -> tuple[str, dict[str, Any]]:
        """(request, arguments in schema order); optional parameters are at times left out."""
        arguments: dict[str, Any] = {}
        for parameter in self.tool.parameters:
            if parameter.is_required or words.chance(0.55):
                arguments[parameter.name] = _value(words, parameter)
        if not arguments and self.tool.parameters and words.chance(0.7):
            first = self.tool.parameters[0]
            arguments[first.name] = _value(words, first)
        subject = Subject(self.tool.name, self.verb, self.noun, self.is_getter, self.must_say_verb)
        return word_request(words, subject, self.tool.parameters, arguments), arguments


def _value(words: Words, parameter: Parameter) -> Any:
    if parameter.fields:
        return {field.name: _value(words, field) for field in parameter.fields}
    if parameter.kind == "enum":
        return words.choose(parameter.schema["enum"])
    return make_value(words, parameter.kind)


def pick_kinds(words: Words, skill: str) -> list[str]:
    """Kinds of the parameters for a skill: string, number, boolean, enum, list, zero, nested, mixed."""
    string = words.choose(STRING_KINDS)
    if skill == "string":
        return [words.choose(STRING_KINDS) for _ in range(words.choose([1, 1, 1, 2, 2, 3]))]
    if skill == "mixed":
        return [words.choose(_FLAT_KINDS) for _ in range(words.choose([2, 2, 3, 3, 4]))]
    options: dict[str, list[list[str]]] = {
        "number": [["int"], ["int"], ["int", "int"], ["int", string], ["number"], ["number", "int"]],
        "boolean": [["bool"], ["bool", "bool"], [string, "bool"], ["int", "bool"]],
        "enum": [["enum"], ["enum", string], [string, "enum"], ["enum", "int"]],
        "list": [["list"], ["list"], ["list", string], ["int", "list"]],
        "nested": [["object"], [string, "object"], ["object", "int"]],
        "zero": [[]],
    }
    return words.choose(options[skill])


def make_invented_tool(
    words: Words, kinds: Sequence[str] | None = None, verb: str = "", noun: str = ""
) -> InventedTool:
    """An invented tool; `verb` or `noun` fixes that part of it (for distractors that share it with another tool)."""
    is_getter = words.chance(0.3)
    if not verb:
        is_usual = is_getter or words.chance(0.75)
        verb = words.pick("get_verb" if is_getter else "verb") if is_usual else words.dictionary_word()
    noun = noun or _noun(words)
    name, is_opaque = _tool_name(words, verb, noun)
    description = _description(words, verb, noun)
    if not is_opaque and words.chance(0.13):
        description = words.choose(["", "", "A tool.", "Internal tool."])
    if kinds is None:
        count = words.choose([0, 1, 1, 1, 2, 2, 2, 3, 3, 4])
        kinds = [words.choose(_ALL_KINDS) for _ in range(count)]
        if words.chance(0.08):
            kinds = [words.choose(PAIRED_KINDS)] * 2
    used: set[str] = set()
    parameters = [_parameter(words, kind, used) for kind in kinds]
    return InventedTool(Tool(name, description, parameters), verb, noun, is_getter)


def _noun(words: Words) -> str:
    roll = words.random()
    noun = words.pick("noun") if roll < 0.45 else words.dictionary_word() if roll < 0.9 else words.invented_word()
    return f"{words.word()} {noun}" if words.chance(0.2) else noun


def _tool_name(words: Words, verb: str, noun: str) -> tuple[str, bool]:
    """(name, whether the name says nothing about the tool)."""
    snake = noun.replace(" ", "_")
    camel = "".join(map(capitalize, noun.split()))
    roll = words.random()
    if roll < 0.54:
        return f"{verb}_{snake}", False
    if roll < 0.62:
        return verb + camel, False
    if roll < 0.68:
        return f"{snake}_{verb}", False
    if roll < 0.74:
        return snake + words.choose(["", "_tool", "_api", "_service", "_lookup"]), False
    if roll < 0.78:
        return f"{verb}-{snake}".replace("_", "-"), False
    if roll < 0.82:
        return f"{words.word()}_{verb}_{snake}", False
    if roll < 0.86:
        return capitalize(verb) + camel, False
    return words.invented_word() + ("_" + words.word() if words.chance(0.6) else ""), True


def _description(words: Words, verb: str, noun: str) -> str:
    third = _third_person(verb)
    article = words.choose(["the", "a", "the", "the current", "your", "one"])
    form = words.phrase("tool description")
    text = form.format(
        verb=verb,
        Verb=capitalize(verb),
        verbs=third,
        Verbs=capitalize(third),
        noun=noun,
        Noun=capitalize(noun),
        the=article,
    )
    return f"{text} {words.phrase('tool remark')}" if words.chance(0.44) else text


def _third_person(verb: str) -> str:
    if verb.endswith(("s", "x", "z", "o", "ch", "sh")):
        return verb + "es"
    return verb[:-1] + "ies" if verb.endswith("y") and verb[-2:-1] not in "aeiou" else verb + "s"


def _parameter(words: Words, kind: str, used: set[str], depth: int = 0) -> Parameter:
    name = _parameter_name(words, kind, used)
    schema = json_type(kind)
    parameter = Parameter(name, name, kind, schema, words.chance(0.8))
    if kind == "enum":
        usual = words.phrase("enum").split()
        values = usual if words.chance(0.35) else [words.word() for _ in range(words.number(2, 5))]
        schema["enum"] = words.rng.sample(list(dict.fromkeys(values)), len(set(values)))
    elif kind == "object":
        schema["type"] = "object"
        inner: set[str] = set()
        count = words.choose([1, 2, 2, 3])
        parameter.fields = [_parameter(words, words.choose(_FIELD_KINDS), inner, depth + 1) for _ in range(count)]
    description = "" if depth else _parameter_description(words, name, kind)
    if description:
        schema["description"] = description
    return parameter


def _parameter_name(words: Words, kind: str, used: set[str]) -> str:
    common = kind_words()[kind].names
    while True:
        roll = words.random()
        if roll < 0.55:
            name = words.choose(common)
            if words.held_out and not is_held_out(name) and words.chance(0.7):
                continue
        elif roll < 0.75:
            name = words.word()
        elif roll < 0.9:
            name = f"{words.word()}_{words.choose(common).split('_')[-1]}"
        else:
            name = words.word() + words.name_word()
        if spoken(name) not in used:
            used.add(spoken(name))
            return name


def _parameter_description(words: Words, name: str, kind: str) -> str:
    roll = words.random()
    if roll < 0.25:
        return f"The {spoken(name)}"
    if roll < 0.33:
        return f"{capitalize(spoken(name))} to use"
    if roll < 0.4:
        return words.choose(_PLAIN_REMARKS)
    if roll < 0.46:
        return f"List of {spoken(name)}" if kind == "list" else _KIND_REMARKS.get(kind, "")
    return ""
