"""A request to answer a conversation, of whichever API it came by.

Owns the form that every API's request is brought into before a prompt is made of it. Knows no API and no template.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class EnforcedCall:
    """The answer must call a tool: the one of that `name`, or any. `param`: the request's field that says so."""

    param: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class EnforcedJson:
    """The answer must be JSON: of that `schema`, or any object. `param`: the request's field that says so."""

    param: str
    schema: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """What is said so far, and how it is to be answered.

    messages, tools: dicts in OpenAI's shape, as `convert_messages` and templates take them. tool_choice: OpenAI's word,
    for templates that read it. suppress_calls: no call may come of it, and the tools are not shown. parallel: several
    calls may come of it. thinking: None leaves it to the model. enforced: what only a grammar can promise.
    response_format: OpenAI's object, for templates that read it. continues: the last message is the assistant's, of
    text only, and the answer goes on from there.
    """

    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    tool_choice: str | None = None
    suppress_calls: bool = False
    parallel: bool = True
    thinking: bool | None = None
    reasoning_effort: str | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    enforced: tuple[EnforcedCall | EnforcedJson, ...] = ()
    response_format: dict[str, Any] | None = None
    continues: bool = False

    @property
    def num_calls(self) -> int:
        """Calls of tools so far."""
        return sum(len(message.get("tool_calls") or ()) for message in self.messages)


def function_tool(
    name: str, description: str | None, parameters: dict[str, Any] | None, strict: bool | None
) -> dict[str, Any]:
    """A tool as templates know it; members that were not given are absent."""
    function = {"name": name, "description": description, "parameters": parameters, "strict": strict}
    return {"type": "function", "function": {key: value for key, value in function.items() if value is not None}}
