"""The frame of an answer: text and calls where a tool is strict, thoughts before what is enforced, ends."""

from __future__ import annotations

import json
from typing import Any

import llguidance
import pytest
from atom_spec.dialects import DIALECTS
from atom_spec.formats import FORMATS, Example

from atom.entrypoints.openai.answer_grammar.answers import Speech, Wanted
from atom.entrypoints.openai.answer_grammar.calls import ToolSchema
from atom.entrypoints.openai.answer_grammar.made import make
from atom.entrypoints.openai.answer_grammar.schema_tree import SchemaError
from tests.fakes.enforced_calls import WAYS, Way

BYTES = llguidance.LLTokenizer("byte")
CITY = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"]}
WEATHER = ToolSchema("tools[0]", "get_weather", CITY)


def speech(name: str, thinking: bool = False, *, inside: bool = False) -> Speech:
    spec = FORMATS[name]
    variant = spec.variants[0] if spec.variants else None
    dialects = spec.dialects_of(variant)
    dialect = DIALECTS[dialects[0]] if dialects else None
    return Speech(spec, variant, dialect, thinking, inside, ("<|end|>",))


def reads(grammar: str, text: str) -> tuple[bool, bool]:
    """Whether the grammar takes the text, and whether the answer may end there."""
    matcher = llguidance.LLMatcher(BYTES, grammar, log_level=0)
    assert not matcher.is_error(), matcher.get_error()
    taken = matcher.consume_tokens(list(text.encode()))
    return taken, taken and matcher.is_accepting()


def first_example(way: Way) -> Example:
    return next(one for one in way.spec.examples if one.variant == way.variant or one.variant is None)


@pytest.mark.parametrize(
    "way", [way for way in WAYS if any(e.variant == way.variant for e in way.spec.examples)], ids=lambda way: way.name
)
def test_a_strict_tool_lets_the_model_speak_and_call(way: Way) -> None:
    example = first_example(way)
    name, arguments = example.calls[0]
    members = {
        key: {"type": "integer"} if isinstance(value, int) else {"type": "string"}
        for key, value in json.loads(arguments).items()
    }
    tool = ToolSchema("tools[0]", name, {"type": "object", "properties": members})
    grammar = make(way.speech(("<|im_end|>",)), Wanted((tool,)))
    assert reads(grammar, example.text)[0], example.text
    wrong = example.text.replace("Oslo", "Oslo\x00").replace(name, f"{name}_x")
    assert reads(grammar, wrong) != (True, True)


@pytest.mark.parametrize(
    ("name", "text"),
    [("qwen", "2 < 3 and </b>."), ("hermes", "a"), ("glm", ""), ("mistral", "[x]"), ("llama3_json", "No {x}")],
)
def test_a_strict_tool_leaves_text_alone(name: str, text: str) -> None:
    assert reads(make(speech(name), Wanted((WEATHER,))), text) == (True, True)


CALL = "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n</function>\n</tool_call>"


@pytest.mark.parametrize(
    ("thinking", "text", "taken"),
    [
        (True, f"I think <tool_call> is one.</think>{CALL}", True),
        (True, f"Hm.</think>\n\n{CALL}", True),
        (False, f"<think>Hm.</think>{CALL}", True),
        (False, CALL, True),
        (False, f"Sure. {CALL}", False),
        (True, f"{CALL}</think>Done.", False),
    ],
)
def test_a_thought_is_free_and_the_call_comes_behind_it(thinking: bool, text: str, taken: bool) -> None:
    grammar = make(speech("qwen", thinking), Wanted((WEATHER,), must_call=True))
    assert reads(grammar, text) == (taken, taken)


def test_an_answer_can_not_end_before_its_call_does() -> None:
    grammar = make(speech("qwen"), Wanted((WEATHER,), must_call=True))
    ends = [cut for cut in range(len(CALL) + 1) if reads(grammar, CALL[:cut])[1]]
    assert ends == [len(CALL)]


@pytest.mark.parametrize(("parallel", "taken"), [(True, True), (False, False)])
def test_one_call_or_several(parallel: bool, taken: bool) -> None:
    grammar = make(speech("qwen"), Wanted((WEATHER,), must_call=True, parallel=parallel))
    assert reads(grammar, f"{CALL}\n{CALL}")[0] is taken


def test_numbered_calls_count_on_from_the_conversation() -> None:
    grammar = make(speech("kimi"), Wanted((WEATHER,), must_call=True, num_earlier_calls=3))
    call = '<|tool_call_begin|>functions.get_weather:{}<|tool_call_argument_begin|>{{"city": "Oslo"}}<|tool_call_end|>'
    begin, end = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
    assert reads(grammar, begin + call.format(3) + call.format(4) + end) == (True, True)
    assert not reads(grammar, begin + call.format(0) + end)[0]


def test_a_channel_that_the_prompt_has_opened_is_closed_first() -> None:
    wanted = Wanted((ToolSchema("tools[0]", "now", {}),), must_call=True)
    call = '<|open|>tools<|sep|><|open|>call tool="now" index="1"<|sep|><|close|>call<|sep|><|close|>tools<|sep|>'
    assert reads(make(speech("kimi_k3", inside=True), wanted), f"<|close|>response<|sep|>{call}") == (True, True)
    assert reads(make(speech("kimi_k3", thinking=True), wanted), f"Hm.<|close|>think<|sep|>{call}") == (True, True)


def test_json_where_the_format_frames_its_answers() -> None:
    wanted = Wanted(json=CITY)
    assert reads(make(speech("harmony"), wanted), '<|channel|>final<|message|>{"city": "Oslo"}') == (True, True)
    thought = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant"
    assert reads(make(speech("harmony"), wanted), thought + '<|channel|>final<|message|>{"city":"x"}') == (True, True)
    assert reads(make(speech("kimi_k3", inside=True), wanted), '{"city": "Oslo"}<|close|>response<|sep|>') == (
        True,
        True,
    )


def test_json_holds_nothing_that_a_reader_takes_for_markup() -> None:
    grammar = make(speech("qwen"), Wanted(json=CITY))
    assert reads(grammar, '{"city": "<thin"}') == (True, True)
    assert not reads(grammar, '{"city": "<think>"}')[0]


def test_a_token_that_ends_answers_is_not_written() -> None:
    spec = FORMATS["harmony"]
    ending = Speech(spec, None, DIALECTS["harmony"], False, False, ("<|call|>", "<|return|>"))
    grammar = make(ending, Wanted((WEATHER,), must_call=True))
    call = '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Oslo"}'
    assert reads(grammar, call) == (True, True)
    assert not reads(grammar, call + "<|call|>")[0]


@pytest.mark.parametrize(
    ("name", "tool", "word"),
    [
        ("qwen", {"type": "object", "properties": {"a>b": {}}}, "a>b"),
        ("qwen", {"type": "object", "patternProperties": {"^x": {}}}, "patternProperties"),
        ("glm", {"type": "object", "properties": {"a": {"enum": ["</tool_call>"]}}}, "enum"),
        ("hermes", {"type": "object", "properties": {"a": {"not": {}}}}, "'not'"),
    ],
)
def test_what_a_format_can_not_write_is_refused_by_tool(name: str, tool: dict[str, Any], word: str) -> None:
    with pytest.raises(SchemaError, match="order") as refused:
        make(speech(name), Wanted((ToolSchema("tools[0]", "order", tool),), must_call=True))
    assert word in str(refused.value)


def test_a_model_without_a_format_can_not_be_made_to_call() -> None:
    with pytest.raises(SchemaError, match="no format"):
        make(Speech(None, None, None, False, False, ()), Wanted((WEATHER,), must_call=True))
