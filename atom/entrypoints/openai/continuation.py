"""Prompts that end inside the assistant's turn, so that the answer goes on where the request's last message stops.

Owns how any template is made to write such a turn: the last message is rendered with a mark behind its text, and the
prompt ends where the mark stands. So the turn begins as the template begins one (role, channel, an empty thought), and
nothing of what would end it is there. Knows no API.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from atom.entrypoints.openai.chat_encoders import ChatEncoder, ChatTemplateError, ToolPayload
from atom.entrypoints.openai.messages_conversion import TemplateNeeds, content_text, convert_messages

MARK = "atom:continues:here"  # letters and colons, which no template strips, escapes or splits at


def render_continued(
    encoder: ChatEncoder,
    needs: TemplateNeeds,
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[ToolPayload] | None,
    controls: Mapping[str, Any],
) -> str:
    """The prompt of a conversation whose last message, the assistant's and without calls, is to be continued.

    `messages`: in OpenAI's shape. Raises MessageError, and ChatTemplateError where the template leaves the text out.
    """
    last = dict(messages[-1])
    begun = content_text(last.get("content"), f"messages[{len(messages) - 1}].content")
    marked = convert_messages([*messages[:-1], {**last, "content": begun + MARK}], needs)
    text = encoder.render(marked, tools or None, add_generation_prompt=False, **controls)
    before, mark, _ = text.rpartition(MARK)
    if not mark:
        raise ChatTemplateError(
            "the model's chat template does not write the last turn's text: it can not be continued"
        )
    return before
