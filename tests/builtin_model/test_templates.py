from __future__ import annotations

import json
import random
from typing import Any

import pytest

from tests.builtin_model.fixtures import FOLDER, template
from tools.builtin_model.dialogue import training_dialogue
from tools.builtin_model.render import render_text
from tools.builtin_model.templates import TEMPLATE_DIR, build
from tools.builtin_model.wire import DSML, FORMAT_NAMES
from tools.builtin_model.words import Words

EVIDENCE = {
    "qwen": ["<function=", "<parameter=", "</tool_call>"],
    "hermes": ['{"name": <function-name>, "arguments": <args-json-object>}'],
    "glm": ["<tool_call>name\n<arg_key>", "<arg_value>"],
    "kimi": ["<|tool_calls_section_begin|>", "<|tool_call_argument_begin|>"],
    "kimi_k3": ["<|open|>tools<|sep|>", '<|open|>call tool="', "<|close|>message<|sep|><|end_of_msg|>"],
    "minimax": ["<minimax:tool_call>", '<invoke name="'],
    "dsml": [f"<{DSML}tool_calls>", f'<{DSML}invoke name="', 'string="true"'],
}
ENDINGS = {
    "qwen": ("<think></think>", "<think>"),
    "hermes": ("<think></think>", "<|im_start|>assistant\n"),
    "glm": ("<think></think>", "<|im_start|>assistant\n"),
    "kimi": ("<think></think>", "<|im_start|>assistant\n"),
    "kimi_k3": ("<|open|>response<|sep|>", "<|open|>think<|sep|>"),
    "minimax": ("<think></think>", "<think>"),
    "dsml": ("\n</think>", "<think>"),
}
USER = [{"role": "user", "content": "Weather in Paris?"}]
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of\na city",
        "parameters": {
            "type": "object",
            "$defs": {"Area": {"type": "object", "properties": {"zip": {"type": "integer"}}}},
            "properties": {
                "city": {"type": "string", "description": "City name"},
                "unit": {"enum": ["c", "f", 1]},
                "days": {
                    "type": "array",
                    "items": {"type": "object", "properties": {"day": {"type": ["string", "null"]}}},
                },
                "area": {"anyOf": [{"$ref": "#/$defs/Area"}, {"type": "null"}]},
                "anything": True,
                "fixed": {"const": "x"},
            },
            "required": ["city"],
        },
    },
}
AWKWARD_CALL = {
    "id": "call_1",
    "type": "function",
    "function": {
        "name": "get_weather",
        "arguments": {"city": 'Pa"ris & Ü\n', "n": 1.5, "on": True, "none": None, "list": ["a"], "object": {"k": 1}},
    },
}


@pytest.mark.parametrize("format_name", FORMAT_NAMES)
def test_the_committed_template_is_what_the_builder_writes(format_name: str) -> None:
    assert (TEMPLATE_DIR / f"{format_name}.jinja").read_text(encoding="utf-8") == build(format_name)


def test_the_folder_carries_the_qwen_template() -> None:
    assert json.loads((FOLDER / "tokenizer_config.json").read_text())["chat_template"] == build("qwen")


@pytest.mark.parametrize("trims", [True, False])
def test_training_text_is_what_the_templates_render(trims: bool) -> None:
    """The whole dialogue, and the prompt of its last answer, byte for byte, in every format."""
    words = Words(random.Random(11))
    seen = set()
    for _ in range(150):
        dialogue = training_dialogue(words)
        seen.add(dialogue.format_name)
        jinja = template(dialogue.format_name, trims)
        ours = render_text(dialogue.messages, dialogue.tools, dialogue.format_name)
        assert jinja.render(messages=dialogue.messages, tools=dialogue.tools) == ours
        prompt = render_text(
            dialogue.messages[:-1], dialogue.tools, dialogue.format_name, is_prompt=True, thinking=dialogue.thinking
        )
        rendered = jinja.render(
            messages=dialogue.messages[:-1],
            tools=dialogue.tools or None,
            add_generation_prompt=True,
            enable_thinking=dialogue.thinking,
        )
        assert rendered == prompt
    assert seen == set(FORMAT_NAMES)


@pytest.mark.parametrize("format_name", FORMAT_NAMES)
def test_awkward_schemas_values_and_roles_agree_too(format_name: str) -> None:
    messages: list[dict[str, Any]] = [
        {"role": "developer", "content": "Be brief."},
        *USER,
        {"role": "assistant", "content": "Let me look.", "reasoning_content": "dropped: not the last query"},
        {"role": "user", "content": "Go on."},
        {
            "role": "assistant",
            "content": "",
            "reasoning_content": 'I call "it".',
            "tool_calls": [AWKWARD_CALL, AWKWARD_CALL],
        },
        {"role": "tool", "content": "sunny"},
        {"role": "system", "content": "A late system turn."},
        {"role": "assistant", "content": "", "tool_calls": [AWKWARD_CALL]},
        {"role": "tool", "content": ""},
    ]
    for thinking in (False, True):
        rendered = template(format_name).render(
            messages=messages, tools=[TOOL], add_generation_prompt=True, enable_thinking=thinking
        )
        assert rendered == render_text(messages, [TOOL], format_name, is_prompt=True, thinking=thinking)
        assert "dropped" not in rendered
        assert 'I call "it".' in rendered
        assert rendered.endswith(ENDINGS[format_name][thinking])


def test_a_schema_becomes_one_line_a_parameter() -> None:
    rendered = template("qwen").render(messages=USER, tools=[TOOL])
    lines = rendered[rendered.index("get_weather") : rendered.index("\n# Call")].split("\n")
    assert lines == [
        "get_weather: Weather of a city",
        "-city: string, City name",
        "-unit?: c|f|1",
        "-days?: array of object",
        "--day?: string|null",
        "-area?: object|null",
        "--zip?: integer",
        "-anything?: any",
        "-fixed?: x",
    ]


@pytest.mark.parametrize("format_name", FORMAT_NAMES)
def test_the_system_turn_shows_the_format_only_where_tools_are_declared(format_name: str) -> None:
    with_tools = template(format_name).render(messages=USER, tools=[TOOL], add_generation_prompt=True)
    assert all(literal in with_tools for literal in EVIDENCE[format_name])
    without = template(format_name).render(messages=USER, add_generation_prompt=True)
    own = [literal for literal in EVIDENCE[format_name] if "message" not in literal]
    assert not any(literal in without for literal in own)


@pytest.mark.parametrize("format_name", FORMAT_NAMES)
def test_thinking_is_off_unless_asked_for(format_name: str) -> None:
    jinja = template(format_name)
    default = jinja.render(messages=USER, add_generation_prompt=True)
    assert default == jinja.render(messages=USER, add_generation_prompt=True, enable_thinking=False)
    assert default != jinja.render(messages=USER, add_generation_prompt=True, enable_thinking=True)


def test_k3_also_knows_its_own_switch() -> None:
    jinja = template("kimi_k3")
    assert jinja.render(messages=USER, add_generation_prompt=True, thinking=True).endswith("<|open|>think<|sep|>")
    off = jinja.render(messages=USER, add_generation_prompt=True, thinking=False, enable_thinking=True)
    assert off.endswith("<|open|>response<|sep|>")


@pytest.mark.parametrize("format_name", FORMAT_NAMES)
def test_what_cannot_be_rendered_is_refused(format_name: str) -> None:
    jinja = template(format_name)
    with pytest.raises(ValueError, match="no messages"):
        jinja.render(messages=[])
    with pytest.raises(ValueError, match="wizard"):
        jinja.render(messages=[{"role": "wizard", "content": "x"}])
    with pytest.raises(ValueError, match="text only"):
        jinja.render(messages=[{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}])


@pytest.mark.parametrize("format_name", FORMAT_NAMES)
def test_text_parts_null_content_and_string_arguments(format_name: str) -> None:
    call = {"id": "c", "function": {"name": "get_weather", "arguments": '{"city": "Ulm"}'}}
    parts = [{"role": "user", "content": [{"type": "text", "text": "A"}, {"type": "text", "text": "B"}]}]
    assert "AB" in template(format_name).render(messages=parts)
    messages = [*USER, {"role": "assistant", "content": None, "tool_calls": [call]}]
    if format_name in ("hermes", "kimi"):
        rendered = template(format_name).render(messages=messages)
        assert '{"city": "Ulm"}' in rendered
        assert "None" not in rendered
    else:
        with pytest.raises(ValueError, match="must be an object"):
            template(format_name).render(messages=messages)


def test_kimi_counts_calls_over_the_conversation_and_keeps_given_ids() -> None:
    def call(identifier: str) -> dict[str, Any]:
        return {"id": identifier, "function": {"name": "f", "arguments": {}}}

    messages: list[dict[str, Any]] = [*USER]
    for identifier in ("call_1", "call_2", "functions.f:7"):
        messages += [
            {"role": "assistant", "content": "", "tool_calls": [call(identifier)]},
            {"role": "tool", "content": "ok"},
        ]
    rendered = template("kimi").render(messages=messages)
    assert [part.split("<")[0] for part in rendered.split("functions.f:")[1:]] == ["0", "1", "7"]
