"""Word lists, phrases, and the one source of randomness.

Owns: loading data/words.txt, data/lists.txt and data/phrases.txt, the held-out tenth of every open list, and `Words`,
which draws from them. Does not know: what the words are used for.
"""

from __future__ import annotations

import functools
import hashlib
import random
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

DATA = Path(__file__).parent / "data"
_ITEM = TypeVar("_ITEM")
_ONSETS = [
    "b",
    "d",
    "f",
    "g",
    "k",
    "l",
    "m",
    "n",
    "p",
    "r",
    "s",
    "t",
    "v",
    "z",
    "br",
    "cr",
    "dr",
    "fl",
    "gl",
    "kr",
    "pl",
    "st",
    "tr",
    "sh",
    "ch",
    "th",
    "w",
    "j",
    "h",
]
_VOWELS = ["a", "e", "i", "o", "u", "ai", "ee", "oo", "ia"]
_CODAS = ("", "", "", "n", "r", "s", "x", "l", "m", "t", "k")
# First and last code point of scripts that no list has: the model must copy any text byte by byte.
_SCRIPTS = ((0xC0, 0xFF), (0x100, 0x17F), (0x391, 0x3C9), (0x410, 0x44F), (0x5D0, 0x5EA), (0x621, 0x64A),
            (0x905, 0x939), (0x3041, 0x3096), (0x30A1, 0x30FA), (0x4E00, 0x9FA5), (0x4E00, 0x9FA5), (0xAC00, 0xD7A3),
            (0x1F300, 0x1F64F))  # fmt: skip


def is_held_out(text: str) -> bool:
    """True for the tenth of all texts that only evaluation may draw."""
    return hashlib.md5(text.encode()).digest()[0] % 10 == 0


@functools.cache
def _lists() -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """(training lists, held-out lists) by name. A closed list ("name!") is the same in both, as is one too short."""
    entries = {"word": (DATA / "words.txt").read_text(encoding="utf-8").split()}
    closed = set()
    for line in (DATA / "lists.txt").read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            name, _, items = line.partition(":")
            if name.endswith("!"):
                name = name[:-1]
                closed.add(name)
            entries[name] = items.strip().split("|")
    seen = {name: [w for w in items if name in closed or not is_held_out(w)] for name, items in entries.items()}
    unseen = {name: [w for w in items if name in closed or is_held_out(w)] or items for name, items in entries.items()}
    return seen, unseen


@functools.cache
def phrases(name: str) -> tuple[str, ...]:
    """The phrases of one section of data/phrases.txt; KeyError for an unknown one."""
    return _sections()[name]


@functools.cache
def _sections() -> dict[str, tuple[str, ...]]:
    sections: dict[str, list[str]] = {}
    for line in (DATA / "phrases.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            current = sections.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("# "):
            current.append(line)
    return {name: tuple(lines) for name, lines in sections.items()}


def capitalize(text: str) -> str:
    """The text with an upper-case first letter, the rest as it is."""
    return text[:1].upper() + text[1:]


class Words:
    """Random choices from one seeded generator; `held_out` draws open lists from the tenth that training never sees."""

    __slots__ = ("_lists", "held_out", "random", "rng")

    def __init__(self, rng: random.Random, held_out: bool = False) -> None:
        self.rng = rng
        self.random = rng.random
        self.held_out = held_out
        self._lists = _lists()[held_out]

    def chance(self, probability: float) -> bool:
        """True with the probability."""
        return self.random() < probability

    def number(self, low: int, high: int) -> int:
        """An integer in [low, high]."""
        return low + int(self.random() * (high - low + 1))

    def choose(self, items: Sequence[_ITEM]) -> _ITEM:
        """One of the items, each as likely."""
        return items[int(self.random() * len(items))]

    def phrase(self, name: str) -> str:
        """A phrase of a section of data/phrases.txt."""
        return self.choose(phrases(name))

    def pick(self, list_name: str) -> str:
        """An entry of a list of data/lists.txt; KeyError for an unknown list."""
        items = self._lists[list_name]
        return items[int(self.random() * len(items))]

    def dictionary_word(self) -> str:
        """An English word."""
        return self.pick("word")

    def invented_word(self) -> str:
        """A pronounceable word that is in no list."""
        while True:
            syllables = range(self.number(2, 3))
            word = "".join(
                self.choose(_ONSETS) + self.choose(_VOWELS) + (self.choose(_CODAS) if i else "") for i in syllables
            )
            if is_held_out(word) == self.held_out:
                return word

    def foreign_word(self) -> str:
        """Two to six characters of one script, Latin with accents to emoji."""
        first, last = self.choose(_SCRIPTS)
        letters = (chr(self.number(first, last)) for _ in range(self.number(2, 6)))
        if first == 0xC0:
            return "".join(each + self.choose("aeiourstln") for each in letters if each.isalpha()) or "é"
        return "".join(each for each in letters if each.isprintable()) or "é"

    def word(self) -> str:
        """A word for any place: English or invented."""
        return self.pick("word") if self.random() < 0.85 else self.invented_word()

    def words(self, low: int, high: int) -> str:
        """Between low and high words, joined by spaces."""
        return " ".join(self.word() for _ in range(self.number(low, high)))

    def name_word(self) -> str:
        """A capitalised word, as in names of places and products."""
        return capitalize(self.word())

    def sentence(self) -> str:
        """A made-up sentence of 2 to 9 words, at times with a capital, a comma, an end mark or foreign letters."""
        parts = [self.word() if self.random() < 0.6 else self.pick("stopword") for _ in range(self.number(2, 9))]
        roll = self.random()
        if roll < 0.1:
            parts[0] += ","
        elif roll < 0.13:
            parts[-1] = self.foreign_word()
        text = " ".join(parts)
        if self.random() < 0.5:
            text = capitalize(text)
        return text + self.choose("!?.") if self.random() < 0.2 else text
