"""Numbers in JSON Schemas, for a grammar library that counts in 64 bits and reads them as floats.

Owns which numbers are refused, since other ones would be enforced or the library would end the process, and bounds that
are moved inwards to one that it can hold. Knows no other keywords.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, TypeGuard

from atom.entrypoints.openai.answer_grammar.schema_tree import SchemaError

_EDGE = 2**63
_LOWEST = int(math.nextafter(-_EDGE, 0))  # the edge itself is one too many for the library
_LOWER, _UPPER = ("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")
# A multiple's digits without zeros at either end: an automaton of so many states counts the remainders.
_MOST_MULTIPLE = 50_000


def check_numbers(node: dict[str, Any], place: str) -> None:
    """Raise SchemaError for a number of this subschema, not of those in it, that can not be enforced as it stands."""
    for keyword in ("const", "enum"):
        for number in _numbers(node.get(keyword)):
            if abs(number) >= _EDGE or float(number) != number:
                raise SchemaError(f"{keyword!r} (at {place}): the number {number} is too large to be enforced")
    for keyword in (*_LOWER, *_UPPER):
        bound = node.get(keyword)
        if _is_number(bound) and (_inwards(bound) >= _EDGE if keyword in _LOWER else _inwards(bound) <= -_EDGE):
            raise SchemaError(f"{keyword!r} (at {place}): the number {bound} is too large to be enforced")
    multiple = node.get("multipleOf")
    if _is_number(multiple) and _significant(multiple) > _MOST_MULTIPLE:
        raise SchemaError(f"'multipleOf' (at {place}): the number {multiple} has too many digits")


def check_anywhere(schema: Any) -> None:
    """Raise SchemaError when the library would end the process, also over a place that only a reference leads to."""
    lowest = min(_numbers(schema), default=0)
    if lowest <= -_EDGE:
        raise SchemaError(f"the number {lowest} is too large to be enforced")


def with_near_bounds(node: dict[str, Any]) -> dict[str, Any]:
    """The subschema with bounds that a float holds: what is within them is within its own."""
    near = dict(node)
    for keyword in (*_LOWER, *_UPPER):
        bound = node.get(keyword)
        if not _is_number(bound):
            continue
        if keyword in _LOWER and (bound < _LOWEST or (bound < _EDGE and float(bound) < bound)):
            near[keyword] = max(_LOWEST, _next(bound, math.inf))
        elif keyword in _UPPER and bound < _EDGE - 1 and float(bound) > bound:
            near[keyword] = _next(bound, -math.inf)
    return near


def _next(bound: int | float, direction: float) -> int:
    """The float next to an integer that is none, as an integer."""
    if bound < _LOWEST:
        return _LOWEST
    return int(math.nextafter(float(bound), direction))


def _inwards(bound: int | float) -> float:
    if abs(bound) > 2 * _EDGE:
        return math.inf if bound > 0 else -math.inf
    return float(bound)


def _significant(number: int | float) -> int:
    digits = Decimal(repr(number)).normalize().as_tuple().digits
    return int("".join(map(str, digits)) or "0")


def _numbers(value: Any) -> Iterator[int | float]:
    """Every number in a JSON value."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if _is_number(one):
            yield one
        elif isinstance(one, dict | list):
            waiting += one.values() if isinstance(one, dict) else one


def _is_number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
