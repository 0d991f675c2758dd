"""Messages in channels: headers, recipients, thoughts, preambles."""

from __future__ import annotations

import pytest

from tests.entrypoints.openai.tool_parser.reading import open_reader, read_every_way

CALL = '{"city": "Oslo"}'
EXPECTED = [("get_weather", {"city": "Oslo"})]


@pytest.mark.parametrize(
    "header",
    [
        "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>",
        "<|channel|>commentary to=functions.get_weather<|constrain|>json<|message|>",
        "<|channel|>commentary to=functions.get_weather code<|message|>",
        "<|channel|>commentary to=functions.get_weather<|message|>",
        "<|channel|>analysis to=functions.get_weather<|message|>",
        "<|channel|>commentary to=get_weather<|message|>",
        " to=functions.get_weather<|channel|>commentary<|message|>",
        "<|start|>assistant to=functions.get_weather<|channel|>commentary json<|message|>",
        "<|start|>assistant<|channel|>commentary to=functions.get_weather<|message|>",
    ],
)
def test_a_recipient_makes_a_call_wherever_it_stands(header: str) -> None:
    for end in ("<|call|>", "<|end|>", ""):
        assert read_every_way("harmony", f"{header}{CALL}{end}").parsed == EXPECTED


def test_channels_are_thoughts_answers_and_preambles() -> None:
    text = (
        "<|channel|>analysis<|message|>Hm.\n<|end|><|start|>assistant<|channel|>commentary<|message|>One moment.<|end|>"
        f"<|start|>assistant<|channel|>commentary to=functions.get_weather<|message|>{CALL}<|call|>"
        "<|start|>assistant<|channel|>final<|message|> Done.\n<|return|>"
    )
    answer = read_every_way("harmony", text)
    assert (answer.reasoning, answer.content) == ("Hm.\n", "One moment. Done.\n")
    assert answer.parsed == EXPECTED


def test_a_message_in_an_unknown_channel_is_dropped() -> None:
    text = "<|channel|>comentary?<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>ok"
    assert read_every_way("harmony", text).content == "ok"


def test_an_undeclared_recipient_is_dropped_and_counted() -> None:
    text = '<|channel|>commentary to=functions.rm<|message|>{"path": "/"}<|call|>'
    answer = read_every_way("harmony", text)
    assert (answer.content, answer.calls, answer.num_undeclared) == ("", [], 1)


def test_the_templates_own_tools_take_what_they_are_sent() -> None:
    text = "<|channel|>commentary to=python<|message|>print(1)"
    assert read_every_way("harmony", text).calls == [("python", "print(1)")]
    assert read_every_way("harmony", text, suppress_calls=True).calls == []


@pytest.mark.parametrize(
    "text", ["No channels at all.", "A <|channel and a <|start|> sign", "<|channel|> alone, quoted"]
)
def test_text_without_headers_is_text(text: str) -> None:
    assert read_every_way("harmony", text).content == text


def test_a_quoted_channel_token_in_a_message_is_text() -> None:
    text = "It writes `<|channel|>commentary to=functions.` and `<|start|>assistant` there."
    assert read_every_way("harmony", f"<|channel|>final<|message|>{text}<|return|>").content == text


def test_a_cut_header_is_text_and_a_bare_start_is_none() -> None:
    assert (
        read_every_way("harmony", "<|channel|>commentary to=functions.ge").content
        == "<|channel|>commentary to=functions.ge"
    )
    assert read_every_way("harmony", "<|channel|>final<|message|>a<|end|><|start|>assistant").content == "a"


def test_a_call_without_a_body_has_no_arguments_and_a_body_that_is_no_json_passes() -> None:
    head = "<|channel|>commentary to=functions.clock<|message|>"
    assert read_every_way("harmony", f"{head}<|call|>").calls == [("clock", "{}")]
    assert read_every_way("harmony", f"{head}now<|call|>").calls == [("clock", "now")]
    assert read_every_way("harmony", f"{head}now").calls == [("clock", "{}")]


def test_thoughts_go_out_as_they_come_and_only_calls_are_regions() -> None:
    reader = open_reader("harmony")
    reader.feed("<|channel|>analysis<|message|>")
    assert [event.text for event in reader.feed("a thought")] == ["a thought"]  # type: ignore[union-attr]  # only events with text here
    assert not reader.is_in_region
    reader.feed('<|end|><|start|>assistant<|channel|>commentary to=functions.clock<|message|>{"a": ')
    assert reader.is_in_region
