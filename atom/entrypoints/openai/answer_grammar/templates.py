"""A format's templates as parts of a grammar.

Owns filling holes with text or with rules, and where an answer ends because a template's next token would end it.
Knows neither schemas nor tools.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from atom.entrypoints.openai.answer_grammar.lark import quoted

_HOLE = re.compile(r"\{(\w+)(?:\|(\w+))?\}")


@dataclass(frozen=True, slots=True)
class Filled:
    """body: of a rule. ends: what would follow is a token that ends the answer, so that nothing can."""

    body: str
    ends: bool


class Templates:
    """Fills templates. end_texts: how tokens are spelt that end an answer wherever they stand."""

    def __init__(self, end_texts: Sequence[str], escapes: Sequence[tuple[str, str]]) -> None:
        """`escapes`: of attributes, (written, meant), in the order of undoing them."""
        self._end = re.compile("|".join(map(re.escape, end_texts))) if end_texts else None
        self._escapes = [(meant, written) for written, meant in reversed(escapes)]

    def attribute(self, text: str) -> str:
        """A text as it is written in an attribute."""
        for meant, written in self._escapes:
            text = text.replace(meant, written)
        return text

    def fill(self, template: str, texts: Mapping[str, str], rules: Mapping[str, str]) -> Filled:
        """The template, with these holes as texts, and those as rules."""
        parts: list[str] = []
        literal, position = "", 0
        for hole in _HOLE.finditer(template):
            literal += template[position : hole.start()]
            position = hole.end()
            if hole[1] in texts:
                literal += self._escaped(texts[hole[1]], hole[2])
                continue
            if self._is_end(literal):
                break
            parts += [quoted(literal)] * bool(literal) + [rules[hole[1]]]
            literal = ""
        else:
            literal += template[position:]
        ends = self._is_end(literal)
        if ends and self._end is not None:
            literal = self._end.split(literal)[0]
        parts += [quoted(literal)] * bool(literal)
        return Filled(" ".join(parts) or quoted(""), ends)

    def _is_end(self, literal: str) -> bool:
        return self._end is not None and self._end.search(literal) is not None

    def _escaped(self, text: str, escape: str | None) -> str:
        if escape == "json":
            return json.dumps(text, ensure_ascii=False)
        return self.attribute(text) if escape == "attribute" else text
