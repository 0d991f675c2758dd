"""Calls whose arguments are one JSON object, with and without a tag of their own."""

from __future__ import annotations

import pytest

from atom.entrypoints.openai.events import ContentDelta, ToolCallStart
from tests.entrypoints.openai.tool_parser.reading import open_reader, read_every_way

ARGUMENTS = '{"city": "Oslo"}'
EXPECTED = [("get_weather", {"city": "Oslo"})]


def hermes(inside: str) -> str:
    return f"<tool_call>\n{inside}\n</tool_call>"


@pytest.mark.parametrize(
    "inside",
    [
        f'{{"name": "get_weather", "arguments": {ARGUMENTS}}}',
        f'{{"arguments": {ARGUMENTS}, "name": "get_weather"}}',
        f'{{"name": "get_weather", "parameters": {ARGUMENTS}}}',
        f'{{"type": "function", "id": 3, "name": "get_weather", "arguments": {ARGUMENTS}}}',
        f'{{"thought": "hm", "name": "get_weather", "arguments": {ARGUMENTS}}}',
        '{"name": "get_weather", "arguments": "{\\"city\\": \\"Oslo\\"}"}',
    ],
)
def test_a_call_object_in_every_order_and_spelling(inside: str) -> None:
    answer = read_every_way("hermes", f"{hermes(inside)}.")
    assert (answer.parsed, answer.content) == (EXPECTED, ".")


@pytest.mark.parametrize(
    "inside",
    [
        '{"name": "get_weather", "arguments": 5}',
        '{"name": "get_weather", "arguments": "Oslo"}',
        '{"name": 1, "arguments": {}}',
        '{"arguments": {}}',
        '{"name": ""}',
        "{'name': 'clock', 'arguments': {}}",
        "[]",
        "",
        '{"name": "get_weather", "arguments": {...}}',
    ],
)
def test_what_is_no_call_object_stays_text(inside: str) -> None:
    text = f"{hermes(inside)}."
    answer = read_every_way("hermes", text)
    assert (answer.calls, answer.content) == ([], text)


def test_literals_in_strings_are_data() -> None:
    value = '</tool_call> <tool_call> {\\"name\\": 1}'
    text = hermes(f'{{"name": "note", "arguments": {{"text": "{value}"}}}}')
    assert read_every_way("hermes", text).parsed == [("note", {"text": value.replace("\\", "")})]


def test_the_name_goes_out_when_the_arguments_have_shown_a_key() -> None:
    reader = open_reader("hermes")
    assert reader.feed('<tool_call>{"name": "get_weather", "arguments": {"city"') == []
    assert reader.feed(":") == [ToolCallStart(0, "id0", "get_weather")]


def test_an_object_that_breaks_off_keeps_what_was_read_and_leaks_nothing() -> None:
    text = hermes('{"name": "note", "arguments": {"path": "p", "text": "say "hi" there"}}')
    answer = read_every_way("hermes", f"{text} on")
    assert answer.parsed == [("note", {"path": "p", "text": "say "})]
    assert answer.content == " on"


def test_a_start_call_needs_a_declared_name_and_arguments() -> None:
    for text in (
        '{"a": 1} is a dict',
        '{"name": "Ana", "age": 3}\n',
        '{"name": "rm", "parameters": {"x": 1}}',
        "{",
        "{}",
    ):
        answer = read_every_way("llama3_json", text)
        assert (answer.calls, answer.content) == ([], text)
    later = f'Calling: {{"name": "get_weather", "parameters": {ARGUMENTS}}}'
    assert read_every_way("llama3_json", later).content == later


def test_white_space_before_a_start_call_is_content() -> None:
    answer = read_every_way("llama3_json", f'\n {{"name": "get_weather", "parameters": {ARGUMENTS}}} done')
    assert (answer.parsed, answer.content) == (EXPECTED, "\n  done")


def test_calls_apart_by_semicolons() -> None:
    one = f'{{"name": "get_weather", "parameters": {ARGUMENTS}}}'
    assert read_every_way("llama3_json", f"{one}; {one} ;{one}").parsed == EXPECTED * 3
    rest = read_every_way("llama3_json", f'{one}; {{"a": 1}}')
    assert (rest.parsed, rest.content) == (EXPECTED, '; {"a": 1}')


def test_an_answer_in_json_is_delivered_as_it_comes() -> None:
    reader = open_reader("llama3_json")
    reader.feed('{"answer"')
    assert reader.feed(":") == [ContentDelta('{"answer":')]


@pytest.mark.parametrize(
    "text",
    [
        "[TOOL_CALLS]get_weather[ARGS]{}",
        "[TOOL_CALLS] get_weather [ARGS] {}",
        "[TOOL_CALLS]get_weather[CALL_ID]aB3dE6gH9[ARGS]{}",
        "[TOOL_CALLS]get_weather{}",
        '[TOOL_CALLS][{"name": "get_weather", "arguments": {}}]',
        '[TOOL_CALLS] [ {"name": "get_weather", "arguments": {}, "id": "aB3dE6gH9"} ]',
    ],
)
def test_mistrals_spellings(text: str) -> None:
    filled = text.replace("{}", ARGUMENTS)
    answer = read_every_way("mistral", f"{filled}.")
    assert (answer.parsed, answer.content) == (EXPECTED, ".")


def test_kimi_passes_a_body_that_is_no_json_on() -> None:
    entry = "<|tool_call_begin|>functions.clock:0<|tool_call_argument_begin|>{}<|tool_call_end|>"
    section = "<|tool_calls_section_begin|>{}<|tool_calls_section_end|>"
    for body, arguments in {"{'a': 1}": "{'a': 1}", "": "{}", ' \n{"a":\n 1}\n': '{"a":1}', "{": "{"}.items():
        text = section.format(entry.format(body))
        assert read_every_way("kimi", text).calls == [("clock", arguments)]


def test_prose_in_a_section_is_text_and_its_closer_is_still_markup() -> None:
    call = "<|tool_call_begin|>functions.clock:0<|tool_call_argument_begin|>{}<|tool_call_end|>"
    text = f"<|tool_calls_section_begin|>{call} and so on <|tool_calls_section_end|>."
    assert read_every_way("kimi", text).content == " and so on ."
