"""Word lists and the one source of randomness.

Owns: loading data/words.txt and data/lists.txt, the held-out tenth of every open list, and `Words`, which draws from them.
Does not know: what the words are used for.
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
_ONSETS = ["b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z", "br", "cr", "dr", "fl", "gl", "kr", "pl", "st", "tr", "sh", "ch", "th", "w", "j", "h"]
_VOWELS = ["a", "e", "i", "o", "u", "ai", "ee", "oo", "ia"]
_CODAS = ["", "", "", "n", "r", "s", "x", "l", "m", "t", "k"]


def is_held_out(text: str) -> bool:
    """True for the tenth of all texts that only evaluation may draw."""
    return hashlib.md5(text.encode()).digest()[0] % 10 == 0


@functools.cache
def _lists() -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """(training lists, held-out lists) by name. Closed lists ("name!") are the same in both; so is a list too short to split."""
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
        return self.random() < probability

    def number(self, low: int, high: int) -> int:
        """An integer in [low, high]."""
        return low + int(self.random() * (high - low + 1))

    def choose(self, items: Sequence[_ITEM]) -> _ITEM:
        return items[int(self.random() * len(items))]

    def has(self, list_name: str) -> bool:
        return list_name in self._lists

    def pick(self, list_name: str) -> str:
        """An entry of a list of data/lists.txt; KeyError for an unknown list."""
        items = self._lists[list_name]
        return items[int(self.random() * len(items))]

    def dictionary_word(self) -> str:
        return self.pick("word")

    def invented_word(self) -> str:
        """A pronounceable word that is in no list."""
        while True:
            parts = [
                self.choose(_ONSETS) + self.choose(_VOWELS) + (self.choose(_CODAS) if i else "")
                for i in range(self.number(2, 3))
            ]
            word = "".join(parts)
            if is_held_out(word) == self.held_out:
                return word

    def word(self) -> str:
        return self.pick("word") if self.random() < 0.85 else self.invented_word()

    def words(self, low: int, high: int) -> str:
        """Between low and high words, joined by spaces."""
        return " ".join(self.word() for _ in range(self.number(low, high)))

    def name_word(self) -> str:
        """A capitalised word, as in names of places and products."""
        return capitalize(self.word())

    def person(self) -> str:
        first = self.pick("first_name") if self.random() < 0.6 else self.name_word()
        if self.random() < 0.6:
            return first
        return f"{first} {self.pick('last_name') if self.random() < 0.6 else self.name_word()}"

    def city(self) -> str:
        roll = self.random()
        if roll < 0.6:
            return self.pick("city")
        return self.name_word() if roll < 0.87 else f"{self.name_word()} {self.name_word()}"

    def sentence(self) -> str:
        """A made-up sentence of 2 to 8 words, at times with a capital and an end mark."""
        parts = [self.word() if self.random() < 0.6 else self.pick("stopword") for _ in range(self.number(2, 8))]
        text = " ".join(parts)
        if self.random() < 0.5:
            text = capitalize(text)
        return text + self.choose("!?.") if self.random() < 0.2 else text
