"""Prompts that end inside the assistant's turn: in every template that ships, and in those of real models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from atom.builtin_model import resolve
from atom.entrypoints.openai.chat_encoders import ChatTemplateError, JinjaChatEncoder
from atom.entrypoints.openai.chat_profile import probe_chat_encoder
from atom.entrypoints.openai.continuation import MARK, render_continued
from atom.entrypoints.openai.messages_conversion import TemplateNeeds, convert_messages
from atom.entrypoints.openai.reasoning_dialects import begins_inside
from atom.entrypoints.openai.tool_parser.stream import Tool
from atom.tokenizer import Tokenizer
from tests.entrypoints.live import TEMPLATE
from tests.shared_data import shared_path
from tests.text.vocabularies import byte_fallback

OWN = sorted((Path(resolve("atom-tiny").path).parent / "chat_templates").glob("*.jinja"))
USER: dict[str, Any] = {"role": "user", "content": "Q?"}
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {"name": "look", "description": "d", "parameters": {"type": "object", "properties": {}}},
}


def encoder(template: str) -> JinjaChatEncoder:
    return JinjaChatEncoder({"default": template}, {"bos_token": "<s>", "eos_token": "</s>"}, "test")


def check_continued(template: str) -> None:
    """The prompt is the beginning of the whole turn as the template writes it, and stops behind the text."""
    chat = encoder(template)
    profile = probe_chat_encoder(chat)
    for tools in (None, [TOOL]) if profile.format else (None,):
        for text in ("The answer is", 'A "quoted" {thing}: ', "{", "Größe <b>"):
            last = {"role": "assistant", "content": text}
            prompt = render_continued(chat, profile.needs, [USER, last], tools, {})
            assert prompt.endswith(text) and MARK not in prompt
            assert not begins_inside(profile.dialect, prompt)
            whole = chat.render(
                convert_messages([USER, {**last, "content": text + "."}], profile.needs),
                tools,
                add_generation_prompt=False,
            )
            assert whole.startswith(prompt + "."), whole[-200:]


@pytest.mark.parametrize("file", OWN, ids=lambda file: file.stem)
def test_templates_that_ship(file: Path) -> None:
    check_continued(file.read_text(encoding="utf-8"))


def test_the_template_of_the_other_tests() -> None:
    check_continued(TEMPLATE)


@pytest.mark.shared
def test_templates_of_real_models() -> None:
    files = sorted(shared_path("formats/chat_templates").glob("*.jinja"))
    assert files
    for file in files:
        check_continued(file.read_text(encoding="utf-8"))


def test_content_in_parts_is_continued_too() -> None:
    chat = encoder("{% for m in messages %}[{{ m.role }}]{% for p in m.content %}{{ p.text }}{% endfor %};{% endfor %}")
    parts = [{"type": "text", "text": "A "}, {"type": "text", "text": "b"}]
    needs = TemplateNeeds(content_parts=True)
    prompt = render_continued(chat, needs, [USER, {"role": "assistant", "content": parts}], None, {})
    assert prompt == "[user]Q?;[assistant]A b"


def test_a_template_that_leaves_the_last_text_out() -> None:
    chat = encoder("{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}")
    with pytest.raises(ChatTemplateError, match="can not be continued"):
        render_continued(chat, TemplateNeeds(), [USER, {"role": "assistant", "content": "A"}], None, {})


def test_a_word_that_is_continued_with_keeps_its_space() -> None:
    """Sentencepiece vocabularies drop the space at the start of a text; here the text has begun before."""
    tokenizer = Tokenizer(byte_fallback())
    profile = probe_chat_encoder(encoder(TEMPLATE))
    ids = [tokenizer.token_to_id("▁ab")]
    texts = []
    for continues in (False, True):
        pipeline = profile.new_pipeline(tokenizer, "x", [Tool("look", {})], continues_text=continues)
        texts.append("".join(event.text for event in pipeline.feed(ids) + pipeline.finish()))  # type: ignore[union-attr]  # only events with text here
    assert texts == ["ab", " ab"]
