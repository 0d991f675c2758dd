"""The rules that hold for every format, shown on one or two of them."""

from __future__ import annotations

import json

import pytest
from atom_spec.formats import FORMATS

from atom.entrypoints.openai.events import ContentDelta, ToolCallArguments, ToolCallStart
from atom.entrypoints.openai.tool_parser.stream import ToolCallReader, new_call_id, read_whole
from tests.entrypoints.openai.tool_parser.reading import CLOCK, NOTE, TOOLS, WEATHER, open_reader, read, read_every_way

CALL = "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n</function>\n</tool_call>"


def test_only_the_markup_goes() -> None:
    answer = read_every_way("qwen", f" \nLook:  {CALL}\n\n and {CALL} \n")
    assert answer.content == " \nLook:  \n\n and  \n"
    assert answer.parsed == [("get_weather", {"city": "Oslo"})] * 2


def test_white_space_in_a_wrapper_is_markup_and_between_wrappers_it_is_content() -> None:
    clock = "<function=clock>\n</function>"
    assert read_every_way("qwen", f"<tool_call>\n{clock}\n \n{clock}\n</tool_call>").content == ""
    assert (
        read_every_way("qwen", f"<tool_call>{clock}</tool_call>\n \n<tool_call>{clock}</tool_call>").content == "\n \n"
    )


@pytest.mark.parametrize("text", ["a < b", "x <tool", "<", "<tool_call", "if (a < b && c << 2) {", "</tool_call>"])
def test_what_only_looks_like_a_marker_is_text(text: str) -> None:
    assert read_every_way("qwen", text).content == text


def test_no_more_is_held_than_the_beginning_of_a_marker() -> None:
    reader = open_reader("qwen")
    assert reader.feed("a <too") == [ContentDelta("a ")]
    assert reader.feed("th") == [ContentDelta("<tooth")]


def test_a_quoted_opener_is_released_as_soon_as_no_call_can_follow() -> None:
    reader = open_reader("qwen")
    assert reader.feed("Write <tool_call>\n") == [ContentDelta("Write ")]
    assert reader.feed("b") == [ContentDelta("<tool_call>\nb")]


def test_the_name_goes_out_before_the_values_and_the_values_at_the_close() -> None:
    reader = open_reader("qwen")
    assert reader.feed("<tool_call>\n<function=get_weather>\n") == []
    assert reader.feed("<parameter=city>") == [ToolCallStart(0, "id0", "get_weather")]
    assert reader.feed("\nOslo\n</parameter>\n") == []
    closing = reader.feed("</function>")
    assert closing[0] == ToolCallArguments(0, '{"city":"Oslo"}')


def test_a_name_that_may_go_on_is_not_announced() -> None:
    reader = open_reader("glm")
    assert reader.feed("<tool_call>clock") == []
    assert reader.feed("s</tool_call>") == [ContentDelta("<tool_call>clocks</tool_call>")]


def test_an_undeclared_name_is_never_announced_and_its_call_stays_text() -> None:
    answer = read_every_way("qwen", f"{CALL}{CALL.replace('get_weather', 'rm')}{CALL}")
    assert [name for name, _ in answer.calls] == ["get_weather", "get_weather"]
    assert answer.content == CALL.replace("get_weather", "rm")
    assert answer.num_undeclared == 1


def test_an_undeclared_call_is_delivered_while_it_is_written() -> None:
    reader = open_reader("qwen", [CLOCK])
    head = "<tool_call>\n<function=get_weather>\n<parameter=city>"
    assert reader.feed(head) == [ContentDelta(head)]
    assert reader.feed("Os") == [ContentDelta("Os")]


def test_a_call_in_the_value_of_an_undeclared_call_is_part_of_it() -> None:
    text = f"<function=save>\n<parameter=text>\n{CALL}\n</parameter>\n</function>"
    assert read_every_way("qwen", text).calls == []


def test_a_declared_and_an_undeclared_call_in_one_wrapper() -> None:
    text = "<tool_call>\n<function=clock>\n</function>\n<function=nope>\n</function>\n</tool_call>!"
    answer = read_every_way("qwen", text)
    assert answer.calls == [("clock", "{}")]
    assert answer.content == "\n<function=nope>\n</function>\n</tool_call>!"


def test_tool_choice_none_drops_the_call_and_keeps_the_text() -> None:
    answer = read_every_way("qwen", f"Before {CALL} after", suppress_calls=True)
    assert (answer.content, answer.calls) == ("Before  after", [])


def test_without_parallel_calls_the_first_one_goes_out() -> None:
    answer = read_every_way("qwen", f"{CALL}, {CALL}.", parallel=False)
    assert (answer.content, len(answer.calls)) == (", .", 1)


def test_text_after_a_call_comes_before_the_end_of_the_stream() -> None:
    reader = open_reader("qwen")
    reader.feed(CALL)
    assert reader.feed(" and on") == [ContentDelta(" and on")]


def test_without_a_format_everything_is_text() -> None:
    reader = ToolCallReader(None, TOOLS)
    assert reader.feed(CALL) == [ContentDelta(CALL)]
    assert reader.feed("") == []
    assert reader.finish() == []
    assert not reader.is_in_region
    assert reader.num_undeclared == 0
    assert read_whole(None, TOOLS, CALL) == [ContentDelta(CALL)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("qwen", "<tool_call>\n<function=note>\n<parameter=text>\nhalf <"),
        ("glm", "<tool_call>note<arg_key>text</arg_key><arg_value>half <"),
        ("minimax", '<minimax:tool_call><invoke name="note"><parameter name="text">half <'),
        ("minimax", ']<]minimax[>[<tool_call>]<]minimax[>[<invoke name="note">]<]minimax[>[<text>half ]<]mini'),
        ("dsml", '<｜DSML｜invoke name="note"><｜DSML｜parameter name="text" string="true">half <｜DSM'),
        ("kimi_k3", '<|open|>call tool="note"<|sep|><|open|>argument key="text" type="string"<|sep|>half <|clo'),
        ("kimi", '<|tool_call_begin|>functions.note:0<|tool_call_argument_begin|>{"text": "half '),
        ("hermes", '<tool_call>\n{"name": "note", "arguments": {"text": "half '),
        ("deepseek_v3", '<｜tool▁call▁begin｜>note<｜tool▁sep｜>{"text": "half '),
        ("llama3_json", '{"name": "note", "parameters": {"text": "half '),
        ("mistral", '[TOOL_CALLS]note[ARGS]{"text": "half '),
        ("mistral", '[TOOL_CALLS][{"name": "note", "arguments": {"text": "half '),
        ("harmony", '<|channel|>commentary to=functions.note<|message|>{"text": "half '),
    ],
)
def test_a_cut_call_has_valid_arguments_with_the_half_value_as_a_string(name: str, text: str) -> None:
    assert read_every_way(name, text).parsed == [("note", {"text": "half "})]


@pytest.mark.parametrize("name", FORMATS)
def test_arguments_are_json_wherever_an_example_is_cut(name: str) -> None:
    for example in FORMATS[name].examples:
        for end in range(len(example.text)):
            for size in (0, 1):
                for _, arguments in read(name, example.text[:end], size).calls:
                    assert isinstance(json.loads(arguments), dict)


def test_a_cut_number_is_a_string() -> None:
    cut = read_every_way("qwen", "<function=get_weather><parameter=city>\nX\n</parameter><parameter=days>\n1")
    assert cut.parsed == [("get_weather", {"city": "X", "days": "1"})]


def test_arguments_keep_the_order_and_the_characters_that_the_model_wrote() -> None:
    text = '<tool_call>{"name": "note", "arguments": {"text": "\\u00e9 日本", "path": 1.10, "n": 1e2}}</tool_call>'
    assert read_every_way("hermes", text).calls == [("note", '{"text":"é 日本","path":1.10,"n":1e2}')]


def test_indexes_ids_and_names_come_once_and_ids_differ() -> None:
    answer = read_every_way("qwen", CALL * 3)
    assert answer.ids == ["id0", "id1", "id2"]
    made_up = {new_call_id() for _ in range(100)}
    assert len(made_up) == 100
    assert all(one.startswith("call_") for one in made_up)


@pytest.mark.parametrize(
    ("indexes", "earlier", "ids"),
    [
        (["0", "1"], 0, ["functions.clock:0", "functions.clock:1"]),
        (["3"], 3, ["functions.clock:3"]),
        (["0", "1"], 3, ["functions.clock:3", "functions.clock:4"]),
        (["0", "0"], 0, ["functions.clock:0", "functions.clock:1"]),
        (["7", "8"], 2, ["functions.clock:7", "functions.clock:8"]),
    ],
)
def test_kimi_ids_are_the_wires_and_go_on_over_the_conversation(
    indexes: list[str], earlier: int, ids: list[str]
) -> None:
    entry = "<|tool_call_begin|>functions.clock:{}<|tool_call_argument_begin|>{{}}<|tool_call_end|>"
    text = "".join(map(entry.format, indexes))
    section = f"<|tool_calls_section_begin|>{text}<|tool_calls_section_end|>"
    assert read_every_way("kimi", section, num_earlier_calls=earlier).ids == ids


def test_whether_the_text_ends_in_a_region_depends_on_the_text_alone() -> None:
    text = f"a {CALL} b <tool_call>"
    for size in (1, 5, 1000):
        reader = open_reader("qwen")
        inside = []
        for start in range(0, len(text), size):
            reader.feed(text[start : start + size])
            inside.append(reader.is_in_region)
        assert inside[-1]
        if size == 1:
            assert inside[2 + len("<tool_call>")]
            assert not inside[2 + len(CALL)]


def test_tools_can_have_names_with_dots_and_dashes() -> None:
    tool = type(WEATHER)("mcp__mail-box.a:b/x", {})
    for name, text in {
        "qwen": "<function=mcp__mail-box.a:b/x></function>",
        "glm": "<tool_call>mcp__mail-box.a:b/x</tool_call>",
        "kimi": "<|tool_call_begin|>functions.mcp__mail-box.a:b/x:4<|tool_call_argument_begin|>{}<|tool_call_end|>",
        "harmony": "<|channel|>commentary to=functions.mcp__mail-box.a:b/x<|message|>{}",
        "mistral": "[TOOL_CALLS]mcp__mail-box.a:b/x[ARGS]{}",
    }.items():
        assert read_every_way(name, text, [tool, NOTE]).calls == [(tool.name, "{}")]
