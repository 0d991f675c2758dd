"""Why no reader asks "would this parse by now?" and gives up when it would not (docs/decisions/0001).

Each shape is a call whose beginnings are none: by the bytes that have arrived, a probe would have given up on it. The
whole of each is the positive control: the reader accepts it. What can't become a call is given up at once, by grammar.
"""

from __future__ import annotations

import pytest

from atom.entrypoints.openai.events import ContentDelta, ToolCallStart
from tests.entrypoints.openai.tool_parser.reading import open_reader, read_every_way

DSML = "｜DSML｜"
SHAPES = {
    # The name has been read, and still it takes the first tag behind it to make it a call.
    "first tag": ("minimax", '<minimax:tool_call>\n<invoke name="clock">', "\n</invoke>\n</minimax:tool_call>"),
    "first element": (
        "minimax",
        ']<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name="clock">',
        "\n]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>",
    ),
    # An object in the place of parameters is one only when it has shown a key, or closes.
    "direct JSON": ("dsml", f'<{DSML}tool_calls>\n<{DSML}invoke name="clock">\n{{', f"}}\n</{DSML}invoke>"),
    # Without its wrapper, a call begins like a tag in prose.
    "no wrapper": ("dsml", f'Go.\n<{DSML}invoke name="clock"', f">\n\n</{DSML}invoke>"),
    "no wrapper, no marker": ("dsml", 'Go.\n<invoke name="clock"', ">\n\n</invoke>"),
    # Without its call tag, only its parameters together say what it is.
    "no call tag": (
        "dsml",
        f'<{DSML}tool_calls>\n<{DSML}parameter name="city" string="true">Oslo</{DSML}parameter>',
        f"\n</{DSML}invoke>\n</{DSML}tool_calls>",
    ),
    # The name may come last, after any number of bytes.
    "name last": ("hermes", '<tool_call>{"arguments": {"city": "Oslo"}', ', "name": "get_weather"}</tool_call>'),
    "bare name": ("glm", "<tool_call>clock", "</tool_call>"),
}


@pytest.mark.parametrize(("name", "beginning", "rest"), SHAPES.values(), ids=SHAPES)
def test_a_beginning_that_is_no_call_yet_is_held(name: str, beginning: str, rest: str) -> None:
    reader = open_reader(name)
    early = [event for character in beginning for event in reader.feed(character)]
    assert not any(isinstance(event, ToolCallStart) for event in early)
    assert "".join(event.text for event in early if isinstance(event, ContentDelta)) in ("", "Go.\n")
    assert reader.is_in_region
    later = reader.feed(rest) + reader.finish()
    assert any(isinstance(event, ToolCallStart) for event in later), "the positive control: the whole is a call"


@pytest.mark.parametrize(("name", "beginning", "rest"), SHAPES.values(), ids=SHAPES)
def test_the_whole_is_a_call_at_every_cut(name: str, beginning: str, rest: str) -> None:
    answer = read_every_way(name, beginning + rest)
    assert [tool for tool, _ in answer.calls] in (["clock"], ["get_weather"])
    assert answer.content in ("", "Go.\n")


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape != "no call tag"])
def test_what_the_grammar_rules_out_is_given_up_at_once(shape: str) -> None:
    """The same beginnings, followed by prose. (Parameters without a call's tag could always get one more.)"""
    name, beginning, _ = SHAPES[shape]
    reader = open_reader(name)
    text = beginning + " is how it begins"
    said = "".join(event.text for event in reader.feed(text) if isinstance(event, ContentDelta))
    assert said == text
