"""What is found out about a model's template, and which of a request's controls reach it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from atom.entrypoints.openai.chat_encoders import ChatTemplateError, JinjaChatEncoder, load_chat_encoder
from atom.entrypoints.openai.chat_profile import ChatProfile, probe_chat_encoder, render_probe_prompt
from atom.entrypoints.openai.messages_conversion import convert_messages
from atom.entrypoints.openai.template_needs import ARGUMENT, RESULT, THOUGHT
from atom.tokenizer import Tokenizer
from tests.shared_data import shared_path
from tests.text import vocabularies

USER = [{"role": "user", "content": "Hi"}]
# A template of our own in the manner of Qwen's: tools as XML calls, a switch, a thought behind the last user turn.
QWEN = """
{%- if tools %}Tools: {{ tools | tojson }} Call so: <tool_call>
<function=NAME>
<parameter=KEY>
VALUE
</parameter>
</function>
</tool_call>{% endif %}
{%- for m in messages %}<{{ m.role }}>
{%- if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}
{%- for c in m.tool_calls or [] %}<tool_call>
<function={{ c.function.name }}>
{% for key, value in c.function.arguments.items() %}<parameter={{ key }}>
{{ value }}
</parameter>
{% endfor %}</function>
</tool_call>{% endfor %}{% endfor %}
{%- set effort = reasoning_effort | default('low') %}
{%- if effort not in ['low', 'high'] %}{{ raise_exception('effort') }}{% endif %}
{%- if add_generation_prompt %}<assistant>{% if SWITCH %}<think>

</think>

{% else %}OPEN{% endif %}{% endif %}"""


def qwen(switch: str = "enable_thinking is defined and not enable_thinking", opens: str = "") -> JinjaChatEncoder:
    text = QWEN.replace("SWITCH", switch).replace("OPEN", opens)
    return JinjaChatEncoder({"default": text}, {}, "test")


def summary(profile: ChatProfile) -> tuple[str | None, str | None, bool, tuple[str, Any] | None]:
    """(format, dialect, begins inside, (switch, value that turns thinking off))."""
    switch = profile.thinking_switch
    return (
        profile.format.name if profile.format else None,
        profile.dialect.name if profile.dialect else None,
        profile.begins_inside,
        (switch.keyword, switch.off) if switch else None,
    )


def test_a_template_with_a_switch(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        profile = probe_chat_encoder(qwen())
    assert summary(profile) == ("qwen", "think", False, ("enable_thinking", False))
    assert (profile.effort_keyword, profile.efforts) == ("reasoning_effort", ("low", "high"))
    assert len(caplog.messages) == len(profile.evidence) == 4
    assert "tool-call format qwen: the template shows '<function='" in caplog.messages[0]
    assert "reasoning dialect think: the template has '<think>'" in caplog.messages[1]
    assert "enable_thinking=False" in caplog.messages[2] and "</think>" in caplog.messages[2]
    assert "begin outside" in caplog.messages[3]


def test_a_template_that_opens_the_channel() -> None:
    profile = probe_chat_encoder(qwen("false", "<think>\n"))
    assert summary(profile) == ("qwen", "think", True, None)
    on = probe_chat_encoder(qwen("thinking is not defined or not thinking", "<think>"))
    assert summary(on) == ("qwen", "think", False, ("thinking", False))


def test_a_plain_template_resolves_to_nothing_and_says_so() -> None:
    text = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:"
    profile = probe_chat_encoder(JinjaChatEncoder({"default": text}, {}, "test"))
    assert summary(profile) == (None, None, False, None)
    assert "renders no tools" in profile.evidence[0]
    assert "no reasoning dialect" in profile.evidence[1]
    unknown = JinjaChatEncoder({"default": "{{ tools | tojson }}" + text}, {}, "test")
    assert "none is recognised" in probe_chat_encoder(unknown).evidence[0]


def test_a_name_overrides_and_an_unknown_one_is_refused_with_the_list() -> None:
    profile = probe_chat_encoder(qwen(), "hermes")
    assert profile.format is not None and profile.format.name == "hermes"
    assert "--tool-call-parser" in profile.evidence[0]
    with pytest.raises(ValueError, match=r"'qwne'.*hermes"):
        probe_chat_encoder(qwen(), "qwne")


@pytest.mark.parametrize(
    ("template", "reason"),
    [("{{ raise_exception('never') }}", "never"), ("{{ 1 / 0 }}", "division by zero"), ("", "the prompt is empty")],
)
def test_a_template_that_renders_nothing_at_all_is_refused_with_the_reason(template: str, reason: str) -> None:
    with pytest.raises(ChatTemplateError, match=f"does not render a single user message: .*{reason}"):
        probe_chat_encoder(JinjaChatEncoder({"default": template}, {}, "test"))


def test_the_probe_prompt_shows_a_thought_a_call_and_its_result() -> None:
    rendered = render_probe_prompt(qwen())
    assert all(word in rendered for word in (THOUGHT, ARGUMENT, RESULT, "probe_lookup"))


class TestTemplateKwargs:
    """Controls, filtered and translated."""

    profile = probe_chat_encoder(qwen())
    thinking = probe_chat_encoder(qwen("thinking is defined and not thinking"))
    plain = probe_chat_encoder(JinjaChatEncoder({"default": "{{ messages[0].content }}"}, {}, "test"))

    def test_what_the_template_does_not_read_is_left_out(self) -> None:
        controls = {
            "thinking": False,
            "reasoning_effort": "low",
            "tool_choice": "none",
            "response_format": {"type": "json_object"},
            "chat_template_kwargs": {"surprise": 1, "messages": [], "tools": [], "add_generation_prompt": False},
        }
        assert self.plain.template_kwargs(**controls) == {}
        assert self.profile.template_kwargs(**controls) == {"enable_thinking": False, "reasoning_effort": "low"}

    def test_the_switch_is_set_to_its_own_values(self) -> None:
        assert self.profile.template_kwargs(thinking=True) == {"enable_thinking": True}
        assert self.profile.template_kwargs(thinking=None) == {}
        assert self.thinking.template_kwargs(thinking=False) == {"thinking": False}

    def test_foreign_names_mean_the_models_switch(self) -> None:
        given = {"enable_thinking": False}
        assert self.thinking.template_kwargs(chat_template_kwargs=given) == {"thinking": False}
        assert self.profile.template_kwargs(chat_template_kwargs={"thinking": False}) == given
        assert self.plain.template_kwargs(chat_template_kwargs=given) == {}

    def test_the_request_wins_over_the_servers_defaults(self) -> None:
        defaults = {"enable_thinking": False}
        assert self.profile.template_kwargs(defaults=defaults) == {"enable_thinking": False}
        assert self.profile.template_kwargs(defaults=defaults, thinking=True) == {"enable_thinking": True}
        own = {"enable_thinking": True}
        assert self.profile.template_kwargs(defaults=defaults, thinking=False, chat_template_kwargs=own) == own
        assert self.profile.template_kwargs(defaults=defaults, chat_template_kwargs={"thinking": True}) == own

    def test_effort_none_turns_thinking_off(self) -> None:
        assert self.profile.template_kwargs(reasoning_effort="none") == {"enable_thinking": False}
        assert self.profile.template_kwargs(reasoning_effort="none", thinking=True) == {"enable_thinking": True}

    @pytest.mark.parametrize(
        ("effort", "sent"),
        [("minimal", "low"), ("low", "low"), ("medium", "high"), ("high", "high"), ("max", "high")],
    )
    def test_the_nearest_effort_that_the_template_takes(self, effort: str, sent: str) -> None:
        assert self.profile.template_kwargs(reasoning_effort=effort) == {"reasoning_effort": sent}

    def test_controls_for_encoders_that_read_them(self) -> None:
        text = "{{ messages[0].content }}{{ tool_choice }}{{ response_format }}"
        profile = probe_chat_encoder(JinjaChatEncoder({"default": text}, {}, "test"))
        controls = {"tool_choice": "auto", "response_format": {"type": "text"}}
        assert profile.template_kwargs(**controls) == controls


def test_a_python_encoder(tmp_path: Path) -> None:
    """In the manner of DeepSeek's: no keyword but its own, thinking on by default, few effort levels."""
    source = """
def encode_messages(messages, thinking_mode, reasoning_effort=None):
    assert reasoning_effort in (None, "high", "max")
    text = "".join(f"<{m['role']}>{m.get('tools', '')}{m.get('content') or ''}" for m in messages)
    return text + ("<think>" if thinking_mode == "thinking" else "</think>")
"""
    (tmp_path / "encoding").mkdir()
    (tmp_path / "encoding" / "encoding_own.py").write_text(source)
    encoder = load_chat_encoder(tmp_path, trust_remote_code=True)
    assert encoder is not None
    profile = probe_chat_encoder(encoder)
    assert summary(profile) == (None, "think", True, ("thinking_mode", "chat"))
    assert (profile.effort_keyword, profile.efforts) == ("reasoning_effort", ("high", "max"))
    off = {"thinking_mode": "chat"}
    assert profile.template_kwargs(thinking=False) == off
    assert profile.template_kwargs(chat_template_kwargs={"enable_thinking": False, "tool_choice": "x"}) == off
    assert profile.template_kwargs(reasoning_effort="low") == {"reasoning_effort": "high"}
    assert encoder.render(USER, **profile.template_kwargs(thinking=False)) == "<user>Hi</think>"


def test_special_tokens_of_the_markup_stay_visible() -> None:
    backend = vocabularies.byte_level()
    backend.add_special_tokens(["<tool_call>", "</think>"])
    tokenizer = Tokenizer(backend)
    shown = probe_chat_encoder(qwen()).shown_special_ids(tokenizer)
    assert {tokenizer.id_to_token(token_id) for token_id in shown} == {"<tool_call>", "</think>"}


def test_a_pipeline_for_a_prompt() -> None:
    profile = probe_chat_encoder(qwen("enable_thinking is defined and not enable_thinking", "<think>"))
    tokenizer = Tokenizer(vocabularies.byte_level())
    encoder = qwen(opens="<think>")
    for thinking, expected in ((True, (4, 0)), (False, (0, 4))):
        prompt = encoder.render(USER, **profile.template_kwargs(thinking=thinking))
        pipeline = profile.new_pipeline(tokenizer, prompt, [])
        events = pipeline.feed(tokenizer.encode("hm, no")) + pipeline.finish()
        assert len(events) == 1
        assert (pipeline.num_reasoning_tokens > 0) is (expected[0] > 0)


SHARED = [
    ("GLM-4.5", "glm", "think", False, ("enable_thinking", False)),
    ("GLM-4.6", "glm", "think", False, ("enable_thinking", False)),
    ("GLM-4.7-Flash", "glm", "think", True, ("enable_thinking", False)),
    ("GLM-5.3-Flash", "glm", "think", True, None),
    ("Kimi-K2-Instruct", "kimi", "think", False, None),
    ("Kimi-K2-Thinking", "kimi", "think", False, None),
    ("moonshotai-Kimi-K2", "kimi", "think", False, None),
    ("Kimi-K3", "kimi_k3", "k3", True, ("thinking", False)),
    ("MiniMax-M1", None, None, False, None),
    ("MiniMax-M2", "minimax", "think", True, None),
    ("MiniMax-M3", "minimax", "mm_think", False, ("thinking_mode", "disabled")),
    ("Mistral-Small-3.2-24B-Instruct-2506", "mistral", None, False, None),
    ("mistralai-Ministral-3-14B-Reasoning-2512", "mistral", "bracket_think", False, None),
    ("mistralai-Mistral-Nemo-Instruct-2407", "mistral", None, False, None),
    ("unsloth-mistral-Devstral-Small-2507", "mistral", None, False, None),
    ("NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use", "hermes", None, False, None),
    ("NousResearch-Hermes-3-Llama-3.1-8B-tool_use", "hermes", None, False, None),
    ("Qwen-QwQ-32B", "hermes", "think", False, ("enable_thinking", False)),
    ("Qwen-Qwen2.5-7B-Instruct", "hermes", None, False, None),
    ("Qwen-Qwen3-0.6B", "hermes", "think", False, ("enable_thinking", False)),
    ("Qwen3-Coder", "qwen", None, False, None),
    ("Qwen3.5-4B", "qwen", "think", True, ("enable_thinking", False)),
    ("deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", "deepseek_v3", "think", False, ("enable_thinking", False)),
    ("deepseek-ai-DeepSeek-V3.1", "deepseek_v3", "think", False, ("thinking", False)),
    ("deepseek-ai-DeepSeek-V3.2", "dsml", "think", False, ("thinking", False)),
    ("deepseek-ai-DeepSeek-V4", "dsml", "think", False, ("thinking", False)),
    ("deepseek-ai-DeepSeek-V4-Flash-0731", "dsml", "think", False, ("thinking", False)),
    ("llama-cpp-deepseek-r1", "deepseek_v3", "think", True, None),
    ("meta-llama-Llama-3.1-8B-Instruct", "llama3_json", None, False, None),
    ("meta-llama-Llama-3.2-3B-Instruct", "llama3_json", None, False, None),
    ("meta-llama-Llama-3.3-70B-Instruct", "llama3_json", None, False, None),
    ("openai-gpt-oss-120b", "harmony", "harmony", False, None),
]


def shared_encoder(name: str) -> JinjaChatEncoder:
    encoder = load_chat_encoder(Path("absent"), shared_path("formats", "chat_templates", f"{name}.jinja"))
    assert isinstance(encoder, JinjaChatEncoder)
    return encoder


@pytest.mark.shared
@pytest.mark.parametrize(("name", "spec", "dialect", "inside", "switch"), SHARED, ids=[row[0] for row in SHARED])
def test_real_templates_resolve(name: str, spec: str | None, dialect: str | None, inside: bool, switch: Any) -> None:
    assert summary(probe_chat_encoder(shared_encoder(name))) == (spec, dialect, inside, switch)


@pytest.mark.shared
def test_no_real_template_is_left_out() -> None:
    files = {file.stem for file in shared_path("formats", "chat_templates").glob("*.jinja")}
    assert files == {row[0] for row in SHARED}


@pytest.mark.shared
@pytest.mark.parametrize("name", [row[0] for row in SHARED])
def test_real_templates_render_what_agents_send(name: str) -> None:
    """An agent's second turn: a call without content, its result, both kinds of system message."""
    encoder = shared_encoder(name)
    profile = probe_chat_encoder(encoder)
    tool = {"type": "function", "function": {"name": "search", "description": "d", "parameters": {"type": "object"}}}
    function = {"name": "search", "arguments": '{"query": "Zq1", "n": 2}'}
    call = {"id": "call_1a2b", "type": "function", "function": function}
    messages = [
        {"role": "developer", "content": [{"type": "text", "text": "Zq2"}, {"type": "text", "text": "Zq3"}]},
        {"role": "user", "content": "Zq4"},
        {"role": "assistant", "content": None, "reasoning_content": "Zq5", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1a2b", "content": "Zq6"},
    ]
    if name == "mistralai-Mistral-Nemo-Instruct-2407":  # it shows a system text only before a user's turn
        messages.append({"role": "assistant", "content": "."})
        messages.append({"role": "user", "content": "."})
    prompt = encoder.render(convert_messages(messages, profile.needs), [tool], **profile.template_kwargs(thinking=True))
    for word in ("Zq1", "Zq2Zq3", "Zq4", "Zq6"):
        assert word in prompt
    assert "None" not in prompt.replace(encoder.render(USER, [tool]), "")
    assert '{\\"query' not in prompt and "{'query" not in prompt
