"""The chain of text stages: whole equals streamed, each stage sees what it should, counts are of tokens."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from atom_spec.dialects import DIALECTS
from atom_spec.formats import FORMATS
from hypothesis import given, settings
from hypothesis import strategies as st

from atom.entrypoints.openai.events import (
    ContentDelta,
    Event,
    ReasoningDelta,
    ToolCallArguments,
    ToolCallEnd,
    ToolCallStart,
)
from atom.entrypoints.openai.pipeline import AnswerPipeline, TextStages, joined
from atom.entrypoints.openai.tool_parser.registry import get_format
from atom.entrypoints.openai.tool_parser.stream import Tool
from atom.text.detokenizer import Detokenizer
from atom.tokenizer import Tokenizer
from tests.text import vocabularies

THINK = DIALECTS["think"]
TOOLS = [Tool("get_weather", {"type": "object", "properties": {"city": {"type": "string"}}})]
CALL = "<tool_call>\n<function=get_weather>\n<parameter=city>\n{}\n</parameter>\n</function>\n</tool_call>"
OSLO = CALL.format("Oslo")


def stages(**more: Any) -> TextStages:
    given = {"dialect": THINK, "spec": get_format("qwen"), "tools": TOOLS, "id_factory": lambda: "call_x", **more}
    return TextStages(**given)


def run(made: TextStages, text: str, size: int = 10**9) -> list[Event]:
    events = [event for start in range(0, len(text), size) for event in made.feed(text[start : start + size])]
    return joined(events + made.finish())


def content(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, ContentDelta))


def reasoning(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, ReasoningDelta))


def calls(events: list[Event]) -> list[tuple[str, Any]]:
    names = {event.index: event.name for event in events if isinstance(event, ToolCallStart)}
    arguments = dict.fromkeys(names, "")
    for event in events:
        if isinstance(event, ToolCallArguments):
            arguments[event.index] += event.text
    return [(name, json.loads(arguments[index])) for index, name in names.items()]


PIECES = ["<think>", "</think>", OSLO, "<tool_call>", "Hi ", "st", "op", "\n", "🧭", "<", CALL.format("a <think> b")]


@given(parts=st.lists(st.sampled_from(PIECES), max_size=8), inside=st.booleans(), ends=st.booleans(), data=st.data())
@settings(max_examples=250, deadline=None)
def test_whole_equals_streamed_at_random_cuts(parts: list[str], inside: bool, ends: bool, data: st.DataObject) -> None:
    text = "".join(parts)
    given = {"begins_inside": inside, "stop_strings": ["stop", "p\n"], "ends_at_call": ends}
    whole = stages(**given)
    expected = run(whole, text)
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=20))
    streamed, events = stages(**given), []
    for start, end in pairwise([0, *sorted(cuts), len(text)]):
        events += streamed.feed(text[start:end])
    events = joined(events + streamed.finish())
    assert content(events) == content(expected)
    assert reasoning(events) == reasoning(expected)
    assert calls(events) == calls(expected)
    assert streamed.stop_string == whole.stop_string
    assert streamed.num_tool_calls == whole.num_tool_calls


def test_an_answer_in_order() -> None:
    events = run(stages(), f"<think>hm</think>\nLook: {OSLO} done")
    assert events == [
        ReasoningDelta("hm"),
        ContentDelta("\nLook: "),
        ToolCallStart(0, "call_x", "get_weather"),
        ToolCallArguments(0, '{"city":"Oslo"}'),
        ToolCallEnd(0),
        ContentDelta(" done"),
    ]


def test_a_call_in_an_open_channel_stays_reasoning() -> None:
    events = run(stages(begins_inside=True), f"so: {OSLO} maybe</think>No.")
    assert (reasoning(events), content(events), calls(events)) == (f"so: {OSLO} maybe", "No.", [])


@pytest.mark.parametrize("size", [1, 3, 7, 10**9])
class TestReasoningEndsAtCall:
    """--reasoning-ends-at-tool-call."""

    def test_a_declared_call_ends_the_channel(self, size: int) -> None:
        events = run(stages(begins_inside=True, ends_at_call=True), f"so: {OSLO} done", size)
        assert (reasoning(events), content(events)) == ("so: ", " done")
        assert calls(events) == [("get_weather", {"city": "Oslo"})]

    def test_the_models_own_end_marker_may_still_come(self, size: int) -> None:
        text = f"so: {OSLO}</think>done <think>more</think> </think>"
        events = run(stages(begins_inside=True, ends_at_call=True), text, size)
        assert (reasoning(events), content(events)) == ("so: more", "done  </think>")

    def test_an_undeclared_or_quoted_call_ends_nothing(self, size: int) -> None:
        other = OSLO.replace("get_weather", "other")
        events = run(stages(begins_inside=True, ends_at_call=True), f"<tool_call> is {other} a</think>No.", size)
        assert (reasoning(events), content(events), calls(events)) == (f"<tool_call> is {other} a", "No.", [])

    def test_a_call_cut_by_the_end_of_the_text(self, size: int) -> None:
        text = "so: <tool_call>\n<function=get_weather>\n<parameter=city>\nOs"
        events = run(stages(begins_inside=True, ends_at_call=True), text, size)
        assert (reasoning(events), content(events)) == ("so: ", "")
        assert calls(events) == [("get_weather", {"city": "Os"})]

    def test_the_end_marker_comes_first_where_it_stands_first(self, size: int) -> None:
        events = run(stages(ends_at_call=True), f"<think>a <tool_call> b</think>c{OSLO}", size)
        assert (reasoning(events), content(events)) == ("a <tool_call> b", "c")
        assert len(calls(events)) == 1


@pytest.mark.parametrize("size", [1, 3, 7, 10**9])
def test_no_marker_spans_a_thought(size: int) -> None:
    events = run(stages(), f"a <tool_<think>hm</think>call> b{OSLO}", size)
    assert (content(events), reasoning(events), len(calls(events))) == ("a <tool_call> b", "hm", 1)


@pytest.mark.parametrize("spec", [get_format("qwen"), None])
def test_a_thought_settles_the_text_before_it(spec: Any) -> None:
    made = stages(spec=spec)
    events = made.feed("a <") + made.feed("<think>")
    assert content(events) == "a <"


@pytest.mark.parametrize("size", [1, 3, 7, 10**9])
def test_markers_in_an_argument_are_data(size: int) -> None:
    value = "a <think>b</think> c"
    events = run(stages(), f"{CALL.format(value)}ok<think>x</think>y", size)
    assert calls(events) == [("get_weather", {"city": value})]
    assert (reasoning(events), content(events)) == ("x", "oky")


@pytest.mark.parametrize("size", [1, 3, 7, 10**9])
class TestStopStrings:
    """They look at the answer's text alone."""

    def test_not_at_reasoning(self, size: int) -> None:
        made = stages(stop_strings=["42"])
        events = run(made, "<think>Maybe 42, again.</think>It is 42.", size)
        assert (reasoning(events), content(events), made.stop_string) == ("Maybe 42, again.", "It is ", "42")

    def test_not_at_a_calls_arguments(self, size: int) -> None:
        made = stages(stop_strings=["Oslo", "\n"])
        events = run(made, f"{OSLO}after\nmore", size)
        assert calls(events) == [("get_weather", {"city": "Oslo"})]
        assert (content(events), made.stop_string) == ("after", "\n")

    def test_not_across_a_call_or_a_thought(self, size: int) -> None:
        made = stages(stop_strings=["ab"])
        events = run(made, f"a{OSLO}b a<think>x</think>b", size)
        assert (content(events), made.stop_string) == ("ab ab", None)

    def test_nothing_follows_a_match(self, size: int) -> None:
        made = stages(stop_strings=["END"], include_stop=True)
        events = run(made, f"ok END{OSLO}<think>x</think>", size)
        assert events == [ContentDelta("ok END")]
        assert made.feed("more") == []
        assert made.num_tool_calls == 0


def test_text_before_a_call_is_not_held_by_a_half_stop_string() -> None:
    made = stages(stop_strings=["abc"])
    events = made.feed("xab" + OSLO)
    assert events[:2] == [ContentDelta("x"), ContentDelta("ab")]
    assert isinstance(events[2], ToolCallStart)


def test_without_format_and_dialect_text_passes() -> None:
    events = run(TextStages(), f"<think>a</think>{OSLO}")
    assert events == [ContentDelta(f"<think>a</think>{OSLO}")]


def pipeline(tokenizer: Tokenizer, **more: Any) -> AnswerPipeline:
    return AnswerPipeline(Detokenizer(tokenizer), stages(**more))


TOKENIZER = Tokenizer(vocabularies.byte_level())


@given(data=st.data(), inside=st.booleans())
@settings(max_examples=100, deadline=None)
def test_counts_and_events_do_not_depend_on_the_deal(data: st.DataObject, inside: bool) -> None:
    text = "".join(data.draw(st.lists(st.sampled_from(PIECES), max_size=6)))
    ids = TOKENIZER.encode(text)
    whole, streamed = (pipeline(TOKENIZER, begins_inside=inside, stop_strings=["stop"]) for _ in range(2))
    expected = joined(whole.feed(ids) + whole.finish())
    events, start = [], 0
    while start < len(ids):
        end = start + data.draw(st.integers(1, 9))
        events += streamed.feed(ids[start:end])
        start = end
    events = joined(events + streamed.finish())
    assert (content(events), reasoning(events), calls(events)) == (
        content(expected),
        reasoning(expected),
        calls(expected),
    )
    assert streamed.num_reasoning_tokens == whole.num_reasoning_tokens
    assert streamed.num_tokens == whole.num_tokens
    assert (streamed.stop_string, streamed.has_tool_calls) == (whole.stop_string, whole.has_tool_calls)


def test_reasoning_tokens_are_those_of_the_open_channel() -> None:
    thought, answer = TOKENIZER.encode("hm hm</think>"), TOKENIZER.encode("Yes.")
    made = pipeline(TOKENIZER, begins_inside=True)
    made.feed(thought + answer)
    assert made.num_reasoning_tokens == len(thought)
    assert made.num_tokens == len(thought) + len(answer)


def test_tokens_count_up_to_the_one_that_completed_a_stop_string() -> None:
    ids = [TOKENIZER.encode(text) for text in ("one ", "stop", " two")]
    made = pipeline(TOKENIZER, stop_strings=["stop"])
    events = made.feed([*ids[0], *ids[1], *ids[2]])
    assert events == [ContentDelta("one ")]
    assert made.num_tokens == len(ids[0]) + len(ids[1])
    assert made.finish() == []


@pytest.mark.parametrize("size", [1, 3, 99])
@pytest.mark.parametrize(
    ("min_tokens", "shown"), [(0, "one "), (8, "one "), (9, "one stop two "), (99, "one stop two stop")]
)
def test_stop_strings_end_nothing_before_min_tokens(size: int, min_tokens: int, shown: str) -> None:
    ids = [TOKENIZER.encode(letter)[0] for letter in "one stop two stop"]  # "stop" is complete with the eighth
    made = AnswerPipeline(Detokenizer(TOKENIZER), stages(stop_strings=["stop"]), min_tokens)
    events = [event for start in range(0, len(ids), size) for event in made.feed(ids[start : start + size])]
    assert content(joined(events + made.finish())) == shown
    assert made.stop_string == (None if min_tokens == 99 else "stop")


def test_an_answer_cut_inside_a_character() -> None:
    ids = TOKENIZER.encode("<think>🧭")
    made = pipeline(TOKENIZER)
    events = made.feed(ids[:-1]) + made.finish()
    assert events == [ReasoningDelta("\ufffd")]


def test_a_completion_is_text_and_stop_strings() -> None:
    made = AnswerPipeline.for_completion(TOKENIZER, stop_strings=["een blue ye"])
    ids = TOKENIZER.encode(" <think>green blue yellow")
    events = [event for token_id in ids for event in made.feed([token_id])]
    assert content(events) == " <think>gr"
    assert made.stop_string == "een blue ye"
    assert not made.has_tool_calls and made.num_undeclared == 0


EXAMPLES = [
    (spec, example, DIALECTS[name])
    for spec in FORMATS.values()
    for example in spec.examples
    for name in spec.dialects_of(example.variant)
    if example.calls and not DIALECTS[name].in_format and not spec.has_start_forms
]


@pytest.mark.parametrize("size", [1, 3, 7, 10**9])
@pytest.mark.parametrize(
    ("spec", "example", "dialect"),
    EXAMPLES,
    ids=[f"{spec.name}-{number}" for number, (spec, _, _) in enumerate(EXAMPLES)],
)
def test_every_formats_calls_in_and_behind_a_thought(spec: Any, example: Any, dialect: Any, size: int) -> None:
    names = [name for name, _ in example.calls]
    given = {"spec": spec, "dialect": dialect, "tools": [Tool(name, {}) for name in names], "begins_inside": True}
    behind = run(TextStages(**given), f"hm < {dialect.end}{example.text}", size)
    assert (reasoning(behind), [name for name, _ in calls(behind)]) == ("hm < ", names)
    inside = run(TextStages(**given), f"hm < {example.text}", size)
    assert (reasoning(inside), calls(inside)) == (f"hm < {example.text}", [])
    ending = run(TextStages(**given, ends_at_call=True), f"hm < {example.text}", size)
    assert reasoning(ending).startswith("hm < ")
    assert [name for name, _ in calls(ending)] == names
