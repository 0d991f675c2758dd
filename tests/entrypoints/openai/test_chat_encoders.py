"""Finding and rendering a model's chat template, or running its encoder; every failure is a ChatTemplateError."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from atom.entrypoints.openai.chat_encoder_adapters import load_python_encoder
from atom.entrypoints.openai.chat_encoders import (
    ChatTemplateError,
    JinjaChatEncoder,
    chat_template_source,
    load_chat_encoder,
)

USER = [{"role": "user", "content": "Hi"}]
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"ü": "<b>"}}}]


def jinja(text: str, **special: str) -> JinjaChatEncoder:
    return JinjaChatEncoder({"default": text}, special, "test")


def test_messages_tools_and_special_tokens_reach_the_template() -> None:
    text = "{{ bos_token }}{{ tools | tojson if tools else '-' }}{{ messages[0].content }}{{ add_generation_prompt }}"
    encoder = jinja(text, bos_token="<s>")
    assert encoder.render(USER) == "<s>-HiTrue"
    expected = '<s>[{"type": "function", "function": {"name": "f", "parameters": {"ü": "<b>"}}}]HiFalse'
    assert encoder.render(USER, TOOLS, add_generation_prompt=False) == expected
    assert chat_template_source(encoder) == text


def test_blocks_are_trimmed_and_loops_controlled() -> None:
    text = "{% for m in messages %}\n    {% if m.content == 'Hi' %}\nA\n{% break %}\n    {% endif %}\n{% endfor %}"
    assert jinja(text).render(USER * 3) == "A\n"


def test_tojson_takes_the_options_that_templates_use() -> None:
    template = "{{ x | tojson(indent=1, sort_keys=true) }}{{ x | tojson(separators=(',', ':'), ensure_ascii=true) }}"
    assert jinja(template).render(USER, x={"b": 1, "a": "é"}) == '{\n "a": "é",\n "b": 1\n}{"b":1,"a":"\\u00e9"}'
    assert jinja("{{ messages | map(attribute='role') | tojson }}").render(USER) == '["user"]'


def test_generation_blocks_render_their_body() -> None:
    assert jinja("a{% generation %}b{{ messages[0].content }}{% endgeneration %}c").render(USER) == "abHic"


def test_strftime_now_gives_a_date() -> None:
    assert jinja("{{ strftime_now('%Y') }}").render(USER).isdigit()


def test_accepts_is_what_the_template_reads() -> None:
    encoder = jinja(
        "{{ bos_token }}{% if enable_thinking is defined %}{{ raise_exception('x') }}{% endif %}{{ documents }}"
    )
    assert encoder.accepts == {"enable_thinking", "documents"}
    assert encoder.render(USER, surprise=1, documents="d") == "d"
    assert encoder.render(USER, range="1", namespace="2") == ""


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ raise_exception('Only users may speak') }}", "Only users may speak"),
        ("{{ messages[0].nothing.more }}", "UndefinedError"),
        ("{{ 'a' + 1 }}", "TypeError"),
        ("{{ 1 // 0 }}", "ZeroDivisionError"),
        ("{{ x | tojson }}", "TypeError"),
        ("{{ ''.__class__.__mro__ }}", "SecurityError"),
    ],
)
def test_a_template_that_fails_is_an_error_for_the_client(template: str, message: str) -> None:
    with pytest.raises(ChatTemplateError, match=message):
        jinja(template).render(USER)


def test_a_template_that_does_not_compile_names_its_line() -> None:
    with pytest.raises(ChatTemplateError, match="line 2"):
        jinja("a\n{% if %}")


def test_a_template_changes_only_its_own_copy() -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Hi", "parts": [1]}]
    encoder = jinja("{% set _ = messages[0].parts.append(2) %}{{ messages[0].parts }}")
    assert encoder.render(messages) == "[1, 2]"
    assert messages[0]["parts"] == [1]


def test_tools_are_none_or_empty_as_the_template_needs() -> None:
    assert jinja("{{ tools is none }}").render(USER, []) == "True"
    assert jinja("{% for tool in tools %}x{% endfor %}|").render(USER) == "|"


class TestLoad:
    """Which template of a folder counts."""

    def test_order_of_the_files(self, tmp_path: Path) -> None:
        assert load_chat_encoder(tmp_path) is None
        (tmp_path / "tokenizer_config.json").write_text(
            json.dumps({"chat_template": "C{{ eos_token }}", "eos_token": "</s>"})
        )
        assert self.rendered(tmp_path) == "C</s>"
        (tmp_path / "chat_template.json").write_text(json.dumps({"chat_template": "J"}))
        assert self.rendered(tmp_path) == "J"
        (tmp_path / "chat_template.jinja").write_text("F")
        assert self.rendered(tmp_path) == "F"
        assert self.rendered(tmp_path, "{{ 'inline' }}") == "inline"
        (tmp_path / "mine.jinja").write_text("M{{ eos_token }}")
        assert self.rendered(tmp_path, tmp_path / "mine.jinja") == "M</s>"
        assert self.rendered(tmp_path, str(tmp_path / "mine.jinja")) == "M</s>"

    @pytest.mark.parametrize("as_list", [True, False])
    def test_named_templates(self, tmp_path: Path, as_list: bool) -> None:
        named = {"default": "plain", "tool_use": "tools"}
        value: Any = [{"name": key, "template": text} for key, text in named.items()] if as_list else named
        (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": value}))
        encoder = load_chat_encoder(tmp_path)
        assert encoder is not None
        assert encoder.render(USER) == "plain"
        assert encoder.render(USER, TOOLS) == "tools"

    def test_additional_templates(self, tmp_path: Path) -> None:
        (tmp_path / "chat_template.jinja").write_text("plain")
        (tmp_path / "additional_chat_templates").mkdir()
        (tmp_path / "additional_chat_templates" / "tool_use.jinja").write_text("tools")
        encoder = load_chat_encoder(tmp_path)
        assert encoder is not None
        assert (encoder.render(USER), encoder.render(USER, TOOLS)) == ("plain", "tools")

    def test_what_can_not_be_a_template_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(ChatTemplateError, match="neither a readable file nor a Jinja template"):
            load_chat_encoder(tmp_path, "no such file")
        (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": 3}))
        with pytest.raises(ChatTemplateError, match=r"tokenizer_config\.json"):
            load_chat_encoder(tmp_path)
        (tmp_path / "chat_template.json").write_text("{")
        with pytest.raises(ChatTemplateError, match="not valid JSON"):
            load_chat_encoder(tmp_path)

    @staticmethod
    def rendered(folder: Path, template: Path | str | None = None) -> str:
        encoder = load_chat_encoder(folder, template)
        assert encoder is not None
        return encoder.render(USER)


ENCODER = """
def encode_messages(messages, thinking_mode, context=None, drop_thinking=True, reasoning_effort=None):
    messages.append({"role": "end"})
    tools = messages[0].get("tools", [])
    names = ",".join(tool["function"]["name"] for tool in tools)
    if messages[0]["content"] == "fail":
        raise KeyError("boom")
    return f"{thinking_mode}|{drop_thinking}|{reasoning_effort}|{names}|{len(messages)}"
"""


class TestPythonEncoder:
    """Code that a model folder brings."""

    @staticmethod
    def folder(tmp_path: Path, source: str = ENCODER) -> Path:
        (tmp_path / "encoding").mkdir(exist_ok=True)
        (tmp_path / "encoding" / "encoding_test.py").write_text(source)
        return tmp_path

    def test_it_runs_only_when_trusted(self, tmp_path: Path) -> None:
        folder = self.folder(tmp_path, "raise SystemError('ran')" + ENCODER)
        with pytest.raises(ChatTemplateError, match="--trust-remote-code"):
            load_chat_encoder(folder)
        with pytest.raises(ChatTemplateError, match="ran"):
            load_chat_encoder(folder, trust_remote_code=True)

    def test_a_template_stands_in_when_it_is_not_trusted(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        (tmp_path / "chat_template.jinja").write_text("F")
        encoder = load_chat_encoder(self.folder(tmp_path))
        assert encoder is not None
        assert encoder.render(USER) == "F"
        assert "encoding_test.py is not used" in caplog.text

    def test_keywords_are_filtered_by_the_signature(self, tmp_path: Path) -> None:
        encoder = load_chat_encoder(self.folder(tmp_path), trust_remote_code=True)
        assert encoder is not None
        assert encoder.accepts == {"thinking_mode", "drop_thinking", "reasoning_effort"}
        controls = {"tool_choice": "none", "response_format": {}, "enable_thinking": True, "reasoning_effort": "max"}
        assert encoder.render(USER, **controls) == "thinking|True|max||2"
        assert encoder.render(USER, thinking_mode="chat") == "chat|True|None||2"

    def test_tools_go_onto_the_leading_system_message(self, tmp_path: Path) -> None:
        encoder = load_chat_encoder(self.folder(tmp_path), trust_remote_code=True)
        assert encoder is not None
        messages = [{"role": "system", "content": "S"}, *USER]
        assert encoder.render(messages, TOOLS) == "thinking|True|None|f|3"
        assert encoder.render(USER, TOOLS) == "thinking|True|None|f|3"
        assert messages == [{"role": "system", "content": "S"}, *USER]

    def test_tools_go_to_a_parameter_of_their_own(self, tmp_path: Path) -> None:
        signature = "def encode_messages(messages, tools=None, add_generation_prompt=True):"
        source = signature + "\n    return f'{len(tools or [])}{add_generation_prompt}'"
        encoder = load_chat_encoder(self.folder(tmp_path, source), trust_remote_code=True)
        assert encoder is not None
        assert encoder.accepts == frozenset()
        assert encoder.render(USER, TOOLS, add_generation_prompt=False) == "1False"

    def test_failures_are_errors_for_the_client(self, tmp_path: Path) -> None:
        encoder = load_chat_encoder(self.folder(tmp_path), trust_remote_code=True)
        assert encoder is not None
        with pytest.raises(ChatTemplateError, match="KeyError: 'boom'"):
            encoder.render([{"role": "user", "content": "fail"}])
        self.folder(tmp_path, "def encode_messages(messages):\n    return [1]")
        encoder = load_python_encoder(tmp_path / "encoding" / "encoding_test.py")
        with pytest.raises(ChatTemplateError, match="returned list"):
            encoder.render(USER)
        self.folder(tmp_path, "encode_messages = None")
        with pytest.raises(ChatTemplateError, match="no function encode_messages"):
            load_chat_encoder(tmp_path, trust_remote_code=True)

    def test_of_several_encoders_none_is_used(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        (tmp_path / "chat_template.jinja").write_text("F")
        (self.folder(tmp_path) / "encoding" / "encoding_other.py").write_text(ENCODER)
        encoder = load_chat_encoder(tmp_path, trust_remote_code=True)
        assert encoder is not None
        assert encoder.render(USER) == "F"
        assert "several encoders" in caplog.text
