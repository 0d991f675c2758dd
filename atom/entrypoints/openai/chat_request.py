"""A /v1/chat/completions request as a Conversation.

Owns what its fields mean for the prompt. Knows neither templates nor the shape of an answer.
"""

from __future__ import annotations

import msgspec
from atom_spec import openai as spec

from atom.entrypoints.openai.conversation import Conversation, EnforcedCall, EnforcedJson, function_tool
from atom.entrypoints.openai.errors import bad_request


def chat_conversation(request: spec.ChatCompletionRequest) -> Conversation:
    """The conversation that the request asks to answer. Raises ApiError 400."""
    choice = request.tool_choice
    tools = [tool.function for tool in request.tools or ()]
    return Conversation(
        messages=msgspec.to_builtins(request.messages or request.prompt),
        tools=[function_tool(tool.name, tool.description, tool.parameters, tool.strict) for tool in tools],
        tool_choice=choice if isinstance(choice, str) and tools else None,
        suppress_calls=choice == "none",
        parallel=request.parallel_tool_calls is not False,
        thinking=_thinking(request),
        reasoning_effort=request.reasoning_effort,
        chat_template_kwargs=request.chat_template_kwargs,
        enforced=_enforced(request),
        continues=_continues(request),
        response_format=None if request.response_format is None else msgspec.to_builtins(request.response_format),
    )


def _continues(request: spec.ChatCompletionRequest) -> bool:
    """Whether the answer goes on from the last message. Raises ApiError 400 where that is none to go on from."""
    if not request.continue_final_message:
        return False
    messages = request.messages or request.prompt or []
    last = messages[-1]
    if not isinstance(last, spec.AssistantMessage) or last.tool_calls or not _has_text(last.content):
        why = "the last turn must be the assistant's, with text and without calls"
        raise bad_request(f"continue_final_message: {why}", "continue_final_message")
    return True


def _has_text(content: str | list[spec.TextPart | spec.RefusalPart] | None) -> bool:
    if isinstance(content, list):
        return any(part.text if isinstance(part, spec.TextPart) else part.refusal for part in content)
    return bool(content)


def _thinking(request: spec.ChatCompletionRequest) -> bool | None:
    """What the request says of thinking; None when it leaves that to the model."""
    if request.thinking is None or request.thinking.type == "adaptive":
        return None
    return request.thinking.type == "enabled"


def _enforced(request: spec.ChatCompletionRequest) -> tuple[EnforcedCall | EnforcedJson, ...]:
    enforced: list[EnforcedCall | EnforcedJson] = []
    if isinstance(request.tool_choice, spec.NamedToolChoice):
        enforced.append(EnforcedCall("tool_choice", request.tool_choice.function.name))
    elif request.tool_choice == "required":
        enforced.append(EnforcedCall("tool_choice"))
    if isinstance(request.response_format, spec.JsonSchemaFormat):
        enforced.append(EnforcedJson("response_format", request.response_format.json_schema.schema))
    elif isinstance(request.response_format, spec.JsonObjectFormat):
        enforced.append(EnforcedJson("response_format"))
    return tuple(enforced)
