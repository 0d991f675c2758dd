"""A value that is written as it stands, between two tags, without quotes: what text it may be.

Owns the terminal of such a value: literals that must not occur in it, the string keywords of its schema, and the texts
that its reader would take for something else than a string. Knows neither tags nor tools.
"""

from __future__ import annotations

from typing import Any

from atom.entrypoints.openai.answer_grammar.lark import slashed
from atom.entrypoints.openai.answer_grammar.schema_tree import SchemaError
from atom.entrypoints.openai.answer_grammar.schemas import with_formats

# What a text is taken for, by its beginning, where other types than strings are allowed and not every value of them is.
_NUMBER, _CONTAINER = r"\-0-9", r"{\["


def text_terminal(any_text: str, node: dict[str, Any], *, not_numbers: bool, not_containers: bool) -> str:
    """The body of a terminal for a string of this schema. `any_text`: the terminal of any text at all.

    not_numbers, not_containers: texts that begin like a number, or like an object or array, are kept out.
    """
    parts = [any_text]
    node = with_formats(node)
    least, most = node.get("minLength", 0), node.get("maxLength")
    if least or most is not None:
        parts.append(f"/(?s:.{{{int(least)},{'' if most is None else int(most)}}})/")
    expressions = [node[keyword] for keyword in ("pattern",) if keyword in node]
    expressions += [member["pattern"] for member in node.get("allOf", ()) if set(member) == {"pattern"}]
    parts += [_searched(expression) for expression in expressions]
    if not_numbers or not_containers:
        beginnings = _NUMBER * not_numbers + _CONTAINER * not_containers
        parts.append(f"/(?s:[^\\s{beginnings}].*)?/")
    return " & ".join(parts)


def _searched(pattern: str) -> str:
    """A terminal for texts in which the pattern is found."""
    options = [_anchored(option) for option in _options(pattern)]
    try:
        return slashed("|".join(options))
    except ValueError as error:
        raise SchemaError(f"pattern {pattern!r}: {error}") from None


def _anchored(option: str) -> str:
    """One option of a pattern with the text that may stand around it."""
    before, after = "(?s:.*)", "(?s:.*)"
    if option.startswith("^"):
        option, before = option[1:], ""
    if option.endswith("$") and not _is_escaped(option, len(option) - 1):
        option, after = option[:-1], ""
    return f"{before}(?:{option}){after}"


def _options(pattern: str) -> list[str]:
    """The pattern split at its outermost bars."""
    options, depth, start, position, in_class = [], 0, 0, 0, False
    while position < len(pattern):
        character = pattern[position]
        if character == "\\":
            position += 1
        elif in_class:
            in_class = character != "]"
        elif character == "[":
            in_class = True
            position += pattern.startswith(("]", "^]"), position + 1) * (2 if pattern[position + 1] == "^" else 1)
        elif character in "()":
            depth += 1 if character == "(" else -1
        elif character == "|" and depth == 0:
            options.append(pattern[start:position])
            start = position + 1
        position += 1
    return [*options, pattern[start:]]


def _is_escaped(text: str, position: int) -> bool:
    head = text[:position]
    return (len(head) - len(head.rstrip("\\"))) % 2 == 1
