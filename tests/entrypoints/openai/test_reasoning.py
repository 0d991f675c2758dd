"""The reasoning channel: one side or the other for every byte, at every chunking, held no longer than a marker."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from atom_spec.dialects import DIALECTS, ReasoningDialect
from hypothesis import given, settings
from hypothesis import strategies as st

from atom.entrypoints.openai.events import ContentDelta, Event, ReasoningDelta
from atom.entrypoints.openai.reasoning import ReasoningChannel
from atom.entrypoints.openai.reasoning_dialects import begins_inside, detect_dialect, get_dialect, resolve_dialect

THINK = DIALECTS["think"]
MARKED = [dialect for dialect in DIALECTS.values() if not dialect.in_format]


def sides(events: list[Event]) -> tuple[str, str]:
    """(reasoning, content) of the events."""
    reasoning = "".join(event.text for event in events if isinstance(event, ReasoningDelta))
    content = "".join(event.text for event in events if isinstance(event, ContentDelta))
    return reasoning, content


def split(
    dialect: ReasoningDialect | None, text: str, inside: bool = False, cuts: list[int] | None = None
) -> list[Event]:
    channel = ReasoningChannel(dialect, inside)
    borders = [0, *sorted(cut % (len(text) + 1) for cut in cuts or ()), len(text)]
    events = [event for start, end in pairwise(borders) for event in channel.feed(text[start:end])]
    return events + channel.finish()


def every_cut(text: str) -> list[list[int]]:
    return [[], list(range(len(text))), *[[cut] for cut in range(len(text))]]


@pytest.mark.parametrize(
    ("dialect", "example"),
    [(dialect, example) for dialect in DIALECTS.values() for example in dialect.examples],
    ids=lambda value: value.name if isinstance(value, ReasoningDialect) else value.text,
)
def test_examples_of_the_spec_at_every_cut(dialect: ReasoningDialect, example: object) -> None:
    for cuts in every_cut(example.text):
        events = split(dialect, example.text, example.begins_inside, cuts)
        assert sides(events) == (example.reasoning, example.content)
        assert all(event.text for event in events)


def by_partition(text: str, inside: bool) -> tuple[str, str]:
    """The rule over a whole text: leading markers vanish either way, later ones only where they change sides."""
    kept = {True: "", False: ""}
    redundant = THINK.start if inside else THINK.end
    while leading := re.match(rf"(\s*){redundant}", text):
        kept[inside] += leading[1]
        text = text[leading.end() :]
    while text:
        before, marker, text = text.partition(THINK.end if inside else THINK.start)
        kept[inside] += before
        inside ^= bool(marker)
    return kept[True], kept[False]


TEXTS = st.lists(st.sampled_from(["<think>", "</think>", "<thi", "</", "nk>", "<", " ", "\n", "a", "b c"]), max_size=12)


@given(parts=TEXTS, inside=st.booleans(), cuts=st.lists(st.integers(0, 60), max_size=12))
@settings(max_examples=400, deadline=None)
def test_streamed_equals_whole_and_nothing_is_lost(parts: list[str], inside: bool, cuts: list[int]) -> None:
    text = "".join(parts)
    assert sides(split(THINK, text, inside, cuts)) == sides(split(THINK, text, inside)) == by_partition(text, inside)


@pytest.mark.parametrize("dialect", MARKED, ids=lambda dialect: dialect.name)
@given(thought=st.text(alphabet="a <>[]/|\n", max_size=20), answer=st.text(alphabet="b <>[]/|\n", max_size=20))
@settings(max_examples=60, deadline=None)
def test_a_thought_and_an_answer_come_apart(dialect: ReasoningDialect, thought: str, answer: str) -> None:
    text = f"{dialect.start}{thought}{dialect.end}{answer}"
    assert sides(split(dialect, text)) == (thought, answer)
    assert sides(split(dialect, text.removeprefix(dialect.start), inside=True)) == (thought, answer)


def test_no_more_is_held_than_could_be_a_marker() -> None:
    channel = ReasoningChannel(THINK, begins_inside=True)
    shown = ""
    for place, character in enumerate("a < b </ c </thi d\n"):
        shown += "".join(event.text for event in channel.feed(character))
        held = "a < b </ c </thi d\n"[len(shown) : place + 1]
        assert THINK.end.startswith(held)
    assert shown == "a < b </ c </thi d\n"


def test_outside_the_channel_an_end_marker_is_not_waited_for() -> None:
    channel = ReasoningChannel(THINK)
    assert sides(channel.feed("x")) == ("", "x")
    assert sides(channel.feed("</")) == ("", "</")


@pytest.mark.parametrize(
    ("text", "inside", "reasoning", "content"),
    [
        ("</think>\n\nHi.", False, "", "\n\nHi."),  # closes a block that it never opens
        ("\n</think>Hi.", False, "", "\nHi."),
        ("Use </think> to close.", False, "", "Use </think> to close."),
        ("<think>a</think>b</think>c", False, "a", "b</think>c"),
        ("</think>\n</think>ok", False, "", "\nok"),
        ("<think>again</think>ok", True, "again", "ok"),  # opens what the prompt has opened
        ("the tag <think> opens</think>ok", True, "the tag <think> opens", "ok"),
        ("<think>\n\n</think>ok", False, "\n\n", "ok"),
        ("<think></think>ok", False, "", "ok"),
        ("<think>cut </thi", False, "cut </thi", ""),
        ("a<think>b</think>c<think>d</think>e", False, "bd", "ace"),
        (
            "hm <tool_call>f</tool_call>",
            True,
            "hm <tool_call>f</tool_call>",
            "",
        ),  # a call in an open channel is thought
    ],
)
def test_markers_in_odd_places(text: str, inside: bool, reasoning: str, content: str) -> None:
    for cuts in every_cut(text):
        assert sides(split(THINK, text, inside, cuts)) == (reasoning, content)


@pytest.mark.parametrize("dialect", [None, DIALECTS["harmony"]])
def test_without_markers_everything_passes(dialect: ReasoningDialect | None) -> None:
    channel = ReasoningChannel(dialect, begins_inside=True)
    assert channel.feed("<think>a</think>") == [ContentDelta("<think>a</think>")]
    assert channel.feed("") == []
    assert not channel.is_open


@pytest.mark.parametrize(
    ("dialect", "prompt", "inside"),
    [
        ("think", "<|im_start|>assistant\n<think>\n", True),
        ("think", "<|Assistant|><think>", True),
        ("think", "<|im_start|>assistant\n<think>\n\n</think>\n\n", False),
        ("think", "<|Assistant|></think>", False),
        ("think", "<|im_start|>user\nWhat is <think>?<|im_end|>\n<|im_start|>assistant\n", False),
        ("mm_think", "ai\n<mm:think>", True),
        ("mm_think", "ai\n<think>", False),
        ("k3", "<|open|>think<|sep|>", True),
        ("k3", "<|open|>response<|sep|>", False),
        ("harmony", "<|start|>assistant<|channel|>analysis<|message|>", False),
    ],
)
def test_begins_inside_is_read_off_the_prompt(dialect: str, prompt: str, inside: bool) -> None:
    assert begins_inside(get_dialect(dialect), prompt) is inside


def test_begins_inside_without_a_dialect() -> None:
    assert begins_inside(None, "<think>") is False


@pytest.mark.parametrize(
    ("rendered", "name"),
    [
        ("... assistant\n<think>\n", "think"),
        ("<mm:think>x</mm:think>", "mm_think"),
        ("[THINK]", "bracket_think"),
        ('<|open|>message role="assistant"<|sep|><|open|>think<|sep|>', "k3"),
        ("# Valid channels: analysis, commentary, final.", "harmony"),
        ("I think, therefore I am.", None),
    ],
)
def test_resolve_dialect(rendered: str, name: str | None) -> None:
    dialect = resolve_dialect(rendered)
    assert (dialect.name if dialect else None) == name
    detection = detect_dialect(rendered)
    assert detection is None or detection.evidence in rendered


def test_unknown_dialect_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"known: .*think"):
        get_dialect("thinking")
