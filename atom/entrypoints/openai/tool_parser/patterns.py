"""Markers with holes, matched against text that may end in the middle of one.

Owns the pattern language of the format tables: literals, `{ws}` for optional white space, and named holes whose
characters are limited by what they name. A pattern that ends in a hole ends where the hole's characters do. Knows no
format.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

_HOLE = re.compile(r"\{(\w+)(?:\|\w+)?\}")

# A name is one word; what it can't hold ends it where no literal does.
_NAME = r"[^\s<>\[\]{}()\"'=,;|｜]"
_CHARACTERS = {
    "name": _NAME + "{1,256}",
    "id": r"[A-Za-z0-9_\-]{1,64}",
    "index": r"\d{0,9}",
    "type": r"[^\n<>\"]{0,64}",
    "is_string": r"[^\n<>\"']{0,16}",
    "channel": r"[^\s<>]{1,64}",
    "recipient": r"[^\s<>]{1,256}",
    "role_recipient": r"[^\s<>]{1,256}",
    "content_type": r"[^\n<>\"]{0,64}",
}


_SPACE = re.compile(r"\s*")


def behind_space(text: str, position: int) -> int:
    """The index behind the white space at `position`."""
    match = _SPACE.match(text, position)
    return match.end() if match else position


@dataclass(frozen=True, slots=True)
class Matched:
    """A complete match: where it ends, the tag's place in its list, and what its holes hold."""

    end: int
    number: int
    holes: dict[str, str]


class Partial:
    """The text ends before it is clear whether this matches."""


PARTIAL = Partial()


class Pattern:
    """One marker. `head`: the literal that it begins with."""

    __slots__ = ("_match", "head", "is_literal", "source")

    def __init__(self, source: str) -> None:
        self.source = source
        hole = _HOLE.search(source)
        self.head = source if hole is None else source[: hole.start()]
        self.is_literal = hole is None
        self._match = re.compile(_compile(source)).match

    def match(self, text: str, start: int) -> re.Match[str] | None:
        """A match from `start`; its `lastgroup` is `full` when it is complete, else the text ends inside it."""
        return self._match(text, start)


class Choice:
    """Several spellings of a marker, tried in order. A spelling that is still open makes the later ones wait."""

    __slots__ = ("patterns",)

    def __init__(self, sources: Sequence[str]) -> None:
        self.patterns = tuple(pattern_of(source) for source in sources)

    def match(self, text: str, start: int, at_end: bool = False) -> Matched | Partial | None:
        """The first spelling that matches at `start`; PARTIAL while that is open; None when none can.

        at_end: nothing will follow, so a complete spelling counts before an open one.
        """
        partial = None
        for number, pattern in enumerate(self.patterns):
            found = pattern.match(text, start)
            if found is None:
                continue
            if found.lastgroup == "full":
                holes = found.groupdict()
                del holes["full"]
                return Matched(found.end(), number, holes)
            if not at_end:
                return PARTIAL
            partial = PARTIAL
        return partial


@lru_cache(maxsize=1024)
def pattern_of(source: str) -> Pattern:
    """The compiled pattern; every reader of a format shares it."""
    return Pattern(source)


def _compile(source: str) -> str:
    """A regular expression that matches the pattern or any beginning of it that reaches the end of the text."""
    tokens: list[tuple[str, str]] = []
    position = 0
    for hole in _HOLE.finditer(source):
        tokens += (("literal", character) for character in source[position : hole.start()])
        tokens.append(("hole", hole.group(1)))
        position = hole.end()
    tokens += (("literal", character) for character in source[position:])
    expression = "(?P<full>)"
    for at in range(len(tokens) - 1, -1, -1):
        kind, text = tokens[at]
        follows = tokens[at + 1][1] if at + 1 < len(tokens) and tokens[at + 1][0] == "literal" else ""
        before = "".join(one[1] for one in tokens[max(0, at - 2) : at] if one[0] == "literal")
        piece = re.escape(text) if kind == "literal" else _hole(text, before, follows)
        if kind == "hole" and at + 1 == len(tokens) and text != "ws":
            expression = r"(?=[\s\S])" + expression  # one more character shows that the hole is over
        expression = f"{piece}(?:{expression}|\\Z)"
    return expression


def _hole(name: str, before: str, follows: str) -> str:
    if name == "ws":
        return r"\s*"
    return f"(?P<{name}>{_key(before, follows) if name == 'key' else _CHARACTERS[name]})"


def _key(before: str, follows: str) -> str:
    """A key may be anything that its tag can quote."""
    if follows in ('"', "'"):
        return f"[^{follows}]{{1,256}}"
    if follows == ">" and before.endswith(("<", "</")):  # it is the tag
        return r"[^\s<>/\"'=][^\n<>\"'=]{0,255}"
    return r"[^\n>]{1,256}" if follows == ">" else r"[^\n]{1,256}?"
