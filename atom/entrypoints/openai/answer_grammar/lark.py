"""Writing a grammar in llguidance's Lark dialect.

Owns quoting and the names of rules and terminals: what is written twice gets one name. Knows neither schemas nor wire
formats.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

import llguidance

ANY_TEXT = "/(?s:.*)/"
_META = re.compile(r"[\\.+*?()|\[\]{}^$#&\-~\n]")


def quoted(text: str) -> str:
    """A literal; empty text is an empty literal."""
    return json.dumps(text, ensure_ascii=False)


def choice(bodies: Iterable[str]) -> str:
    """One of several bodies, in brackets where there is a choice."""
    options = list(dict.fromkeys(bodies))
    return options[0] if len(options) == 1 else f"( {' | '.join(options)} )"


def slashed(pattern: str) -> str:
    """A regular expression of the Rust kind as a terminal. Raises ValueError for what can not stand in one."""
    return f"/{llguidance.regex_to_lark(pattern, 'dw')}/"


def escaped(text: str) -> str:
    """A regular expression that matches this text, also inside a character class."""
    return _META.sub(lambda match: "\\n" if match[0] == "\n" else f"\\{match[0]}", text)


class Rules:
    """The rules of one grammar. A body is what stands behind a rule's colon."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], str] = {}
        self._lines: list[str] = []
        self._num_names = 0

    def rule(self, body: str) -> str:
        """The name of a rule with this body."""
        return self._named("r", "", body)

    def lazy(self, terminal: str) -> str:
        """The name of a rule for a terminal of this body that ends as soon as it can."""
        return self._named("z", "[lazy]", self.terminal(terminal))

    def terminal(self, body: str) -> str:
        """The name of a terminal with this body."""
        return self._named("T", "", body)

    def text_without(self, literals: Iterable[str]) -> str:
        """The name of a terminal for any text in which none of the literals occurs."""
        found = "|".join(escaped(literal) for literal in dict.fromkeys(literals))
        return self.terminal(f"{ANY_TEXT} & ~{slashed(f'(?s:.*)(?:{found})(?s:.*)')}" if found else ANY_TEXT)

    def json(self, schema: Any, **options: Any) -> str:
        """The name of a rule for JSON of a schema; `options`: llguidance's own, about white space."""
        body = {"x-guidance": options, **schema} if isinstance(schema, dict) else schema
        return self.rule(f"%json {json.dumps(body, ensure_ascii=False)}")

    def reserve(self) -> str:
        """The name of a rule that `define` gives its body later: it may refer to itself."""
        return self._new_name("r")

    def define(self, name: str, body: str) -> None:
        """Give a reserved name its body."""
        self._lines.append(f"{name}: {body}")

    def grammar(self, start: str) -> str:
        """The grammar of answers that are `start`."""
        return "\n".join(["%llguidance {}", f"start: {start}", *self._lines, ""])

    def _named(self, kind: str, attribute: str, body: str) -> str:
        name = self._names.get((kind, body))
        if name is None:
            name = self._names[kind, body] = self._new_name(kind)
            self._lines.append(f"{name}{attribute}: {body}")
        return name

    def _new_name(self, kind: str) -> str:
        self._num_names += 1
        return f"{kind}{self._num_names}"
