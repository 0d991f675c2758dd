"""Turns a dialogue (OpenAI messages and tools) into the text that the model reads and writes.

Owns: turn framing, which must be byte for byte what the shipped Jinja templates render (a test compares them).
Does not know: what dialogues are about, tokens, or Jinja.
Every assistant turn is text to learn: earlier turns look exactly like answers given with thinking off.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tools.builtin_model.schema import tool_text
from tools.builtin_model.wire import FORMATS, Call, WireFormat, close_tag, open_tag

Message = dict[str, Any]
Segment = tuple[str, bool]
"""(text, is_trained): trained text is what the model must write itself."""


def render(
    messages: Sequence[Message],
    tools: Sequence[dict[str, Any]],
    format_name: str,
    *,
    is_prompt: bool = False,
    thinking: bool = False,
) -> list[Segment]:
    """Segments of the whole dialogue; with `is_prompt` the generation prompt is appended.

    `thinking` says only how that prompt ends. A turn behind the last user message shows its `reasoning_content`.
    """
    spec = FORMATS[format_name]
    last_user = max((i for i, message in enumerate(messages) if message["role"] == "user"), default=-1)
    segments: list[Segment] = []
    pending = _system_turn(messages[0], tools, spec)
    num_calls = 0
    for index, message in enumerate(messages):
        role = message["role"]
        if role in ("system", "developer"):
            pending += _turn(spec, "system", message["content"]) if index else ""
        elif role == "assistant":
            reasoning = message.get("reasoning_content") if index > last_user else None
            calls = message_calls(message)
            opening, answer, after = _answer(spec, reasoning, message.get("content") or "", calls, num_calls)
            segments += [(pending + _assistant_header(spec) + opening, False), (answer, True)]
            pending = after
            num_calls += len(calls)
        else:
            pending += _turn(spec, role, message["content"])
    if is_prompt:
        pending += _assistant_header(spec) + prompt_ending(spec, thinking)
    return [*segments, (pending, False)] if pending else segments


def render_text(
    messages: Sequence[Message],
    tools: Sequence[dict[str, Any]],
    format_name: str,
    *,
    is_prompt: bool = False,
    thinking: bool = False,
) -> str:
    """`render`, joined."""
    return "".join(text for text, _ in render(messages, tools, format_name, is_prompt=is_prompt, thinking=thinking))


def message_calls(message: Message) -> list[Call]:
    """The calls of an assistant message in OpenAI form."""
    return [
        Call(entry["function"]["name"], entry["function"]["arguments"]) for entry in message.get("tool_calls") or []
    ]


def prompt_ending(spec: WireFormat, thinking: bool) -> str:
    """What follows the assistant header in a generation prompt."""
    if spec.is_xtml:
        return open_tag("think") if thinking else open_tag("response")
    if thinking:
        return "<think>" if spec.opens_thought else ""
    return spec.no_thought


def _answer(
    spec: WireFormat, reasoning: str | None, content: str, calls: list[Call], num_earlier: int
) -> tuple[str, str, str]:
    """(untrained opening, trained answer, untrained rest) of one assistant turn."""
    opening = prompt_ending(spec, bool(reasoning))
    written_calls = spec.write_calls(calls, num_earlier) if calls else ""
    if spec.is_xtml:
        thought = reasoning + close_tag("think") + open_tag("response") if reasoning else ""
        return (
            opening,
            f"{thought}{content}{close_tag('response')}{written_calls}{close_tag('message')}<|end_of_msg|>",
            "",
        )
    thought = f"{'' if spec.opens_thought else '<think>'}{reasoning}</think>" if reasoning else ""
    return opening, f"{thought}{content}{written_calls}<|im_end|>", "\n"


def _system_turn(first: Message, tools: Sequence[dict[str, Any]], spec: WireFormat) -> str:
    head = (first.get("content") or "") if first["role"] in ("system", "developer") else ""
    if not head and not tools:
        return ""
    if tools:
        head += ("\n\n" if head else "") + "# Tools" + "".join(map(tool_text, tools)) + "\n# Call\n" + spec.example
    return _turn(spec, "system", head)


def _turn(spec: WireFormat, role: str, content: str | None) -> str:
    if spec.is_xtml:
        return open_tag("message", role=role) + (content or "") + close_tag("message") + "<|end_of_msg|>"
    return f"<|im_start|>{role}\n{content or ''}<|im_end|>\n"


def _assistant_header(spec: WireFormat) -> str:
    return open_tag("message", role="assistant") if spec.is_xtml else "<|im_start|>assistant\n"
