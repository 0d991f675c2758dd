"""The fold of events into an answer, and the orders of events that it refuses."""

from __future__ import annotations

import pytest

from atom.entrypoints.openai.events import (
    ContentDelta,
    Event,
    ReasoningDelta,
    ToolCallArguments,
    ToolCallEnd,
    ToolCallStart,
)
from conformance.answer import Answer, Call, ProtocolError, fold

CALL: list[Event] = [ToolCallStart(0, "id0", "now"), ToolCallArguments(0, "{}"), ToolCallEnd(0)]


def test_deltas_of_each_channel_are_joined() -> None:
    events: list[Event] = [ReasoningDelta("hm"), ContentDelta("a"), *CALL, ContentDelta("b")]
    assert fold(events) == Answer("ab", "hm", (Call("now", "{}"),), "tool_calls")


@pytest.mark.parametrize(
    ("events", "engine_finish", "expected"),
    [([], "stop", "stop"), (CALL, "stop", "tool_calls"), ([], "length", "length"), (CALL, "length", "length")],
)
def test_the_token_limit_is_never_hidden(events: list[Event], engine_finish: str, expected: str) -> None:
    assert fold(events, engine_finish).finish_reason == expected


@pytest.mark.parametrize(
    "events",
    [
        [ToolCallArguments(0, "{}")],
        [ToolCallStart(1, "id", "now")],
        CALL[:2],
        [*CALL, ToolCallArguments(0, "{}")],
        [*CALL, ToolCallStart(1, "id0", "now"), ToolCallEnd(1)],
        [CALL[0], ToolCallStart(1, "id1", "now")],
        [ContentDelta("")],
    ],
    ids=["no start", "skips an index", "never ended", "after the end", "id used twice", "two open", "empty delta"],
)
def test_orders_that_no_client_could_follow_are_refused(events: list[Event]) -> None:
    with pytest.raises(ProtocolError):
        fold(events)


def test_ids_take_no_part_in_equality() -> None:
    assert Call("now", "{}", "a") == Call("now", "{}", "b")
