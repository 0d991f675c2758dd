"""A chat request as a prompt, and as the pipeline that its answers go through.

Owns what the request's tools, tool_choice and template controls mean, up to the token ids. Nothing is ever cut from a
prompt. Knows neither the engine nor the shape of an answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from atom_spec import openai as spec

from atom.entrypoints.openai.chat_encoders import ChatTemplateError
from atom.entrypoints.openai.errors import bad_request, unsupported
from atom.entrypoints.openai.messages_conversion import MessageError, convert_messages
from atom.entrypoints.openai.pipeline import AnswerPipeline
from atom.entrypoints.openai.tool_parser.stream import Tool
from atom.sampling_params import SamplingParams
from atom.text.detokenizer import Detokenizer

if TYPE_CHECKING:
    from atom.entrypoints.openai.serving import ChatModel, ServingContext

_NOT_ENFORCED = "enforced output is not part of this version of the server"


@dataclass(frozen=True, slots=True)
class ChatPrompt:
    """The rendered prompt as text and ids, and what is needed to read the answers to it."""

    text: str
    token_ids: list[int]
    tools: tuple[Tool, ...]
    chat: ChatModel
    suppress_calls: bool
    parallel: bool
    num_earlier_calls: int

    def new_pipeline(self, serving: ServingContext, sampling: SamplingParams) -> AnswerPipeline:
        """The pipeline of one answer."""
        return self.chat.profile.new_pipeline(
            serving.tokenizer,
            self.text,
            self.tools,
            stop_strings=sampling.stop_list,
            include_stop=sampling.include_stop_str_in_output,
            suppress_calls=self.suppress_calls,
            parallel=self.parallel,
            num_earlier_calls=self.num_earlier_calls,
            skip_special_tokens=sampling.skip_special_tokens,
        )

    def new_detokenizer(self, serving: ServingContext, sampling: SamplingParams) -> Detokenizer:
        """A detokenizer like the one of the pipeline."""
        shown = self.chat.profile.shown_special_ids(serving.tokenizer)
        return Detokenizer(serving.tokenizer, sampling.skip_special_tokens, shown_special_ids=shown)


async def build_prompt(serving: ServingContext, request: spec.ChatCompletionRequest, num_bytes: int) -> ChatPrompt:
    """The prompt of a request whose body had `num_bytes`. Raises ApiError 400 for what can not be rendered or done."""
    _refuse_enforced(request)
    chat = serving.chat_model()
    return await serving.in_background(num_bytes, _build, serving, chat, request)


def _build(serving: ServingContext, chat: ChatModel, request: spec.ChatCompletionRequest) -> ChatPrompt:
    messages = msgspec.to_builtins(request.messages or request.prompt)
    tools = request.tools or []
    is_none = request.tool_choice == "none"
    controls = chat.profile.template_kwargs(
        thinking=_thinking(request),
        reasoning_effort=request.reasoning_effort,
        tool_choice=request.tool_choice if tools else None,
        chat_template_kwargs=request.chat_template_kwargs,
        defaults=serving.chat_template_kwargs,
    )
    # A model that sees tools uses them: where no call may come of it, it does not see them.
    shown = None if is_none else [_payload(tool) for tool in tools]
    try:
        converted = convert_messages(messages, chat.profile.needs)
        text = chat.encoder.render(converted, shown or None, **controls)
    except MessageError as error:
        raise bad_request(str(error), error.param) from None
    except ChatTemplateError as error:
        raise bad_request(str(error), "messages") from None
    return ChatPrompt(
        text=text,
        token_ids=serving.tokenizer.encode(text, add_special_tokens=False),
        tools=tuple(Tool(tool.function.name, tool.function.parameters or {}) for tool in tools),
        chat=chat,
        suppress_calls=is_none,
        parallel=request.parallel_tool_calls is not False,
        num_earlier_calls=sum(len(message.get("tool_calls") or ()) for message in messages),
    )


def _thinking(request: spec.ChatCompletionRequest) -> bool | None:
    """What the request says of thinking; None when it leaves that to the model."""
    if request.thinking is None or request.thinking.type == "adaptive":
        return None
    return request.thinking.type == "enabled"


def _refuse_enforced(request: spec.ChatCompletionRequest) -> None:
    """Raise ApiError 400 for what only a grammar can promise, and for a choice of a tool that does not exist."""
    choice = request.tool_choice
    if isinstance(choice, spec.NamedToolChoice):
        declared = [tool.function.name for tool in request.tools or ()]
        if choice.function.name not in declared:
            listed = ", ".join(declared) or "none"
            raise bad_request(f"tool_choice names {choice.function.name!r}; declared tools: {listed}", "tool_choice")
        raise unsupported("tool_choice", f"a named tool can not be promised: {_NOT_ENFORCED}; use 'auto'")
    if choice == "required":
        raise unsupported("tool_choice", f"'required' can not be promised: {_NOT_ENFORCED}; use 'auto'")
    if isinstance(request.response_format, spec.JsonObjectFormat | spec.JsonSchemaFormat):
        kind = "json_object" if isinstance(request.response_format, spec.JsonObjectFormat) else "json_schema"
        raise unsupported("response_format", f"{kind} can not be promised: {_NOT_ENFORCED}; use 'text'")


def _payload(tool: spec.Tool) -> dict[str, Any]:
    """A tool as templates know it; members that were not given are absent."""
    function = {
        "name": tool.function.name,
        "description": tool.function.description,
        "parameters": tool.function.parameters,
        "strict": tool.function.strict,
    }
    return {"type": "function", "function": {key: value for key, value in function.items() if value is not None}}
