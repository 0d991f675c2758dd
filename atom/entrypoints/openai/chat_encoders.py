"""Messages to a prompt: finding a model's chat template and rendering it.

Owns the `ChatEncoder` interface and its Jinja implementation. Whatever a template does with its input, the caller gets
a prompt or a ChatTemplateError. Knows no HTTP, and nothing of what the rendered text means.
"""

from __future__ import annotations

import copy
import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import jinja2
from jinja2 import meta

from atom.entrypoints.openai.jinja_environment import TemplateRaisedError, changes_data, chat_template_environment
from atom.tokenizer import read_tokenizer_config

logger = logging.getLogger(__name__)

Message = dict[str, Any]
ToolPayload = dict[str, Any]

SPECIAL_TOKENS = ("bos_token", "eos_token", "pad_token", "unk_token", "sep_token", "cls_token", "mask_token")


class ChatTemplateError(ValueError):
    """A prompt can not be rendered from this input; the message is fit for the client."""


class ChatEncoder(Protocol):
    """A model's own way to write a conversation.

    accepts: the keywords that `render` makes use of; others are ignored, never an error. source: the template's text.
    name: where it came from, for the log. takes_string_arguments: calls usually go in as the wire has them, as JSON
    text.
    """

    accepts: frozenset[str]
    source: str
    name: str
    takes_string_arguments: bool

    def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolPayload] | None = None,
        *,
        add_generation_prompt: bool = True,
        **template_kwargs: Any,
    ) -> str:
        """The prompt. Raises ChatTemplateError."""


class JinjaChatEncoder:
    """One Jinja template, or several named ones: `tool_use` where tools are given, else `default`."""

    takes_string_arguments = False

    def __init__(self, templates: Mapping[str, str], special_tokens: Mapping[str, str], name: str) -> None:
        """`templates`: by name, with at least one. Raises ChatTemplateError for one that does not compile."""
        self.name = name
        self.source = "\n".join(templates.values())
        self._needs_copies = changes_data(self.source)
        environment = chat_template_environment(mutable=self._needs_copies)
        self._special_tokens = {"bos_token": "", "eos_token": "", **special_tokens}
        self._templates: dict[str, jinja2.Template] = {}
        variables: set[str] = set()
        for key, text in templates.items():
            try:
                variables |= meta.find_undeclared_variables(environment.parse(text))
                self._templates[key] = environment.from_string(text)
            except jinja2.TemplateSyntaxError as error:
                raise ChatTemplateError(f"chat template {name}, line {error.lineno}: {error.message}") from error
        fixed = {"messages", "tools", "add_generation_prompt", *self._special_tokens, *environment.globals}
        self.accepts = frozenset(variables - fixed)
        self._no_tools = self._value_for_no_tools()

    def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolPayload] | None = None,
        *,
        add_generation_prompt: bool = True,
        **template_kwargs: Any,
    ) -> str:
        """See ChatEncoder."""
        controls = {key: value for key, value in template_kwargs.items() if key in self.accepts}
        if self._needs_copies:
            messages, tools, controls = copy.deepcopy((messages, tools, controls))
        try:
            return self._template(bool(tools)).render(
                messages=messages,
                tools=tools or self._no_tools,
                add_generation_prompt=add_generation_prompt,
                **self._special_tokens,
                **controls,
            )
        except TemplateRaisedError as error:
            raise ChatTemplateError(f"the model's chat template refuses these messages: {error.message}") from error
        except Exception as error:  # templates are programs: any operation in them can fail on any input
            raise ChatTemplateError(
                f"the model's chat template can not render these messages ({type(error).__name__}: {error})"
            ) from error

    def _value_for_no_tools(self) -> list[ToolPayload] | None:
        """None, as Hugging Face passes it; an empty list for a template that fails on None and not on that."""
        values: tuple[list[ToolPayload] | None, ...] = (None, [])
        for value in values:
            self._no_tools = value
            try:
                self.render([{"role": "user", "content": "?"}])
            except ChatTemplateError:
                continue
            return value
        return None

    def _template(self, has_tools: bool) -> jinja2.Template:
        if has_tools and "tool_use" in self._templates:
            return self._templates["tool_use"]
        return self._templates.get("default") or next(iter(self._templates.values()))


def load_chat_encoder(
    model_path: Path, chat_template: Path | str | None = None, trust_remote_code: bool = False
) -> ChatEncoder | None:
    """The encoder of a model folder; None when it has none, and then there is no chat, only completions.

    An explicit `chat_template` (a file, or the text of one) comes first, then the model's Python encoder, which needs
    `trust_remote_code`, then its templates. Raises ChatTemplateError.
    """
    from atom.entrypoints.openai.chat_encoder_adapters import find_encoder_file, load_python_encoder

    config = read_tokenizer_config(model_path)
    special_tokens = special_token_texts(config)
    if chat_template is not None:
        text, name = _explicit_template(chat_template)
        return JinjaChatEncoder({"default": text}, special_tokens, name)
    encoder_file = find_encoder_file(model_path)
    if encoder_file is not None and trust_remote_code:
        return load_python_encoder(encoder_file)
    found = _model_templates(model_path, config)
    if found is None:
        if encoder_file is not None:
            raise ChatTemplateError(
                f"this model writes its prompts with Python code of its own ({encoder_file}), which is run only with "
                "--trust-remote-code; or give a template with --chat-template"
            )
        return None
    if encoder_file is not None:
        logger.warning("%s is not used without --trust-remote-code; using %s", encoder_file.name, found[1])
    return JinjaChatEncoder(found[0], special_tokens, found[1])


def chat_template_source(encoder: ChatEncoder) -> str:
    """The text that the encoder renders by: a template's, or a Python encoder's."""
    return encoder.source


def special_token_texts(config: Mapping[str, Any]) -> dict[str, str]:
    """The special tokens of a tokenizer_config.json, as templates see them."""
    texts: dict[str, str] = {}
    for key in SPECIAL_TOKENS:
        value = config.get(key)
        value = value.get("content") if isinstance(value, Mapping) else value
        if isinstance(value, str):
            texts[key] = value
    return texts


def _explicit_template(chat_template: Path | str) -> tuple[str, str]:
    """Text and name of what --chat-template gave."""
    if isinstance(chat_template, str) and ("{{" in chat_template or "{%" in chat_template):
        return chat_template, "given as text"
    file = Path(chat_template)
    try:
        return file.read_text(encoding="utf-8"), str(file)
    except (OSError, ValueError) as error:
        raise ChatTemplateError(
            f"--chat-template: {str(chat_template)!r} is neither a readable file nor a Jinja template ({error})"
        ) from error


def _model_templates(folder: Path, config: Mapping[str, Any]) -> tuple[dict[str, str], str] | None:
    """Templates by name, and the file they are in."""
    file = folder / "chat_template.jinja"
    if file.is_file():
        templates = {"default": file.read_text(encoding="utf-8")}
        more = folder / "additional_chat_templates"
        templates.update({other.stem: other.read_text(encoding="utf-8") for other in sorted(more.glob("*.jinja"))})
        return templates, file.name
    file = folder / "chat_template.json"
    if file.is_file():
        try:
            value = json.loads(file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ChatTemplateError(f"{file} is not valid JSON: {error}") from error
        templates = _named_templates(value.get("chat_template", value) if isinstance(value, dict) else value, file.name)
        return templates, file.name
    if config.get("chat_template") is not None:
        name = "tokenizer_config.json"
        return _named_templates(config["chat_template"], name), name
    return None


def _named_templates(value: Any, name: str) -> dict[str, str]:
    """One template, a mapping of names to templates, or a list of {name, template}."""
    if isinstance(value, str):
        return {"default": value}
    if isinstance(value, list):
        value = {entry.get("name"): entry.get("template") for entry in value if isinstance(entry, Mapping)}
    if isinstance(value, Mapping) and value and all(isinstance(x, str) for pair in value.items() for x in pair):
        return dict(value)
    raise ChatTemplateError(f"{name}: `chat_template` must be a template, or a list of named ones")
