"""A /v1/responses request as a Conversation.

Owns what its items, tools and options mean for a prompt. Neighbouring items of the model's side (a thought, a message,
calls) are one turn, as they were when it said them. What the model can not read is refused by its place in the request.
Knows neither templates nor the shape of an answer.
"""

from __future__ import annotations

from typing import Any

from atom_spec import responses as spec

from atom.entrypoints.openai.conversation import Conversation, EnforcedCall, EnforcedJson, function_tool
from atom.entrypoints.openai.errors import bad_request, unsupported
from atom.entrypoints.openai.messages_conversion import check_arguments

Part = spec.InputText | spec.PastOutputText | spec.PastRefusal | spec.InputImage | spec.InputFile


def responses_conversation(request: spec.ResponsesRequest, any_arguments: bool = False) -> Conversation:
    """The conversation that the request asks to answer. any_arguments: as TemplateNeeds. Raises ApiError 400."""
    messages: list[dict[str, Any]] = []
    if request.instructions:
        messages.append({"role": "system", "content": request.instructions})
    if isinstance(request.input, str):
        messages.append({"role": "user", "content": request.input})
    else:
        for place, item in enumerate(request.input):
            _add(messages, item, f"input[{place}]", any_arguments)
    tools = function_tools(request)
    choice = request.tool_choice
    return Conversation(
        messages=messages,
        tools=[function_tool(tool.name, tool.description, tool.parameters, tool.strict) for tool in tools],
        tool_choice=choice if isinstance(choice, str) and tools else None,
        suppress_calls=choice == "none",
        parallel=request.parallel_tool_calls is not False,
        reasoning_effort=None if request.reasoning is None else request.reasoning.effort,
        enforced=_enforced(request),
    )


def function_tools(request: spec.ResponsesRequest) -> list[spec.FunctionTool]:
    """The tools that are in force. The others that get this far are those that Codex sends to every model."""
    return [tool for tool in request.tools or () if isinstance(tool, spec.FunctionTool)]


def _add(messages: list[dict[str, Any]], item: Any, at: str, any_arguments: bool) -> None:
    """One item's part of the conversation."""
    if isinstance(item, spec.ItemReference):
        raise unsupported(at, "this server keeps no items; send the item itself")
    if isinstance(item, spec.FunctionCallOutput):
        content = _text(item.output, f"{at}.output")
        messages.append({"role": "tool", "tool_call_id": item.call_id, "content": content})
    elif isinstance(item, spec.PastReasoning):
        thought = "".join(part.text for part in item.content or item.summary or ())
        if thought:
            turn = _assistant_turn(messages)
            turn["reasoning_content"] = turn.get("reasoning_content", "") + thought
    elif isinstance(item, spec.PastFunctionCall):
        problem = None if any_arguments else check_arguments(item.arguments or "{}")
        if problem is not None:
            raise bad_request(f"{at}.arguments {problem}", f"{at}.arguments")
        function = {"name": item.name, "arguments": item.arguments}
        call = {"id": item.call_id, "type": "function", "function": function}
        _assistant_turn(messages).setdefault("tool_calls", []).append(call)
    elif item.role == "assistant":
        _assistant_turn(messages)["content"] += _text(item.content, f"{at}.content")
    else:
        messages.append({"role": item.role, "content": _text(item.content, f"{at}.content")})


def _assistant_turn(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """The assistant's turn that the conversation ends with, begun if need be."""
    if not messages or messages[-1]["role"] != "assistant":
        messages.append({"role": "assistant", "content": ""})
    return messages[-1]


def _text(content: str | list[Part], at: str) -> str:
    if isinstance(content, str):
        return content
    return "".join(_part_text(part, f"{at}[{place}]") for place, part in enumerate(content))


def _part_text(part: Part, at: str) -> str:
    if isinstance(part, spec.InputImage):
        raise unsupported(at, "this model does not support images")
    if isinstance(part, spec.InputFile):
        raise unsupported(at, "files are not supported; send their text")
    return part.refusal if isinstance(part, spec.PastRefusal) else part.text


def _enforced(request: spec.ResponsesRequest) -> tuple[EnforcedCall | EnforcedJson, ...]:
    enforced: list[EnforcedCall | EnforcedJson] = []
    if isinstance(request.tool_choice, spec.FunctionChoice):
        enforced.append(EnforcedCall("tool_choice", request.tool_choice.name))
    elif request.tool_choice == "required":
        enforced.append(EnforcedCall("tool_choice"))
    output = None if request.text is None else request.text.format
    if isinstance(output, spec.JsonOfSchema):
        enforced.append(EnforcedJson("text.format", output.schema))
    elif isinstance(output, spec.AnyJson):
        enforced.append(EnforcedJson("text.format"))
    return tuple(enforced)
