"""Stop strings: the first one in a text that arrives in pieces ends it.

Owns the cut. A character is held only while it could belong to a stop string; which string wins depends on the text
alone, never on how it was cut into pieces. Knows nothing of tokens or of who reacts to a match.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from atom.text.automaton import ROOT, Automaton


class StopStrings:
    """One text's stop strings. `matched` is the string that ended it, None until then; text after it is dropped.

    The match that is complete first wins, as when a model is stopped at its last token; of two that end together the
    longer one. `include` returns the stop string itself too.
    """

    def __init__(self, stops: Sequence[str], include: bool = False) -> None:
        self._automaton = _automaton_of(tuple(stops)) if stops else None
        self._include = include
        self._node = ROOT
        self._held = ""
        self.matched: str | None = None

    def feed(self, text: str, *, may_match: bool = True) -> str:
        """What of the text so far can be shown now. may_match: False where a stop string that ends here is text."""
        automaton = self._automaton
        if automaton is None:
            return text
        if self.matched is not None:
            return ""
        held = self._held
        end, self._node, self.matched = automaton.scan(text, 0, self._node)
        while self.matched is not None and not may_match:
            end, self._node, self.matched = automaton.scan(text, end, self._node)
        if self.matched is not None:
            self._held = ""
            seen = held + text[:end]
            return seen if self._include else seen[: len(seen) - len(self.matched)]
        keep = automaton.depth[self._node]
        if not keep:
            self._held = ""
            return held + text if held else text
        seen = held + text
        self._held = seen[-keep:]
        return seen[:-keep]

    def finish(self) -> str:
        """The text has ended: what was held is part of it."""
        held, self._held, self._node = self._held, "", ROOT
        return held


@lru_cache(maxsize=64)
def _automaton_of(stops: tuple[str, ...]) -> Automaton:
    """Shared by the answers that end by the same strings."""
    return Automaton(stops)
