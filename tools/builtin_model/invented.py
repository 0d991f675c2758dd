"""Tools that nobody has: names, parameters and requests put together from word lists, so that the model learns to read declarations.

Owns: the shapes of invented names, descriptions and requests. Does not know: realistic families, dialogues, formats.
A request is resolvable by construction: at most one string value comes without its parameter's name, and only when every other
string parameter is stated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tools.builtin_model.toolset import Parameter, Tool, spoken
from tools.builtin_model.values import enumeration, json_type, make_value, text_of
from tools.builtin_model.words import Words, capitalize, is_held_out

# Parameter names by kind of value; every kind also takes made-up names.
_NAMES: dict[str, list[str]] = {
    "city": ["city", "location", "place", "town", "destination", "origin", "area", "region", "station", "where", "target_city", "loc"],
    "person": ["name", "person", "user", "recipient", "contact", "customer", "owner", "guest", "author", "to", "member", "who", "full_name", "client"],
    "phrase": ["title", "subject", "topic", "item", "product", "label", "category", "query", "dish", "artist", "keyword", "term", "text", "headline", "project", "theme", "object", "thing"],
    "sentence": ["text", "message", "body", "content", "note", "comment", "caption", "prompt", "reminder", "msg", "description"],
    "email": ["email", "address", "recipient", "to", "mail", "contact", "cc", "user_email"],
    "code": ["id", "code", "key", "order_id", "ticket_id", "ref", "tracking_id", "serial", "token", "user_id", "sku", "number"],
    "date": ["date", "day", "when", "due_date", "start_date", "end_date", "until"],
    "time": ["time", "at", "start_time", "when", "hour", "clock", "alarm_time", "end_time"],
    "path": ["path", "file", "filename", "folder", "source", "target", "directory", "file_path"],
    "url": ["url", "link", "page", "website", "endpoint", "address"],
    "int": ["count", "number", "limit", "amount", "size", "level", "quantity", "n", "max", "minutes", "seconds", "hours", "days", "volume", "page", "port", "age", "people", "width", "height", "depth", "a", "b", "x", "y", "total"],
    "number": ["price", "amount", "weight", "rate", "ratio", "temperature", "distance", "score", "factor", "value", "total", "x", "y"],
    "bool": ["urgent", "verbose", "dry_run", "enabled", "loud", "force", "recursive", "public", "private", "notify", "silent", "fast", "detailed", "confirm", "quiet", "overwrite", "active"],
    "enum": ["mode", "unit", "color", "priority", "kind", "type", "format", "style", "size", "speed", "level", "status", "language", "shape"],
    "list": ["tags", "items", "names", "words", "labels", "people", "cities", "colors", "toppings", "topics", "members", "files", "ingredients", "guests", "keywords"],
    "object": ["options", "settings", "profile", "details", "range", "box", "point", "config", "filter", "info"],
}
_ENUMS = ("low high medium", "red green blue", "celsius fahrenheit kelvin", "small large", "json xml csv", "asc desc", "daily weekly monthly",
          "north south east west", "metric imperial", "draft final", "on off auto", "slow normal fast", "public private", "light dark", "easy hard")  # fmt: skip
STRING_KINDS = ("city", "person", "phrase", "sentence", "email", "code", "date", "time", "path", "url")
_ALL_KINDS = (
    ["city", "person", "phrase", "phrase", "sentence", "email", "code", "date", "time", "path", "url", "int", "int", "number", "bool", "enum", "enum", "list", "object"]
)
_PAIRED = {"city", "person", "phrase", "date", "time", "path", "int", "number", "code"}

_PREPOSITIONS: dict[str, list[str]] = {
    "city": ["in %s", "for %s", "in %s", "near %s", "at %s"],
    "person": ["for %s", "to %s", "with %s"],
    "email": ["to %s", "for %s"],
    "date": ["on %s", "for %s"],
    "time": ["at %s", "for %s"],
    "path": ["in %s", "from %s", "at %s", "%s"],
    "url": ["from %s", "at %s", "%s"],
    "int": ["%s times", "with %s", "%s", "by %s", "to %s"],
    "number": ["with %s", "at %s", "%s", "to %s"],
    "code": ["for %s", "with %s", "%s", "number %s"],
    "sentence": ["saying %s", "that says %s", "with %s", ": %s"],
    "phrase": ["about %s", "for %s", "called %s", "with %s", "of %s"],
    "enum": ["in %s mode", "as %s", "%s", "in %s"],
    "list": ["for %s", "with %s", "using %s"],
}
_NAMED = ["{name} {value}", "with {name} {value}", "the {name} is {value}", "{name}: {value}", "{name} set to {value}", "{name} = {value}",
          "where {name} is {value}", "with {value} as {name}", "use {value} for the {name}", "with a {name} of {value}"]  # fmt: skip
_TRUE = [
    "{name} on",
    "{name} true",
    "{name} set to true",
    "{raw}=true",
    "{name} enabled",
    "with {name}",
    "{name}: yes",
    "with {name} turned on",
    "make it {name}",
]
_FALSE = [
    "{name} off",
    "{name} false",
    "{name} set to false",
    "{raw}=false",
    "{name} disabled",
    "without {name}",
    "{name}: no",
    "with {name} turned off",
    "not {name}",
]
_OPENINGS = ["", "", "", "", "please ", "can you ", "could you ", "I want to ", "I'd like to ", "hey, ", "now ", "go ahead and ", "would you ",
             "I need you to ", "let's ", "help me ", "I need to ", "ok, ", "next, "]  # fmt: skip
_QUESTIONS = ["What is the {noun}", "What's the {noun}", "How is the {noun}", "Tell me the {noun}", "Show me the {noun}", "Give me the {noun}",
              "Do you know the {noun}", "I want to know the {noun}", "Look up the {noun}", "What {noun} is it", "{Noun}", "Find out the {noun}",
              "What is the current {noun}", "Which {noun} do we have", "Check the {noun}"]  # fmt: skip
_DESCRIPTIONS = ["{Verbs} {the} {noun}.", "{Verb} {the} {noun}.", "{Verb} {the} {noun}", "This tool {verbs} {the} {noun}.", "Use this to {verb} {the} {noun}.",
                 "Tool that can {verb} {the} {noun}.", "{Noun} tool: {verbs} {the} {noun}.", "{Verb} {noun}", "{Verbs} {noun} for the user."]  # fmt: skip
_REMARKS = [
    "",
    "",
    "",
    "",
    "",
    " Use it when the user asks for it.",
    " Returns a short result.",
    " Fast and simple.",
    " Returns JSON.",
]


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
        return _sentence(words, self, arguments), arguments


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
        return [words.choose(_ALL_KINDS[:-1]) for _ in range(words.choose([2, 2, 3, 3, 4]))]
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
    verb = verb or (
        words.pick("get_verb") if is_getter else words.pick("verb") if words.chance(0.75) else words.dictionary_word()
    )
    noun = noun or _noun(words)
    name, is_opaque = _tool_name(words, verb, noun)
    description = words.choose(_DESCRIPTIONS).format(
        verb=verb, Verb=capitalize(verb), verbs=_third_person(verb), Verbs=capitalize(_third_person(verb)), noun=noun, Noun=capitalize(noun),
        the=words.choose(["the", "a", "the", "the current", "your", "one"]),
    ) + words.choose(_REMARKS)  # fmt: skip
    if not is_opaque and words.chance(0.13):
        description = words.choose(["", "", "A tool.", "Internal tool."])
    if kinds is None:
        count = words.choose([0, 1, 1, 1, 2, 2, 2, 3, 3, 4])
        kinds = [words.choose(_ALL_KINDS) for _ in range(count)]
        if words.chance(0.08):
            kinds = [words.choose(sorted(_PAIRED))] * 2
    used: set[str] = set()
    return InventedTool(
        Tool(name, description, [_parameter(words, kind, used) for kind in kinds]), verb, noun, is_getter
    )


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


def _third_person(verb: str) -> str:
    if verb.endswith(("s", "x", "z", "o", "ch", "sh")):
        return verb + "es"
    return verb[:-1] + "ies" if verb.endswith("y") and verb[-2:-1] not in "aeiou" else verb + "s"


def _parameter(words: Words, kind: str, used: set[str], depth: int = 0) -> Parameter:
    name = _parameter_name(words, kind, used)
    schema = json_type(kind)
    parameter = Parameter(name, name, kind, schema, words.chance(0.8))
    if kind == "enum":
        values = (
            words.choose(_ENUMS).split() if words.chance(0.35) else [words.word() for _ in range(words.number(2, 5))]
        )
        values = list(dict.fromkeys(values))
        words.rng.shuffle(values)
        schema["enum"] = values
    elif kind == "object":
        parameter.schema = schema = {"type": "object"}
        inner: set[str] = set()
        kinds = [
            words.choose(["city", "person", "phrase", "int", "int", "code", "number"])
            for _ in range(words.choose([1, 2, 2, 3]))
        ]
        parameter.fields = [_parameter(words, each, inner, 1) for each in kinds]
    description = _parameter_description(words, name, kind)
    if description and not depth:
        schema["description"] = description
    return parameter


def _parameter_name(words: Words, kind: str, used: set[str]) -> str:
    common = _NAMES[kind]
    while True:
        roll = words.random()
        if roll < 0.55:
            name = words.choose(common)
            if is_held_out(name) != words.held_out and words.held_out and words.chance(0.7):
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
        return words.choose(["Required value", "A value given by the user", "See the manual", "Optional setting"])
    if roll < 0.46:
        return {
            "city": "City name",
            "int": "A whole number",
            "list": f"List of {spoken(name)}",
            "date": "A date",
            "path": "A file path",
        }.get(kind, "")
    return ""


def _sentence(words: Words, made: InventedTool, arguments: dict[str, Any]) -> str:
    parameters = [p for p in made.tool.parameters if p.name in arguments]
    tail = _clauses(words, made, parameters, arguments)
    head = _head(words, made)
    text = head + (("" if tail.startswith(":") else ", " if words.chance(0.08) else " ") + tail if tail else "")
    first = head.split(" ", 1)[0].lower()
    if first in ("can", "could", "would", "what", "what's", "how", "do", "which"):
        text += "?" if words.chance(0.8) else ""
    else:
        roll = words.random()
        text += "." if roll < 0.6 else "" if roll < 0.92 else " please."
    if words.chance(0.05):
        return text + words.choose([" Thanks!", " Thank you.", " Be quick."])
    return words.choose(["Hello! ", "Hi there. ", "I have a question. "]) + text if words.chance(0.04) else text


def _head(words: Words, made: InventedTool) -> str:
    roll, name, noun = words.random(), made.tool.name, made.noun
    if roll < 0.11:
        return (
            words.choose(["Use", "Call", "Run", "Use the tool", "Please call", "Invoke", "Call the function"])
            + f" {name}"
        )
    if made.must_say_verb:
        roll = 1.0
    if made.is_getter and roll < 0.75:
        return words.choose(_QUESTIONS).format(noun=noun, Noun=capitalize(noun))
    if roll < 0.18:
        return capitalize(words.choose(["I need the {}", "{} please", "use the {} tool", "I need a {}"]).format(noun))
    text = f"{words.choose(_OPENINGS)}{made.verb} {words.choose(['the', 'a', 'my', 'the', 'this', 'our', 'some', 'the'])} {noun}"
    return capitalize(text) if words.chance(0.75) else text


def _clauses(words: Words, made: InventedTool, parameters: list[Parameter], arguments: dict[str, Any]) -> str:
    everything = made.tool.parameters
    if (
        len(parameters) == 2 == len(everything)
        and parameters[0].kind == parameters[1].kind in _PAIRED
        and words.chance(0.5)
    ):
        form = words.choose(["from %s to %s", "between %s and %s", "%s and %s", "%s to %s", "with %s and %s"])
        return form % tuple(str(arguments[p.name]) for p in parameters)
    order = list(parameters)
    if words.chance(0.35):
        words.rng.shuffle(order)
    strings = [p for p in order if p.kind in STRING_KINDS]
    all_stated = all(p.name in arguments for p in everything if p.kind in STRING_KINDS)
    unnamed = words.choose(strings) if strings and all_stated else None
    kinds = [p.kind for p in everything]
    numbers = sum(kind in ("int", "number") for kind in kinds)
    clauses = []
    for parameter in order:
        if parameter.kind in STRING_KINDS:
            may_omit = parameter is unnamed
        else:
            may_omit = kinds.count(parameter.kind) == 1 and (parameter.kind not in ("int", "number") or numbers == 1)
        clauses.append(_clause(words, parameter, arguments[parameter.name], may_omit, len(parameters) == 1))
    return _join(words, clauses)


def _clause(words: Words, parameter: Parameter, value: Any, may_omit: bool, is_alone: bool) -> str:
    """The part of a request that states one argument; `may_omit`: the parameter's name may be left out."""
    name, kind = spoken(parameter.name), parameter.kind
    if kind == "bool":
        return words.choose(_TRUE if value else _FALSE).format(name=name, raw=parameter.name)
    if kind == "object":
        inner = [f"{spoken(key)} {text_of(words, item)}" for key, item in value.items()]
        return words.choose(["with {} {}", "{}: {}", "with the {} {}", "and as {} {}"]).format(
            name, enumeration(words, inner)
        )
    text = text_of(words, value)
    if kind == "enum" and words.chance(0.12):
        text = capitalize(text)
    if kind == "sentence" or (kind == "phrase" and " " in text and words.chance(0.4)):
        text = words.choose(['"%s"', '"%s"', "'%s'"]) % text if words.chance(0.85) else text
    if may_omit and words.chance(0.75 if is_alone else 0.6):
        forms = _PREPOSITIONS[kind]
        if kind == "date" and text.split()[0] in ("tomorrow", "today", "next"):
            forms = ["%s", "for %s"]
        return words.choose(forms) % text
    return words.choose(_NAMED).format(name=name if words.chance(0.7) else parameter.name, value=text)


def _join(words: Words, clauses: list[str]) -> str:
    if len(clauses) < 2:
        return "".join(clauses)
    roll = words.random()
    if roll < 0.45:
        return ", ".join(clauses[:-1]) + " and " + clauses[-1]
    return ", ".join(clauses) if roll < 0.8 else " ".join(clauses)
