"""Content blocks from events: for any order of events they nest rightly and add up to what was said."""

from __future__ import annotations

import json
from itertools import groupby

import pytest
from atom_spec.anthropic import (
    ContentBlockDelta,
    ContentBlockStart,
    ContentBlockStop,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
)
from hypothesis import given
from hypothesis import strategies as st

from atom.entrypoints.openai.events import (
    ContentDelta,
    Event,
    ReasoningDelta,
    ToolCallArguments,
    ToolCallEnd,
    ToolCallStart,
)
from atom.entrypoints.openai.messages_stream import BlockEvent, BlockStream, Thoughts, fold


def call(index: int, arguments: str = '{"a":1}') -> list[Event]:
    return [ToolCallStart(index, f"call_{index}", "f"), ToolCallArguments(index, arguments), ToolCallEnd(index)]


def play(events: list[Event], thoughts: Thoughts = "shown", size: int = 1) -> list[BlockEvent]:
    stream = BlockStream(thoughts)
    fed = [event for at in range(0, len(events), size) for event in stream.feed(events[at : at + size])]
    return fed + stream.finish()


def said(events: list[Event], thoughts: Thoughts) -> list[tuple[str, str]]:
    """Kind and text of every block that these events should make."""
    kinds: list[tuple[str, str]] = []
    for event in events:
        if isinstance(event, ContentDelta):
            kinds.append(("text", event.text))
        elif isinstance(event, ReasoningDelta) and thoughts != "withheld":
            kinds.append(("thinking", event.text if thoughts == "shown" else ""))
        elif isinstance(event, ToolCallArguments):
            kinds.append((f"call {event.index}", event.text))
    blocks = [(kind, "".join(text for _, text in group)) for kind, group in groupby(kinds, key=lambda item: item[0])]
    return blocks or [("text", "")]


SAID = st.one_of(
    st.just("call"), st.builds(ContentDelta, st.text(min_size=1)), st.builds(ReasoningDelta, st.text("ab"))
)


@given(
    drawn=st.lists(SAID, max_size=12),
    thoughts=st.sampled_from(["shown", "omitted", "withheld"]),
    size=st.integers(1, 5),
)
def test_any_events(drawn: list[object], thoughts: Thoughts, size: int) -> None:
    events: list[Event] = []
    for place, item in enumerate(drawn):
        events += call(place) if item == "call" else [item]  # type: ignore[list-item]  # one list of several events
    streamed = play(events, thoughts, size)
    is_open, num_blocks = False, 0
    for event in streamed:
        assert event.index == num_blocks
        assert isinstance(event, ContentBlockStart) is not is_open
        is_open = not isinstance(event, ContentBlockStop)
        num_blocks += not is_open
    assert not is_open
    got = []
    for block in fold(streamed):
        if isinstance(block, ToolUseBlock):
            got.append((block.id.replace("call_", "call "), json.dumps(block.input, separators=(",", ":"))))
        elif isinstance(block, ThinkingBlock):
            assert block.signature
            got.append(("thinking", block.thinking))
        else:
            got.append(("text", block.text))
    assert got == said(events, thoughts)


def test_a_name_alone_opens_nothing() -> None:
    stream = BlockStream()
    assert stream.feed([ContentDelta("a"), ToolCallStart(0, "call_0", "f")])
    kinds = [type(event) for event in stream.feed([ToolCallArguments(0, "{}"), ToolCallEnd(0)])]
    assert kinds == [ContentBlockStop, ContentBlockStart, ContentBlockDelta, ContentBlockStop]


@pytest.mark.parametrize("body", ["not json", "", "[1]", "3", '{"a":', "[" * 5000])
def test_arguments_that_are_no_object_are_wrapped(body: str) -> None:
    (block,) = fold(play(call(0, body)))
    assert isinstance(block, ToolUseBlock) and block.input == {"raw": body}


def test_an_answer_of_nothing() -> None:
    assert fold(play([])) == [TextBlock(text="")]
    assert fold(play([ReasoningDelta("a")], "withheld")) == [TextBlock(text="")]
    (thought,) = fold(play([ReasoningDelta("a")]))
    assert isinstance(thought, ThinkingBlock) and thought.thinking == "a"
