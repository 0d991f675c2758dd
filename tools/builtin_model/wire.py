"""The seven tool-call wire formats that atom-tiny writes, as plain text.

Owns: the markers, the example shown in the system turn, the text of calls, and how a thought is framed.
Does not know: turns and prompts (render.py), Jinja (templates.py), or how an answer is read back (wire_reader.py).
No format puts whitespace between a thought and the answer, or between two wrappers: whitespace there would be content.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

DSML = "\uff5cDSML\uff5c"

Arguments = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call: the tool's name and its arguments as JSON values, in the order of the tool's schema."""

    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class WireFormat:
    """One format. `opens_thought`: with thinking on, the prompt itself ends with the thought's opener.

    `no_thought` is what the prompt (and history) writes where there is no thought. `write_calls(calls, first_index)`
    gives the text of one message's calls; `first_index` counts the conversation's earlier calls. `is_xtml`: K3 channels
    frame the turns.
    """

    name: str
    example: str
    write_calls: Callable[[Sequence[Call], int], str]
    opens_thought: bool
    no_thought: str = "<think></think>"
    is_xtml: bool = False


def to_json(value: Any) -> str:
    """JSON as Jinja's `tojson` filter gives it in a chat template: spaces after separators, no ASCII escapes."""
    return json.dumps(value, ensure_ascii=False)


def raw_or_json(value: Any) -> str:
    """A string as it is, everything else as JSON."""
    return value if isinstance(value, str) else to_json(value)


def open_tag(tag: str, **attributes: Any) -> str:
    """A K3 channel's opener; attribute values are escaped, `&` before the quote."""
    escaped = (
        f' {key}="{str(value).replace("&", "&amp;").replace(chr(34), "&quot;")}"' for key, value in attributes.items()
    )
    return f"<|open|>{tag}{''.join(escaped)}<|sep|>"


def close_tag(tag: str) -> str:
    """A K3 channel's closer."""
    return f"<|close|>{tag}<|sep|>"


def xtml_type(value: Any) -> str:
    """The type name that K3 writes beside an argument."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def _qwen(calls: Sequence[Call], _first: int) -> str:
    return "".join(
        f"<tool_call>\n<function={call.name}>\n"
        + "".join(f"<parameter={key}>\n{raw_or_json(value)}\n</parameter>\n" for key, value in call.arguments.items())
        + "</function>\n</tool_call>"
        for call in calls
    )


def _hermes(calls: Sequence[Call], _first: int) -> str:
    return "".join(
        f'<tool_call>\n{{"name": {to_json(call.name)}, "arguments": {to_json(call.arguments)}}}\n</tool_call>'
        for call in calls
    )


def _glm(calls: Sequence[Call], _first: int) -> str:
    return "".join(
        f"<tool_call>{call.name}\n"
        + "".join(
            f"<arg_key>{key}</arg_key>\n<arg_value>{raw_or_json(value)}</arg_value>\n"
            for key, value in call.arguments.items()
        )
        + "</tool_call>"
        for call in calls
    )


def _kimi(calls: Sequence[Call], first: int) -> str:
    entries = "".join(
        f"<|tool_call_begin|>functions.{call.name}:{index}<|tool_call_argument_begin|>{to_json(call.arguments)}<|tool_call_end|>"
        for index, call in enumerate(calls, first)
    )
    return f"<|tool_calls_section_begin|>{entries}<|tool_calls_section_end|>"


def _kimi_k3(calls: Sequence[Call], _first: int) -> str:
    entries = "".join(
        open_tag("call", tool=call.name, index=index)
        + "".join(
            open_tag("argument", key=key, type=xtml_type(value)) + raw_or_json(value) + close_tag("argument")
            for key, value in call.arguments.items()
        )
        + close_tag("call")
        for index, call in enumerate(calls, 1)
    )
    return open_tag("tools") + entries + close_tag("tools")


def _minimax(calls: Sequence[Call], _first: int) -> str:
    entries = "".join(
        f'<invoke name="{call.name}">\n'
        + "".join(
            f'<parameter name="{key}">{raw_or_json(value)}</parameter>\n' for key, value in call.arguments.items()
        )
        + "</invoke>\n"
        for call in calls
    )
    return f"<minimax:tool_call>\n{entries}</minimax:tool_call>"


def _dsml_argument(key: str, value: Any) -> str:
    is_string = "true" if isinstance(value, str) else "false"
    return f'<{DSML}parameter name="{key}" string="{is_string}">{raw_or_json(value)}</{DSML}parameter>\n'


def _dsml(calls: Sequence[Call], _first: int) -> str:
    entries = "".join(
        f'<{DSML}invoke name="{call.name}">\n'
        + ("".join(_dsml_argument(key, value) for key, value in call.arguments.items()) or "\n")
        + f"</{DSML}invoke>\n"
        for call in calls
    )
    return f"<{DSML}tool_calls>\n{entries}</{DSML}tool_calls>"


_EXAMPLE = [Call("name", {"key": "value"})]

FORMATS: dict[str, WireFormat] = {
    spec.name: spec
    for spec in (
        WireFormat("qwen", _qwen(_EXAMPLE, 0), _qwen, opens_thought=True),
        WireFormat(
            "hermes",
            '<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>',
            _hermes,
            opens_thought=False,
        ),
        WireFormat("glm", _glm(_EXAMPLE, 0), _glm, opens_thought=False),
        WireFormat("kimi", _kimi(_EXAMPLE, 0), _kimi, opens_thought=False),
        WireFormat(
            "kimi_k3",
            _kimi_k3(_EXAMPLE, 0),
            _kimi_k3,
            opens_thought=True,
            no_thought="",
            is_xtml=True,
        ),
        WireFormat("minimax", _minimax(_EXAMPLE, 0), _minimax, opens_thought=True),
        WireFormat("dsml", _dsml(_EXAMPLE, 0), _dsml, opens_thought=True, no_thought="</think>"),
    )
}
FORMAT_NAMES: tuple[str, ...] = tuple(FORMATS)
