"""Python encoders that a model folder brings (`encoding/encoding_*.py`), behind the ChatEncoder interface.

Owns running that code, which is done only when the user trusts it, and fitting our keywords to its signature, which is
read once. Knows nothing of templates.
"""

from __future__ import annotations

import copy
import importlib.util
import inspect
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from atom.entrypoints.openai.chat_encoders import ChatTemplateError, Message, ToolPayload

logger = logging.getLogger(__name__)

ENTRY_POINT = "encode_messages"
# Values for parameters that an encoder asks for and that no request has to give.
REQUIRED_DEFAULTS: dict[str, Any] = {"thinking_mode": "thinking", "thinking": True, "enable_thinking": True}
_FIXED = ("messages", "tools", "add_generation_prompt", "context")


def find_encoder_file(folder: Path) -> Path | None:
    """The folder's encoder; None without one, and, with a warning, when several make it unclear which one is meant."""
    files = sorted((folder / "encoding").glob("encoding_*.py"))
    if len(files) > 1:
        logger.warning("%s holds several encoders (%s): none is used", folder, ", ".join(file.name for file in files))
    return files[0] if len(files) == 1 else None


def load_python_encoder(file: Path) -> PythonChatEncoder:
    """Run the file and wrap its `encode_messages`. Raises ChatTemplateError when that fails."""
    spec = importlib.util.spec_from_file_location(f"atom_model_encoding_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise ChatTemplateError(f"{file} can not be imported")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # a stranger's module can fail in any way
        raise ChatTemplateError(f"{file} can not be imported: {type(error).__name__}: {error}") from error
    function = getattr(module, ENTRY_POINT, None)
    if not callable(function):
        raise ChatTemplateError(f"{file} has no function {ENTRY_POINT}")
    return PythonChatEncoder(function, file.read_text(encoding="utf-8"), file.name)


class PythonChatEncoder:
    """An encoder function. Tools go to its `tools` parameter, or, without one, onto the leading system message."""

    takes_string_arguments = True

    def __init__(self, function: Callable[..., Any], source: str, name: str) -> None:
        self._function = function
        self.source = source
        self.name = name
        parameters = inspect.signature(function).parameters.values()
        by_name = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        self._takes_tools = "tools" in by_name
        self._takes_generation_prompt = "add_generation_prompt" in by_name
        self.accepts = frozenset(by_name[1:]) - set(_FIXED)
        self._required = {
            p.name: REQUIRED_DEFAULTS[p.name]
            for p in parameters
            if p.name in REQUIRED_DEFAULTS and p.name in self.accepts and p.default is p.empty
        }

    def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolPayload] | None = None,
        *,
        add_generation_prompt: bool = True,
        **template_kwargs: Any,
    ) -> str:
        """See ChatEncoder."""
        arguments = {key: value for key, value in template_kwargs.items() if key in self.accepts}
        arguments = {**self._required, **arguments}
        conversation = copy.deepcopy(list(messages))  # encoders edit what they are given
        if self._takes_tools:
            arguments["tools"] = copy.deepcopy(list(tools)) if tools else None
        elif tools:
            conversation = _with_tools(conversation, copy.deepcopy(list(tools)))
        if self._takes_generation_prompt:
            arguments["add_generation_prompt"] = add_generation_prompt
        try:
            prompt = self._function(conversation, **arguments)
        except Exception as error:  # it is a stranger's code, and the messages are a client's
            raise ChatTemplateError(
                f"the model's encoder can not render these messages ({type(error).__name__}: {error})"
            ) from error
        if not isinstance(prompt, str):
            raise ChatTemplateError(f"the model's encoder returned {type(prompt).__name__} where a prompt is expected")
        return prompt


def _with_tools(conversation: list[Message], tools: list[ToolPayload]) -> list[Message]:
    """The conversation with the tools on its leading system message, which is added when there is none."""
    if conversation and conversation[0].get("role") == "system":
        return [{**conversation[0], "tools": tools}, *conversation[1:]]
    return [{"role": "system", "content": "", "tools": tools}, *conversation]
