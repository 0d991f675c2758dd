"""What a cut answer must still be."""

from __future__ import annotations

import pytest

from conformance.answer import Answer, Call
from conformance.case import Case, DrawnCall, Kind, Request, Span
from conformance.properties import Breach
from conformance.truncation import check_cut

TEXT = 'Hi <t>a</t>[now{"x":"long","y":2}] by'
CALL = DrawnCall("now", {"x": "long", "y": 2})
CASE = Case(
    "calls",
    TEXT,
    Request(),
    (
        Span(Kind.TEXT, 0, 3, "Hi ", "Hi "),
        Span(Kind.MARKUP, 3, 6),
        Span(Kind.REASONING, 6, 7, "a", "a"),
        Span(Kind.MARKUP, 7, 11),
        Span(Kind.REGION, 11, 34, "", "", (CALL,)),
        Span(Kind.TEXT, 34, 37, " by", " by"),
    ),
)


def _answer(content: str, reasoning: str = "a", *calls: tuple[str, str], finish_reason: str = "length") -> Answer:
    return Answer(content, reasoning, tuple(Call(*call) for call in calls), finish_reason)


@pytest.mark.parametrize(
    ("length", "answer"),
    [
        (2, _answer("Hi", "")),
        (5, _answer("Hi <t", "")),
        (5, _answer("Hi ", "")),
        (9, _answer("Hi ", "a</")),
        (13, _answer("Hi [n")),
        (15, _answer("Hi ", "a", ("now", "{}"))),
        (24, _answer("Hi ", "a", ("now", '{"x":"lo"}'))),
        (33, _answer("Hi ", "a", ("now", '{"x":"long","y":"2"}'))),
        (36, _answer("Hi  b", "a", ("now", '{"x":"long","y":2}'))),
    ],
)
def test_right_answers(length: int, answer: Answer) -> None:
    check_cut(CASE, length, answer)


@pytest.mark.parametrize(
    ("length", "answer", "why"),
    [
        (2, _answer("Hi", "", finish_reason="stop"), "hides the token limit"),
        (2, _answer("H", ""), "content 'H', wanted 'Hi'"),
        (5, _answer("Hi <x", ""), "no end of"),
        (13, _answer("Hi n"), "no call came of"),
        (
            24,
            _answer(
                "Hi ",
                "a",
                ("now", '{"x":"lo'),
            ),
            "not JSON",
        ),
        (24, _answer("Hi ", "a", ("then", '{"x":"lo"}')), "where 'now' was begun"),
        (24, _answer("Hi ", "a", ("now", '{"z":"lo"}')), "keys"),
        (33, _answer("Hi ", "a", ("now", '{"x":"lo","y":2}')), "'x' is 'lo'"),
        (24, _answer("Hi ", "a", ("now", '{"x":"lo"}'), ("now", "{}")), "only 1 were begun"),
        (36, _answer("Hi  b", "a", ("now", '{"x":"long"}')), "complete call"),
        (36, _answer("Hi  b"), "complete calls"),
    ],
)
def test_wrong_answers(length: int, answer: Answer, why: str) -> None:
    with pytest.raises(Breach, match=why):
        check_cut(CASE, length, answer)
