"""Each property is held by a right delivery and broken by the fault that it is there for."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from atom.entrypoints.openai.events import (
    ContentDelta,
    Event,
    ReasoningDelta,
    ToolCallArguments,
    ToolCallEnd,
    ToolCallStart,
)
from conformance.answer import fold
from conformance.case import Case, DrawnCall, Kind, Request, Span
from conformance.delivery import Delivery, Step
from conformance.properties import PROPERTIES, compact_json, first_missing
from conformance.tally import breach_of
from tests.conformance.scripts import call_events

TOOL = {"type": "function", "function": {"name": "now", "parameters": {}}}
CASE = Case(
    "calls",
    "Hi[now]by",
    Request(tools=(TOOL,)),
    (
        Span(Kind.TEXT, 0, 2, "Hi", "Hi"),
        Span(Kind.REGION, 2, 7, "", "", (DrawnCall("now", {"a": 1, "b": "é"}),), name_due=6),
        Span(Kind.TEXT, 7, 9, "by", "by"),
    ),
)
START, ARGUMENTS, END = ToolCallStart(0, "id", "now"), ToolCallArguments(0, '{"a":1,"b":"é"}'), ToolCallEnd(0)
RIGHT: list[tuple[int, list[Event]]] = [
    (2, [ContentDelta("Hi")]),
    (6, [START]),
    (7, [ARGUMENTS, END]),
    (9, [ContentDelta("by")]),
    (9, []),
]


def _delivery(steps: Sequence[tuple[int, list[Event]]]) -> Delivery:
    placed = tuple(Step(offset, tuple(events)) for offset, events in steps)
    return Delivery(placed, fold(event for step in placed for event in step.events))


def _broken(steps: Sequence[tuple[int, list[Event]]]) -> set[str]:
    right, delivered = _delivery(RIGHT), _delivery(steps)
    return {one.name for one in PROPERTIES if breach_of(one, CASE, delivered, right) is not None}


def test_a_right_delivery_breaks_nothing() -> None:
    assert _broken(RIGHT) == set()


def _said(content: str) -> list[tuple[int, list[Event]]]:
    return [(2, [ContentDelta("Hi")]), (6, [START]), (7, [ARGUMENTS, END]), (9, [ContentDelta(content)]), (9, [])]


def _called(name: str, arguments: str) -> list[tuple[int, list[Event]]]:
    return [(2, [ContentDelta("Hi")]), (7, call_events(0, name, arguments)), (9, [ContentDelta("by")]), (9, [])]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (_said("b"), {"same_bytes", "nothing_lost", "hold", "text_after_call"}),
        (_said("by]"), {"same_bytes", "no_leak"}),
        (_called("now", '{"a":2,"b":"é"}'), {"same_bytes", "calls"}),
        (_called("now", '{"b":"é","a":1}'), {"same_bytes", "calls"}),
        (_called("now", '{"a": 1,"b":"é"}'), {"same_bytes", "arguments_json"}),
        (_called("now", '{"a":1,"b":"\\u00e9"}'), {"same_bytes", "arguments_json"}),
        (_called("now", '{"a":1,"b":"'), {"same_bytes", "calls", "arguments_json"}),
        (_called("rm", '{"a":1,"b":"é"}'), {"same_bytes", "calls", "early_name"}),
    ],
    ids=["lost", "leaked", "value", "key order", "space", "escape", "no JSON", "undeclared"],
)
def test_a_wrong_answer(steps: list[tuple[int, list[Event]]], expected: set[str]) -> None:
    assert _broken(steps) == expected


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([*RIGHT[:1], (6, []), (7, [START, ARGUMENTS, END]), *RIGHT[3:]], {"early_name"}),
        ([(2, []), (6, [ContentDelta("Hi"), START]), *RIGHT[2:]], {"hold"}),
        ([*RIGHT[:2], (7, []), (9, [ARGUMENTS, END, ContentDelta("by")]), (9, [])], {"hold"}),
        ([*RIGHT[:3], (9, []), (9, [ContentDelta("by")])], {"hold", "text_after_call"}),
    ],
    ids=["name late", "text late", "call late", "tail at the end"],
)
def test_a_right_answer_that_comes_too_late(steps: list[tuple[int, list[Event]]], expected: set[str]) -> None:
    assert _broken(steps) == expected


def test_text_in_the_wrong_channel_is_lost_and_leaked() -> None:
    assert {"nothing_lost", "no_leak"} <= _broken([(2, [ReasoningDelta("Hi")]), *RIGHT[1:]])


def test_an_error_of_the_reader_is_a_breach() -> None:
    failed = Delivery((), None, "the reader raised KeyError: 'x'")
    assert breach_of(PROPERTIES[0], CASE, failed, failed) == failed.error


@pytest.mark.parametrize(
    ("text", "compact"),
    [
        ('{ "a" : [1.50, 1e2, -0] }', '{"a":[1.50,1e2,-0]}'),
        ('{"a":"\\u00e9\\u0001"}', '{"a":"é\\u0001"}'),
        ('{"a":1,"a":2}', '{"a":2}'),
        ('{"a":"\\ud83c"}', '{"a":"\\ud83c"}'),
    ],
)
def test_compact_json_keeps_numbers_as_they_were_spelled(text: str, compact: str) -> None:
    assert compact_json(text) == compact


def test_first_missing_finds_subsequences() -> None:
    assert first_missing("ac", "abc") is None
    assert first_missing("ca", "abc") == 1
