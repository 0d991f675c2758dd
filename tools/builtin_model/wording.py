"""Requests for invented tools: a head that says what to do, and a clause for each argument.

Owns: the wording (its phrases are in data/phrases.txt and data/parameters.txt). Does not know: how the tools are made.
A request is resolvable by construction: at most one string value comes without its parameter's name, and only when
every other string parameter is stated.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from tools.builtin_model.toolset import Parameter, spoken
from tools.builtin_model.values import enumeration, text_of
from tools.builtin_model.words import DATA, Words, capitalize

STRING_KINDS = ("city", "person", "phrase", "sentence", "email", "code", "date", "time", "path", "url")
PAIRED_KINDS = ("city", "person", "phrase", "date", "time", "path", "int", "number", "code")
_QUESTION_STARTS = ("can", "could", "would", "what", "what's", "how", "do", "which")


@dataclass(frozen=True, slots=True)
class KindWords:
    """Usual parameter names of a kind, and ways to state a value without the name."""

    names: tuple[str, ...]
    wordings: tuple[str, ...]


@functools.cache
def kind_words() -> dict[str, KindWords]:
    """data/parameters.txt by kind."""
    found = {}
    for line in (DATA / "parameters.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            kind, _, rest = line.partition(": ")
            names, _, wordings = rest.partition("|")
            found[kind] = KindWords(tuple(names.split()), tuple(w.strip() for w in wordings.split(";") if w.strip()))
    return found


@dataclass(frozen=True, slots=True)
class Subject:
    """What a request is about. `must_say_verb`: another declared tool has the same noun."""

    name: str
    verb: str
    noun: str
    is_getter: bool
    must_say_verb: bool


def word_request(words: Words, subject: Subject, parameters: list[Parameter], arguments: dict[str, Any]) -> str:
    """A request that states the arguments; `parameters` are all of the tool's."""
    tail = _clauses(words, parameters, arguments)
    head = _head(words, subject)
    text = head + (("" if tail.startswith(":") else ", " if words.chance(0.08) else " ") + tail if tail else "")
    if head.split(" ", 1)[0].lower() in _QUESTION_STARTS:
        text += "?" if words.chance(0.8) else ""
    else:
        roll = words.random()
        text += "." if roll < 0.6 else "" if roll < 0.92 else " please."
    if words.chance(0.05):
        return text + words.choose([" Thanks!", " Thank you.", " Be quick."])
    return f"{words.choose(['Hello!', 'Hi there.', 'I have a question.'])} {text}" if words.chance(0.04) else text


def _head(words: Words, subject: Subject) -> str:
    roll, noun = 1.0 if subject.must_say_verb else words.random(), subject.noun
    if roll < 0.11:
        return words.phrase("by name").format(subject.name)
    if subject.is_getter and roll < 0.75:
        return words.phrase("getter question").format(noun=noun, Noun=capitalize(noun))
    if roll < 0.18:
        form = words.choose(["I need the {}", "{} please", "use the {} tool", "I need a {}"])
        return capitalize(form.format(noun))
    opening = words.phrase("request opening") + " " if words.chance(0.78) else ""
    article = words.choose(["the", "a", "my", "the", "this", "our", "some", "the"])
    text = f"{opening}{subject.verb} {article} {noun}"
    return capitalize(text) if words.chance(0.75) else text


def _clauses(words: Words, everything: list[Parameter], arguments: dict[str, Any]) -> str:
    stated = [p for p in everything if p.name in arguments]
    is_pair = len(stated) == 2 == len(everything) and stated[0].kind == stated[1].kind in PAIRED_KINDS
    if is_pair and words.chance(0.5):
        form = words.choose(["from %s to %s", "between %s and %s", "%s and %s", "%s to %s", "with %s and %s"])
        return form % tuple(str(arguments[p.name]) for p in stated)
    order = list(stated)
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
        clauses.append(_clause(words, parameter, arguments[parameter.name], may_omit, len(stated) == 1))
    return _join(words, clauses)


def _clause(words: Words, parameter: Parameter, value: Any, may_omit: bool, is_alone: bool) -> str:
    """The part of a request that states one argument; `may_omit`: the parameter's name may be left out."""
    name, kind = spoken(parameter.name), parameter.kind
    if kind == "bool":
        return words.phrase("true" if value else "false").format(name=name, raw=parameter.name)
    if kind == "object":
        inner = [f"{spoken(key)} {text_of(words, item)}" for key, item in value.items()]
        form = words.choose(["with {} {}", "{}: {}", "with the {} {}", "and as {} {}"])
        return form.format(name, enumeration(words, inner))
    text = text_of(words, value)
    if kind == "enum" and words.chance(0.12):
        text = capitalize(text)
    if (kind == "sentence" and words.chance(0.85)) or (kind == "phrase" and " " in text and words.chance(0.35)):
        text = words.choose(['"%s"', '"%s"', "'%s'"]) % text
    if may_omit and words.chance(0.75 if is_alone else 0.6):
        forms = kind_words()[kind].wordings
        if kind == "date" and text.split()[0] in ("tomorrow", "today", "next"):
            forms = ("%s", "for %s")
        return words.choose(forms) % text
    spoken_name = name if words.chance(0.7) else parameter.name
    return words.phrase("named argument").format(name=spoken_name, value=text)


def _join(words: Words, clauses: list[str]) -> str:
    if len(clauses) < 2:
        return "".join(clauses)
    roll = words.random()
    if roll < 0.45:
        return ", ".join(clauses[:-1]) + " and " + clauses[-1]
    return ", ".join(clauses) if roll < 0.8 else " ".join(clauses)
