"""Sums, differences and small products, with the working as the thought.

Owns: the working and which pairs are held out (the wordings are in data/phrases.txt). Does not know: other skills.
"""

from __future__ import annotations

from tools.builtin_model.words import Words, is_held_out

_SIGN_WORDS = {"+": "plus", "-": "minus", "*": "times"}


def sums(words: Words, is_two_digit: bool) -> tuple[str, str, str]:
    """(question, thought, answer). Two-digit pairs are split into training and held-out ones, which are additions."""
    if not is_two_digit and words.chance(0.2):
        return _three_terms(words)
    while True:
        op = "+" if is_two_digit and words.held_out else words.choose("+++--*")
        if op == "*":
            a, b = words.number(0, 9), words.number(0, 9)
        elif is_two_digit:
            a, b = words.number(10, 99), words.number(10, 99)
        else:
            a, b = words.number(0, 20), words.number(0, 9)
        if op == "-" and b > a:
            a, b = b, a
        if op == "*" or not is_two_digit or is_held_out(f"{a}{op}{b}") == words.held_out:
            break
    result = {"+": a + b, "-": a - b, "*": a * b}[op]
    question = words.phrase("sum").format(a=a, b=b, op=op, word=_SIGN_WORDS[op])
    return question, _working(a, op, b, result), f"{a} {op} {b} = {result}"


def _working(a: int, op: str, b: int, result: int) -> str:
    """The tens and the units apart, where there are tens."""
    tens, units = b - b % 10, b % 10
    if op == "+" and b >= 10:
        low, high = a % 10, a - a % 10
        low_sum, high_sum = low + units, high + tens
        return f"{low} + {units} = {low_sum}. {high} + {tens} = {high_sum}. {high_sum} + {low_sum} = {result}."
    if op == "-" and b >= 10:
        return f"{a} - {tens} = {a - tens}. {a - tens} - {units} = {result}."
    return f"{a} {op} {b} = {result}."


def _three_terms(words: Words) -> tuple[str, str, str]:
    a, b, c = (words.number(1, 9) for _ in range(3))
    question = words.phrase("three terms").format(a, b, c)
    return question, f"{a} + {b} = {a + b}. {a + b} + {c} = {a + b + c}.", f"{a} + {b} + {c} = {a + b + c}"
