"""A /v1/messages request as a Conversation.

Owns what Anthropic's turns, blocks and controls mean for a prompt. Results of tools come before the text of their turn,
in their order, each a message of its own; texts are joined with nothing between. What the model can not read is refused
by its place in the request. Knows neither templates nor the shape of an answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from atom_spec import anthropic as spec

from atom.entrypoints.openai.conversation import Conversation, EnforcedCall, EnforcedJson, function_tool
from atom.entrypoints.openai.errors import bad_request, unsupported

Request = spec.MessagesRequest | spec.CountTokensRequest
Block = spec.TextBlock | spec.ImageBlock | spec.DocumentBlock

# What Claude Code addresses to Anthropic's billing, in a block of its own before the system prompt. It has checksums:
# prompts would differ from their first words on, and no prefix could be reused (docs/decisions/0060).
_BILLING = re.compile(r"x-anthropic-billing-header:[^\n]*\n?")
_ERROR = "Error: "
# OpenAI's words for the choices that can be met without a grammar.
_CHOICES: dict[type, str] = {spec.AutoToolChoice: "auto", spec.NoToolChoice: "none"}


def anthropic_conversation(request: Request) -> Conversation:
    """The conversation that the request asks to answer. Raises ApiError 400."""
    messages = _system(request.system)
    for place, turn in enumerate(request.messages):
        at = f"messages[{place}].content"
        if isinstance(turn, spec.UserTurn):
            messages += _user(turn, at)
        elif isinstance(turn, spec.AssistantTurn):
            messages.append(_assistant(turn))
        else:
            messages.append({"role": "system", "content": _joined(turn.content, at)})
    continues = isinstance(request.messages[-1], spec.AssistantTurn) and _begins_answer(request, messages)
    tools, choice, output = request.tools or [], request.tool_choice, request.output_config
    return Conversation(
        messages=messages,
        tools=[function_tool(tool.name, tool.description, tool.input_schema, tool.strict) for tool in tools],
        tool_choice=_CHOICES.get(type(choice)) if tools else None,
        suppress_calls=isinstance(choice, spec.NoToolChoice),
        parallel=choice is None or choice.disable_parallel_tool_use is not True,
        thinking=_thinking(request.thinking),
        reasoning_effort=None if output is None else output.effort,
        enforced=_enforced(request),
        continues=continues,
    )


def _system(system: str | list[Block] | None) -> list[dict[str, Any]]:
    if isinstance(system, list):
        texts = [_text(block, f"system[{place}]") for place, block in enumerate(system)]
        system = "".join(text for text in texts if not _BILLING.fullmatch(text))
    return [{"role": "system", "content": system}] if system else []


def _user(turn: spec.UserTurn, at: str) -> list[dict[str, Any]]:
    """The results in a turn, then its text. A turn of results only has no text."""
    if isinstance(turn.content, str):
        return [{"role": "user", "content": turn.content}]
    results: list[dict[str, Any]] = []
    texts: list[str] = []
    for place, block in enumerate(turn.content):
        if isinstance(block, spec.ToolResultBlock):
            content = _joined(block.content or "", f"{at}[{place}].content")
            content = _ERROR + content if block.is_error else content
            results.append({"role": "tool", "tool_call_id": block.tool_use_id, "content": content})
        else:
            texts.append(_text(block, f"{at}[{place}]"))
    if texts or not results:
        results.append({"role": "user", "content": "".join(texts)})
    return results


def _assistant(turn: spec.AssistantTurn) -> dict[str, Any]:
    if isinstance(turn.content, str):
        return {"role": "assistant", "content": turn.content}
    message: dict[str, Any] = {
        "role": "assistant",
        "content": "".join(block.text for block in turn.content if isinstance(block, spec.TextBlock)),
    }
    thought = "".join(block.thinking for block in turn.content if isinstance(block, spec.PastThinkingBlock))
    if thought:
        message["reasoning_content"] = thought
    calls = [block for block in turn.content if isinstance(block, spec.ToolUseBlock)]
    if calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.input}}
            for call in calls
        ]
    return message


def _begins_answer(request: Request, messages: list[dict[str, Any]]) -> bool:
    """Whether the answer goes on from the last turn, which is the assistant's; one without text is taken away."""
    at, last = f"messages[{len(request.messages) - 1}]", messages[-1]
    if last.get("tool_calls"):
        raise bad_request(f"{at}: the last turn calls tools; their results must follow in the user's turn", "messages")
    if _thinking(request.thinking) and "reasoning_content" not in last:
        raise bad_request(f"thinking: the last turn ({at}) begins the answer, and has not thought before", "thinking")
    if last["content"]:
        return True
    if len(request.messages) == 1:
        raise bad_request(f"{at}: the last turn is the only one, and has no text", "messages")
    del messages[-1]
    return False


def _joined(content: str | Sequence[Block], at: str) -> str:
    if isinstance(content, str):
        return content
    return "".join(_text(block, f"{at}[{place}]") for place, block in enumerate(content))


def _text(block: Block, at: str) -> str:
    if isinstance(block, spec.ImageBlock):
        raise unsupported(at, "this model does not support images")
    if isinstance(block, spec.DocumentBlock):
        raise unsupported(at, "documents are not supported; send their text")
    return block.text


def _thinking(config: spec.ThinkingConfig | None) -> bool | None:
    """What the request says of thinking; None when it leaves that to the model."""
    if config is None or config.type == "adaptive":
        return None
    return config.type == "enabled"


def _enforced(request: Request) -> tuple[EnforcedCall | EnforcedJson, ...]:
    enforced: list[EnforcedCall | EnforcedJson] = []
    if isinstance(request.tool_choice, spec.OneToolChoice):
        enforced.append(EnforcedCall("tool_choice", request.tool_choice.name))
    elif isinstance(request.tool_choice, spec.AnyToolChoice):
        enforced.append(EnforcedCall("tool_choice"))
    if request.output_config is not None and request.output_config.format is not None:
        enforced.append(EnforcedJson("output_config.format", request.output_config.format.schema))
    return tuple(enforced)
