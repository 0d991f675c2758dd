"""How a scripted model chats: each script may have a format, a dialect and a template of its own.

Owns the cache of what was found out about each combination. The rest of the server sees an ordinary ChatModel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from atom.entrypoints.openai.chat_encoders import ChatEncoder, Message, ToolPayload, load_chat_encoder
from atom.entrypoints.openai.chat_profile import ChatProfile, probe_chat_encoder
from atom.entrypoints.openai.reasoning_dialects import get_dialect
from atom.entrypoints.openai.serving import ChatModel
from atom.entrypoints.openai.tool_parser.registry import get_format
from atom.entrypoints.scripted.script import Script


class ScriptedChat:
    """Chat models by script. `folder`: where template files of scripts are looked for."""

    def __init__(self, default: ChatModel, model_path: Path, folder: Path) -> None:
        self._default = default
        self._model_path = model_path
        self._folder = folder
        self._by_template: dict[str, ChatModel] = {}

    def of(self, script: Script) -> ChatModel:
        """The chat model of a script. Raises ValueError for names or templates that do not exist."""
        chat = self._base(script.chat_template)
        profile = chat.profile
        if script.format is not msgspec.UNSET:
            profile = replace(profile, format=None if script.format is None else get_format(script.format))
        if script.dialect is not msgspec.UNSET:
            profile = replace(profile, dialect=None if script.dialect is None else get_dialect(script.dialect))
        encoder = _OpenedEncoder(chat.encoder, profile) if script.starts_in_reasoning else chat.encoder
        return ChatModel(encoder, profile)

    def _base(self, template: str | None) -> ChatModel:
        if template is None:
            return self._default
        if template not in self._by_template:
            text = template if "{" in template else (self._folder / template)
            encoder = load_chat_encoder(self._model_path, text)
            assert encoder is not None  # an explicit template always gives one
            self._by_template[template] = ChatModel(encoder, probe_chat_encoder(encoder))
        return self._by_template[template]


class _OpenedEncoder:
    """An encoder whose prompts end by opening the reasoning channel."""

    def __init__(self, encoder: ChatEncoder, profile: ChatProfile) -> None:
        if profile.dialect is None:
            raise ValueError("starts_in_reasoning needs a reasoning dialect")
        self._encoder = encoder
        self._opener = profile.dialect.start
        self.accepts = encoder.accepts
        self.source = encoder.source
        self.name = encoder.name
        self.takes_string_arguments = encoder.takes_string_arguments

    def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolPayload] | None = None,
        *,
        add_generation_prompt: bool = True,
        **template_kwargs: Any,
    ) -> str:
        """See ChatEncoder."""
        prompt = self._encoder.render(messages, tools, add_generation_prompt=add_generation_prompt, **template_kwargs)
        return prompt if prompt.rstrip().endswith(self._opener) else prompt + self._opener
