"""Finding the first of a few literals in text that arrives in pieces.

Owns an Aho-Corasick automaton: one step a character whatever the literals and the text look like, and its state is
exactly the longest suffix of the text that could still become one of them. Knows neither stop strings nor markers.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence

ROOT = 0


class Automaton:
    """Immutable once built; the state of a scan (a node number, `ROOT` at first) is the caller's to keep."""

    __slots__ = ("_fail", "_first", "_hits", "_next", "depth")

    def __init__(self, literals: Sequence[str]) -> None:
        """`literals`: at least one, none empty (ValueError)."""
        if not literals or not all(literals):
            raise ValueError("an automaton needs at least one literal, and none may be empty")
        self._next: list[dict[str, int]] = [{}]
        self._hits: list[str | None] = [None]
        self.depth: list[int] = [0]  # characters that a node stands for: what must be held in that state
        for literal in literals:
            self._add(literal)
        self._fail = [ROOT] * len(self._next)
        self._link()
        self._first = re.compile("[" + "".join(re.escape(literal[0]) for literal in literals) + "]")

    def _add(self, literal: str) -> None:
        node = ROOT
        for character in literal:
            child = self._next[node].get(character)
            if child is None:
                child = len(self._next)
                self._next[node][character] = child
                self._next.append({})
                self._hits.append(None)
                self.depth.append(self.depth[node] + 1)
            node = child
        self._hits[node] = literal

    def _link(self) -> None:
        """Breadth first, so that a node's fallback is known before its children need it."""
        queue = deque(self._next[ROOT].values())
        while queue:
            node = queue.popleft()
            if self._hits[node] is None:
                self._hits[node] = self._hits[self._fail[node]]
            for character, child in self._next[node].items():
                fallback = self._fail[node]
                while fallback != ROOT and character not in self._next[fallback]:
                    fallback = self._fail[fallback]
                self._fail[child] = self._next[fallback].get(character, ROOT)
                queue.append(child)

    def scan(self, text: str, start: int, node: int) -> tuple[int, int, str | None]:
        """Read `text` from `start` on until a literal is complete or the text ends.

        Returns (end, node, literal): the literal that completes first (of several that end there, the longest) ends at
        `end`; None when the text ran out, and then the last `depth[node]` characters read could be a literal's start.
        """
        following, fail, hits = self._next, self._fail, self._hits
        size = len(text)
        position = start
        while position < size:
            if node == ROOT:
                found = self._first.search(text, position)
                if found is None:
                    return size, ROOT, None
                position = found.start()
            character = text[position]
            position += 1
            child = following[node].get(character)
            while child is None and node != ROOT:
                node = fail[node]
                child = following[node].get(character)
            node = ROOT if child is None else child
            hit = hits[node]
            if hit is not None:
                return position, node, hit
        return position, node, None
