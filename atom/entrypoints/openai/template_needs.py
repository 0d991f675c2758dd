"""What messages a model's template reads, found out by rendering.

Owns the probes: each renders a conversation with a word that occurs nowhere else and looks whether it arrived. Run
once, at startup. Knows nothing of formats or of reasoning dialects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from atom.entrypoints.openai.chat_encoders import ChatEncoder, ChatTemplateError, Message
from atom.entrypoints.openai.messages_conversion import TemplateNeeds, convert_messages

PROBE_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "probe_lookup",
        "description": "Look a word up.",
        "parameters": {
            "type": "object",
            "properties": {"word": {"type": "string", "description": "The word."}},
            "required": ["word"],
        },
    },
}
USER, SYSTEM, LATER, RESULT, THOUGHT, SPOKEN = "Zwlusr", "Zwlsys", "Zwllat", "Zwlres", "Zwltho", "Zwlspo"
ARGUMENT = "Zwlarg"
_USER = {"role": "user", "content": USER}
_CALL_IDS: tuple[Literal["any", "short", "functions"], ...] = ("any", "short", "functions")
_CALL_CONTENTS: tuple[Literal["empty", "null", "absent"], ...] = ("empty", "null", "absent")


def probe_call(call_id: str = "call_probe0", **more: Any) -> list[Message]:
    """An assistant's turn that calls the probe tool, and the tool's result; `more` goes into the turn."""
    function = {"name": "probe_lookup", "arguments": {"word": ARGUMENT}}
    turn = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }
    return [{**turn, **more}, {"role": "tool", "tool_call_id": call_id, "content": RESULT}]


def try_render(
    encoder: ChatEncoder,
    messages: Sequence[Message],
    needs: TemplateNeeds,
    *,
    with_tools: bool = False,
    controls: Mapping[str, Any] | None = None,
) -> str | None:
    """The prompt of request messages; None when the encoder refuses them."""
    tools = [PROBE_TOOL] if with_tools else None
    try:
        return encoder.render(convert_messages(messages, needs), tools, **(controls or {}))
    except ChatTemplateError:
        return None


def probe_needs(encoder: ChatEncoder) -> TemplateNeeds:
    """The shape of messages that makes everything in them arrive in the prompt."""
    needs = TemplateNeeds()
    if not _arrives(encoder, [_USER], needs, USER):
        parts = replace(needs, content_parts=True)
        needs = parts if _arrives(encoder, [_USER], parts, USER) else needs
    needs = _probe_system(encoder, needs)
    # Templates that write any role's name as it comes know no developer, and neither do their models.
    if '"developer"' in encoder.source or "'developer'" in encoder.source:
        developer = {"role": "developer", "content": SYSTEM}
        knows = replace(needs, has_developer=True)
        needs = knows if _arrives(encoder, [developer, _USER], knows, SYSTEM, USER) else needs
    return _probe_calls(encoder, needs)


def _probe_system(encoder: ChatEncoder, needs: TemplateNeeds) -> TemplateNeeds:
    system = {"role": "system", "content": SYSTEM}
    if not _arrives(encoder, [system, _USER], needs, SYSTEM, USER):
        return replace(needs, has_system=False)
    later = {"role": "system", "content": LATER}
    two = _arrives(encoder, [system, later, _USER], needs, SYSTEM, LATER)
    middle = _arrives(encoder, [_USER, later, {"role": "user", "content": SYSTEM}], needs, LATER)
    return replace(needs, late_system=two and middle)


def _probe_calls(encoder: ChatEncoder, needs: TemplateNeeds) -> TemplateNeeds:
    """The first combination, the most usual one first, under which a call and its result arrive as they are."""
    usual = encoder.takes_string_arguments
    combinations = (
        replace(needs, call_ids=call_ids, string_arguments=string_arguments, call_content=call_content)
        for call_ids in _CALL_IDS
        for string_arguments in (usual, not usual)
        for call_content in _CALL_CONTENTS
    )
    found = next((candidate for candidate in combinations if _call_arrives(encoder, candidate)), None)
    if found is None:
        return needs
    both = [_USER, *probe_call(content=SPOKEN, reasoning_content=THOUGHT)]
    apart = replace(found, apart=True)
    if try_render(encoder, both, found, with_tools=True) is None and try_render(encoder, both, apart, with_tools=True):
        return apart
    return found


def _call_arrives(encoder: ChatEncoder, needs: TemplateNeeds) -> bool:
    text = try_render(encoder, [_USER, *probe_call()], needs, with_tools=True)
    plain = try_render(encoder, [_USER], needs, with_tools=True)
    if text is None or ARGUMENT not in text or RESULT not in text:
        return False
    broken = (f"'{ARGUMENT}'", f'\\"{ARGUMENT}')  # a mapping printed as Python, JSON text encoded a second time
    return not any(sign in text for sign in broken) and text.count("None") == (plain or "").count("None")


def _arrives(encoder: ChatEncoder, messages: Sequence[Message], needs: TemplateNeeds, *words: str) -> bool:
    """Whether all words are in the prompt; a template that always wants tools is given one."""
    text = try_render(encoder, messages, needs)
    if text is None:
        text = try_render(encoder, messages, needs, with_tools=True)
    return text is not None and all(word in text for word in words)
