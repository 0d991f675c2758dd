"""Values of parameters: a generator for every kind that families, patterns and invented tools name.

Owns: numbers, lists, and the kinds of data/patterns.txt. Returns JSON values; `text_of` words them in a request.
Does not know: tools, requests, formats.
A kind is one of data/patterns.txt, `name` or `name:argument` of this file, or the name of a list in data/lists.txt.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

from tools.builtin_model.words import DATA, Words, capitalize

Generator = Callable[[Words, str], Any]
Pattern = tuple[tuple[str, str], ...]
"""Pairs of literal text and the hole behind it ("" for none)."""


def text_of(words: Words, value: Any) -> str:
    """How a request words a value: lists as an enumeration, booleans as true or false, the rest as it is."""
    if isinstance(value, list):
        return enumeration(words, [str(item) for item in value])
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and value >= 1000 and words.chance(0.03):
        return f"{value:,}"
    return str(value)


def enumeration(words: Words, items: Sequence[str]) -> str:
    """ "a, b and c", at times without the "and"."""
    if len(items) == 1:
        return items[0]
    if words.chance(0.25):
        return ", ".join(items)
    return f"{', '.join(items[:-1])}{',' if len(items) > 2 and words.chance(0.15) else ''} and {items[-1]}"


def _bounds(text: str) -> tuple[int, int]:
    """ "1-9" or "-9-9": the dash behind the first character separates."""
    split = text.index("-", 1)
    return int(text[:split]), int(text[split + 1 :])


def _integer(words: Words, bounds: str) -> int:
    if bounds:
        return words.number(*_bounds(bounds))
    roll = words.random()
    if roll < 0.35:
        value = words.number(0, 12)
    elif roll < 0.7:
        value = words.number(0, 99)
    else:
        value = words.number(100, 999) if roll < 0.9 else words.number(1000, 99999)
    return -value if words.chance(0.03) else value


def _number(words: Words, bounds: str) -> float:
    low, high = _bounds(bounds) if bounds else (0, 200)
    if words.chance(0.25):
        return words.number(low, high)
    whole = words.number(low, high - 1)
    if words.chance(0.7):
        return whole + words.number(1, 9) / 10
    return round(whole + words.number(1, 99) / 100, 2)


def _money(words: Words, _argument: str) -> float:
    roll = words.random()
    if roll < 0.5:
        return words.number(1, 999)
    return words.number(1, 200) + 0.5 if roll < 0.7 else round(words.number(1, 300) + words.number(1, 99) / 100, 2)


def _angle(words: Words, _argument: str) -> float:
    return round(words.number(-89, 89) + words.number(1, 9999) / 10000, words.choose([1, 2, 4]))


def _date_iso(words: Words, _argument: str) -> str:
    return f"{words.number(2019, 2031)}-{words.number(1, 12):02}-{words.number(1, 28):02}"


def _time_24(words: Words, _argument: str) -> str:
    return f"{words.number(0, 23):02}:{words.choose([0, 15, 30, 45, words.number(0, 59)]):02}"


def _list(words: Words, kind: str) -> list[Any]:
    kinds = ("person", "city", "phrase_short", "code", "word")
    inner = kind or ("word" if words.chance(0.55) else words.choose(kinds))
    count = words.number(1, 4) if words.chance(0.92) else 5
    # A held-out list may have fewer entries than wanted, so repeats are dropped rather than drawn again for ever.
    return list(dict.fromkeys(make_value(words, inner) for _ in range(count)))


def _characters(alphabet: str) -> Generator:
    def generate(words: Words, bounds: str) -> str:
        return "".join(words.choose(alphabet) for _ in range(words.number(*_bounds(bounds))))

    return generate


def _multiline(words: Words, _argument: str) -> str:
    return "\n".join(make_value(words, "code_line") for _ in range(words.number(2, 4)))


_GENERATORS: dict[str, Generator] = {
    "word": lambda words, _: words.word(),
    "invented": lambda words, _: words.invented_word(),
    "foreign": lambda words, _: words.foreign_word(),
    "sentence": lambda words, _: words.sentence(),
    "words": lambda words, bounds: words.words(*_bounds(bounds)),
    "Words": lambda words, bounds: " ".join(map(capitalize, words.words(*_bounds(bounds)).split(" "))),
    "nothing": lambda _, __: "",
    "list": _list,
    "multiline": _multiline,
    "letters": _characters("ABCDEFGHJKLMNPQRSTUVWXYZ"),
    "LETTER": lambda words, _: words.choose("ABCDEFGHJKLMNPRSTW"),
    "digits": _characters("0123456789"),
    "hexdigits": _characters("abcdef0123456789"),
    "lower": lambda words, name: words.pick(name).lower(),
    "date_iso": _date_iso,
    "time_24": _time_24,
    "bool": lambda words, _: words.chance(0.5),
    "int": _integer,
    "number": _number,
    "money": _money,
    "latlon": _angle,
}


@functools.cache
def _patterns() -> dict[str, tuple[Pattern, ...]]:
    """The pattern kinds of data/patterns.txt."""
    kinds: dict[str, list[Pattern]] = {}
    kind = ""
    for line in (DATA / "patterns.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("  "):
            match = re.fullmatch(r"  (?:(\d+)\* )?(.*)", line)
            assert match is not None
            kinds[kind] += [_compile(match[2])] * int(match[1] or 1)
        elif line and not line.startswith("#"):
            kind = line
            kinds[kind] = []
    return {name: tuple(patterns) for name, patterns in kinds.items()}


def _compile(pattern: str) -> Pattern:
    pieces = re.split(r"\{([\w:-]+)\}", pattern)
    return tuple((pieces[i], pieces[i + 1] if i + 1 < len(pieces) else "") for i in range(0, len(pieces), 2))


def make_value(words: Words, kind: str) -> Any:
    """A value of the kind; KeyError for a kind that nothing defines."""
    patterns = _patterns().get(kind)
    if patterns is not None:
        return "".join(literal + _hole(words, hole) if hole else literal for literal, hole in words.choose(patterns))
    name, _, argument = kind.partition(":")
    generator = _GENERATORS.get(name)
    return generator(words, argument) if generator is not None else words.pick(kind)


def _hole(words: Words, hole: str) -> str:
    """The text for a hole of a pattern: {list:NAME} is a list of data/lists.txt, {Word} and {WORD} change the case."""
    if hole.startswith("list:"):
        return words.pick(hole[5:])
    if hole == "Word":
        return words.name_word()
    if hole == "WORD":
        return words.word().upper()
    return str(make_value(words, hole))


def json_type(kind: str) -> dict[str, Any]:
    """The JSON schema of a kind's values, without description."""
    name, _, argument = kind.partition(":")
    if name == "int":
        return {"type": "integer"}
    if name in ("number", "money", "latlon"):
        return {"type": "number"}
    if name == "bool":
        return {"type": "boolean"}
    if name == "list":
        return {"type": "array", "items": json_type(argument or "word")}
    return {"type": "string"}
