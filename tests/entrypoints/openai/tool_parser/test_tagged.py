"""Where a tagged value ends, and what models get wrong around it."""

from __future__ import annotations

from typing import Any

import pytest

from atom.entrypoints.openai.tool_parser.stream import Tool
from tests.entrypoints.openai.tool_parser.reading import WEATHER, read_every_way

D = "｜DSML｜"


def qwen_note(value: str) -> str:
    return f"<tool_call>\n<function=note>\n<parameter=text>\n{value}\n</parameter>\n</function>\n</tool_call>"


@pytest.mark.parametrize(
    "value",
    [
        "the </tool_call> tag hides here",
        "<tool_call>\n<function= in a value",
        "a </parameter> b",
        "a </parameter>\n\n<b></parameter> c",
        "<parameter= without an end",
        "  indented\n\n",
        "\n",
        "",
        "a < b && c << 2",
        "</functio",
        "日本 🎈 \u200b",
    ],
)
def test_a_value_comes_back_as_it_was_written(value: str) -> None:
    answer = read_every_way("qwen", f"{qwen_note(value)}!")
    assert answer.parsed == [("note", {"text": value})]
    assert answer.content == "!"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("<parameter=city>\nOslo\n<parameter=days>\n2\n</parameter>\n", {"city": "Oslo", "days": 2}),
        ("<parameter=days>\n2\n</parameter>\n<parameter=city>\nOslo\n", {"days": 2, "city": "Oslo"}),
        ("<parameter=city>Oslo</parameter></parameter>\n", {"city": "Oslo"}),
        ("<parameter=city>Oslo</parameter1>\n<parameter=days>2</parameter>", {"city": "Oslo</parameter1>", "days": 2}),
        ("<parameter=zip>0123</parameter>", {"zip": "0123"}),
        ("<parameter=city>a</parameter><parameter=city>b</parameter>", {"city": "b"}),
    ],
)
def test_missing_doubled_and_malformed_closers(arguments: str, expected: dict[str, object]) -> None:
    text = f"<tool_call>\n<function=get_weather>\n{arguments}</function>\n</tool_call>"
    assert read_every_way("qwen", text).parsed == [("get_weather", expected)]


def test_a_missing_call_closer_is_made_up_for_by_what_follows() -> None:
    one = "<function=clock>\n<parameter=a>1</parameter>\n"
    assert read_every_way("qwen", f"<tool_call>{one}</tool_call> .").content == " ."
    answer = read_every_way("qwen", f"<tool_call>{one}{one}</function></tool_call>")
    assert [name for name, _ in answer.calls] == ["clock", "clock"]


def test_closers_left_over_by_a_value_that_the_calls_closer_cut_are_markup() -> None:
    answer = read_every_way("qwen", qwen_note("close with </function> here"))
    assert answer.parsed == [("note", {"text": "close with "})]
    assert answer.content == " here\n</parameter>\n"
    later = read_every_way("qwen", f"{qwen_note('x')} A </function> and a </tool_call> in prose.")
    assert later.content == " A </function> and a </tool_call> in prose."


def test_a_lone_wrapper_closer_behind_a_bare_call_is_markup() -> None:
    call = "<function=clock>\n</function>"
    assert read_every_way("qwen", f"Go. {call}\n</tool_call> on").content == "Go.  on"
    assert read_every_way("qwen", f"{call}\n\nText").content == "\n\nText"
    assert read_every_way("qwen", f"{call}{' ' * 500}</tool_call>").content == f"{' ' * 500}</tool_call>"


def test_a_name_in_prose_behind_the_opener_is_no_call() -> None:
    text = "GLM opens with <tool_call>clock, then come pairs."
    assert read_every_way("glm", text).content == text


def test_dsml_infers_the_tool_from_its_parameters_where_only_one_fits() -> None:
    head, tail = f'<{D}tool_calls>\n<{D}parameter name="', f'" string="true">x</{D}parameter>\n</{D}tool_calls>'
    assert read_every_way("dsml", f"{head}city{tail}").parsed == [("get_weather", {"city": "x"})]
    for key in ("unknown", "days"):
        answer = read_every_way("dsml", f"{head}{key}{tail}")
        assert (answer.calls, answer.content) == ([], f"{head}{key}{tail}")
    twice = [WEATHER, Tool("other", WEATHER.parameters)]
    assert read_every_way("dsml", f"{head}city{tail}", twice).calls == []


def test_dsml_takes_an_envelope_off_unless_the_tool_declares_it() -> None:
    value = f'<{D}parameter name="input" string="false">{{"city": "Ulm"}}</{D}parameter>'
    text = f'<{D}invoke name="get_weather">\n{value}\n</{D}invoke>'
    assert read_every_way("dsml", text).parsed == [("get_weather", {"city": "Ulm"})]
    direct = f'<{D}invoke name="get_weather">{{"arguments": {{"city": "Ulm"}}}}</{D}invoke>'
    assert read_every_way("dsml", direct).parsed == [("get_weather", {"city": "Ulm"})]
    for key in ("input", "arguments"):
        tool = Tool("get_weather", {"properties": {key: {"type": "object"}}})
        answer = read_every_way("dsml", text.replace("input", key), [tool])
        assert answer.parsed == [("get_weather", {key: {"city": "Ulm"}})]
    words = text.replace('{"city": "Ulm"}', "no object")
    assert read_every_way("dsml", words).parsed == [("get_weather", {"input": "no object"})]


@pytest.mark.parametrize(
    ("written", "arguments"),
    [
        ("", {}),
        ("{", {}),
        ('{"city": "U', {"city": "U"}),
        ('{"city": "Ulm", "days": 2', {"city": "Ulm", "days": "2"}),
        ("no obj", {"input": "no obj"}),
    ],
)
def test_dsml_takes_an_envelope_off_where_the_text_ends_in_it(written: str, arguments: dict[str, Any]) -> None:
    text = f'<{D}invoke name="get_weather">\n<{D}parameter name="input" string="false">{written}'
    assert read_every_way("dsml", text).parsed == [("get_weather", arguments)]


def test_a_direct_body_that_breaks_off_keeps_what_was_read_and_leaks_nothing() -> None:
    text = f'<{D}invoke name="note">\n{{"text": "a", oops}}\n</{D}invoke> on'
    answer = read_every_way("dsml", text)
    assert answer.parsed == [("note", {"text": "a"})]
    assert answer.content == " on"


def test_a_body_that_holds_nothing_legible_is_no_call() -> None:
    text = f'<{D}tool_calls>\n<{D}invoke name="get_weather">\n<arg city="x"/>\n</{D}invoke></{D}tool_calls>'
    answer = read_every_way("dsml", text)
    assert (answer.calls, answer.content) == ([], text)


def test_k3_attributes_are_unescaped_and_values_are_not() -> None:
    argument = '<|open|>argument key="a&amp;b&quot;" type="number"<|sep|>1<|close|>argument<|sep|>'
    text = f'<|open|>argument key="text"<|sep|>&amp;<|close|>argument<|sep|>{argument}'
    answer = read_every_way("kimi_k3", f'<|open|>call tool="note"<|sep|>{text}<|close|>call<|sep|>')
    assert answer.parsed == [("note", {"text": "&amp;", 'a&b"': 1})]


def test_k3_framing_goes_and_an_undeclared_call_goes_with_its_channel() -> None:
    call = '<|open|>tools<|sep|><|open|>call tool="rm"<|sep|><|close|>call<|sep|><|close|>tools<|sep|>'
    answer = read_every_way("kimi_k3", f"A<|close|>response<|sep|>{call}<|open|>response<|sep|>B<|end_of_msg|>")
    assert (answer.content, answer.calls, answer.num_undeclared) == ("AB", [], 1)
    empty = "<|open|>tools<|sep|><|close|>tools<|sep|>"
    assert read_every_way("kimi_k3", f"A{empty}B").content == "AB"
