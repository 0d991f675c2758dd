"""Reading ahead for markers in text that arrives in pieces.

Owns two questions about a stretch of text: where its first complete marker is, and from which index on it could still
become one. Stateless: the caller keeps what is held. Knows nothing of what a marker means.
"""

from __future__ import annotations

import re
from collections.abc import Iterable


class MarkerScanner:
    """Finds a fixed set of literals. `longest` is the longest marker's length; at most one less is ever held."""

    __slots__ = ("_first", "_prefixes", "_single", "_suspect", "longest", "markers", "search")

    def __init__(self, markers: Iterable[str]) -> None:
        """`markers`: at least one, none empty (ValueError). Where two begin alike, the longer one is found."""
        self.markers = tuple(sorted(set(markers), key=len, reverse=True))
        if not self.markers or not all(self.markers):
            raise ValueError("a scanner needs at least one marker, and none may be empty")
        self.longest = len(self.markers[0])
        firsts = sorted({marker[0] for marker in self.markers})
        self._single = firsts[0] if len(firsts) == 1 else None
        self._first = re.compile("[" + "".join(map(re.escape, firsts)) + "]")
        beginnings = {first: sorted({m[1:2] for m in self.markers if m[0] == first}) for first in firsts}
        self._suspect = re.compile("|".join(_beginning(first, seconds) for first, seconds in beginnings.items()))
        self._prefixes = frozenset(marker[:size] for marker in self.markers for size in range(1, len(marker)))
        self.search = re.compile("|".join(map(re.escape, self.markers))).search
        """`search(text, start)` gives the match of the first complete marker, or None."""

    def is_plain(self, text: str) -> bool:
        """Whether no part of `text` can be the beginning of a marker; the test that most text passes."""
        if self._single is not None and self._single not in text:
            return True
        return self._suspect.search(text) is None

    def hold_from(self, text: str, start: int = 0) -> int:
        """Index of the longest suffix of `text[start:]` that begins a marker; `len(text)`: there is none."""
        size = len(text)
        match = self._first.search(text, max(start, size - self.longest + 1))
        while match is not None:
            if text[match.start() :] in self._prefixes:
                return match.start()
            match = self._first.search(text, match.start() + 1)
        return size


def _beginning(first: str, seconds: list[str]) -> str:
    """Matches the first two characters of a marker, or the first one at the end of the text."""
    if "" in seconds:  # a marker of one character
        return re.escape(first)
    return f"{re.escape(first)}(?:{'|'.join(map(re.escape, seconds))}|\\Z)"
