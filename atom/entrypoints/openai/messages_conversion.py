"""Request messages (OpenAI's shape) to the messages that a template is written for.

Owns the differences between what clients send and what templates read: content parts, null content, roles that a
template lacks, arguments as text or as a mapping, missing ids, reasoning under its several names. Nothing is dropped
silently: what can not be carried over raises MessageError. Knows no template; `TemplateNeeds` says what one reads.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Message = dict[str, Any]

_SHORT_ID = re.compile(r"[0-9A-Za-z]{9}")
_FUNCTIONS_ID = re.compile(r"functions\..+:\d+", re.DOTALL)
_ALPHANUMERIC = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_TEXT_PARTS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}
_REASONING_NAMES = ("reasoning_content", "reasoning", "thinking")


class MessageError(ValueError):
    """A message that can not be rendered; `param` is the path of the field, such as messages[2].content[0]."""

    def __init__(self, message: str, param: str) -> None:
        super().__init__(message)
        self.param = param


@dataclass(frozen=True, slots=True)
class TemplateNeeds:
    """What a template reads. The defaults suit a template that takes OpenAI's messages with arguments as a mapping.

    content_parts: content as a list of parts, not as a string. string_arguments: arguments as JSON text. call_content:
    what stands for the missing content of a turn that only calls tools. has_developer, has_system: roles it renders.
    late_system: system messages are rendered anywhere, several ones included; else they are merged at the front.
    call_ids: any; or short, nine alphanumeric characters; or functions, `functions.NAME:INDEX` counted over the
    conversation. apart: reasoning and content of a calling turn go into two messages. any_arguments: the format lets a
    model write arguments that are no JSON object, so they come back in a conversation.
    """

    content_parts: bool = False
    string_arguments: bool = False
    call_content: Literal["empty", "null", "absent"] = "empty"
    has_developer: bool = False
    has_system: bool = True
    late_system: bool = True
    call_ids: Literal["any", "short", "functions"] = "any"
    apart: bool = False
    any_arguments: bool = False


def convert_messages(messages: Sequence[Mapping[str, Any]], needs: TemplateNeeds | None = None) -> list[Message]:
    """The conversation as the template reads it. Raises MessageError."""
    needs = needs or TemplateNeeds()
    converted: list[Message] = []
    ids = _CallIds(needs.call_ids)
    for place, message in enumerate(messages):
        converted += _convert(message, f"messages[{place}]", needs, ids)
    if not needs.late_system or not needs.has_system:
        converted = _merge_system(converted)
    if not needs.has_system:
        converted = _system_into_user(converted)
    if needs.content_parts:
        for message in converted:
            if isinstance(message.get("content"), str):
                message["content"] = [{"type": "text", "text": message["content"]}]
    return converted


def _convert(message: Mapping[str, Any], at: str, needs: TemplateNeeds, ids: _CallIds) -> list[Message]:
    """A message as the one or two that a template reads."""
    role = message.get("role")
    if role == "developer" and not needs.has_developer:
        role = "system"
    result: Message = {"role": role, "content": content_text(message.get("content"), f"{at}.content")}
    if message.get("name") is not None:
        result["name"] = message["name"]
    if role == "tool":
        call_id = message.get("tool_call_id")
        result["tool_call_id"], name = ids.answered(call_id)
        if name is not None:
            result.setdefault("name", name)
    if role == "assistant":
        _add_reasoning(result, message)
        calls = message.get("tool_calls") or []
        if calls:
            result["tool_calls"] = [
                _call(call, f"{at}.tool_calls[{place}]", needs, ids) for place, call in enumerate(calls)
            ]
            return _calling_turn(result, needs)
    return [result]


def content_text(content: Any, at: str) -> str:
    """Content as one string: text parts joined with nothing between, null as empty. Raises MessageError."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        raise MessageError(f"{at} must be a string or a list of parts", at)
    texts: list[str] = []
    for place, part in enumerate(content):
        if isinstance(part, str):
            texts.append(part)
            continue
        kind = part.get("type") if isinstance(part, Mapping) else None
        text = part.get(_TEXT_PARTS[kind]) if kind in _TEXT_PARTS else None
        if not isinstance(text, str):
            raise MessageError(_refusal(kind, f"{at}[{place}]"), f"{at}[{place}]")
        texts.append(text)
    return "".join(texts)


def _refusal(kind: Any, at: str) -> str:
    if kind in _TEXT_PARTS:
        return f"{at}.{_TEXT_PARTS[kind]} must be a string"
    if isinstance(kind, str) and "image" in kind:
        return f"{at}: this model does not support images"
    return f"{at}: content parts of type {kind!r} are not supported; this model reads text"


def _add_reasoning(result: Message, message: Mapping[str, Any]) -> None:
    """Reasoning of an earlier turn, under every name that templates know."""
    reasoning = next((message[name] for name in _REASONING_NAMES if isinstance(message.get(name), str)), None)
    if reasoning:
        result["reasoning_content"] = result["reasoning"] = result["thinking"] = reasoning


def _calling_turn(result: Message, needs: TemplateNeeds) -> list[Message]:
    if needs.apart and result["content"] and "thinking" in result:
        spoken = {"role": "assistant", "content": result["content"]}
        return [spoken, {**result, "content": ""}]
    if not result["content"]:
        if needs.call_content == "absent":
            del result["content"]
        elif needs.call_content == "null":
            result["content"] = None
    return [result]


def _call(call: Mapping[str, Any], at: str, needs: TemplateNeeds, ids: _CallIds) -> Message:
    function = call.get("function")
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise MessageError(f"{at}.function.name must be a string", f"{at}.function")
    name = function["name"]
    arguments = _arguments(function.get("arguments"), f"{at}.function.arguments", needs.any_arguments)
    if not needs.string_arguments:
        _check_values(arguments[0], f"{at}.function.arguments")
    shape = {"name": name, "arguments": _as_text(*arguments) if needs.string_arguments else arguments[0]}
    return {"id": ids.called(call.get("id"), name), "type": "function", "function": shape}


def _arguments(value: Any, at: str, takes_any: bool) -> tuple[dict[str, Any], str | None]:
    """Arguments as a mapping, with the text they were sent as. Raises MessageError for what is no JSON object.

    takes_any: such text becomes the mapping's only value, `raw`, as /v1/messages shows it.
    """
    if value is None or value == "":
        return {}, None
    if isinstance(value, Mapping):
        return dict(value), None
    problem = check_arguments(value)
    if problem is None:
        parsed: dict[str, Any] | None = json.loads(value)
        return (parsed, value) if parsed is not None else ({}, None)
    if takes_any and isinstance(value, str):
        return {"raw": value}, value
    raise MessageError(f"{at} {problem}", at)


def check_arguments(text: Any) -> str | None:
    """What is wrong with a call's arguments as text, which should be the JSON of an object, or null; None: nothing."""
    try:
        parsed = json.loads(text, parse_constant=_refuse) if isinstance(text, str) else text
    except (ValueError, RecursionError) as error:
        return f"is not valid JSON: {error}"
    return None if parsed is None or (isinstance(parsed, dict) and isinstance(text, str)) else "must be a JSON object"


def _refuse(constant: str) -> Any:
    raise ValueError(f"JSON has no {constant}")


def _check_values(arguments: dict[str, Any], at: str) -> None:
    """Raise MessageError for values that no prompt can hold: JSON as text can escape them, a template does not."""
    try:
        json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        raise MessageError(f"{at} holds half a surrogate pair", at) from None
    except (ValueError, RecursionError) as error:
        raise MessageError(f"{at} can not be written as JSON: {error}", at) from None


def _as_text(arguments: dict[str, Any], sent: str | None) -> str:
    return sent if sent is not None else json.dumps(arguments, ensure_ascii=False)


class _CallIds:
    """The ids of a conversation's calls as the template sees them. Missing ones are made up, in order."""

    def __init__(self, style: str) -> None:
        self._style = style
        self._names: dict[str, str] = {}
        self._shown: dict[str, str] = {}
        self._unanswered: list[str] = []
        self._num_calls = 0

    def called(self, call_id: Any, name: str) -> str:
        """The id that the template sees for a call."""
        if not isinstance(call_id, str) or not call_id:
            call_id = f"call_{self._num_calls}"
        shown = self._restyled(call_id, name)
        self._num_calls += 1
        self._names[call_id] = name
        self._shown[call_id] = shown
        self._unanswered.append(call_id)
        return shown

    def answered(self, call_id: Any) -> tuple[str, str | None]:
        """Id and tool name of a result; a result without an id answers the oldest call that has none yet."""
        if not isinstance(call_id, str) or not call_id:
            call_id = self._unanswered[0] if self._unanswered else "call_0"
        if call_id in self._unanswered:
            self._unanswered.remove(call_id)
        shown = self._shown.get(call_id) or self._restyled(call_id, "unknown")
        return shown, self._names.get(call_id)

    def _restyled(self, call_id: str, name: str) -> str:
        if self._style == "functions" and not _FUNCTIONS_ID.fullmatch(call_id):
            return f"functions.{name}:{self._num_calls}"
        if self._style == "short" and not _SHORT_ID.fullmatch(call_id):
            digest = hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).digest()
            return "".join(_ALPHANUMERIC[byte % len(_ALPHANUMERIC)] for byte in digest[:9])
        return call_id


def _merge_system(messages: list[Message]) -> list[Message]:
    """All system messages as one at the front, in their order, an empty line between."""
    system = [message for message in messages if message["role"] == "system"]
    if not system:
        return messages
    merged = {"role": "system", "content": "\n\n".join(message["content"] for message in system if message["content"])}
    return [merged, *(message for message in messages if message["role"] != "system")]


def _system_into_user(messages: list[Message]) -> list[Message]:
    """For a template without a system role: its text leads the first user message."""
    if not messages or messages[0]["role"] != "system":
        return messages
    system, rest = messages[0]["content"], messages[1:]
    for place, message in enumerate(rest):
        if message["role"] == "user":
            text = "\n\n".join(text for text in (system, message["content"]) if text)
            return [*rest[:place], {**message, "content": text}, *rest[place + 1 :]]
    return [{"role": "user", "content": system}, *rest]
