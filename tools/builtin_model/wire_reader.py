"""Reads a finished answer back, strictly: anything but the exact form of its format is invalid markup.

Owns: the check behind the "valid markup" and "exact" scores. No server code: the server's readers are tolerant.
Does not know: dialogues or how answers are generated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tools.builtin_model.vocabulary import ADDED_TOKENS
from tools.builtin_model.wire import DSML, FORMATS, Call

Properties = Mapping[str, Mapping[str, Any]]
"""Tool name -> its parameters' schemas."""


@dataclass(slots=True)
class Reading:
    """What an answer says. `is_valid`: its markup is exactly the format's; `has_ended`: the model closed its turn."""

    thought: str | None = None
    content: str = ""
    calls: list[Call] = field(default_factory=list)
    is_valid: bool = True
    has_ended: bool = False


class _InvalidMarkupError(ValueError):
    pass


def read_answer(format_name: str, text: str, properties: Properties, num_earlier_calls: int = 0) -> Reading:
    """Reads the text that follows a generation prompt. Never raises: bad markup gives `is_valid=False`."""
    reading = Reading()
    end = "<|end_of_msg|>" if FORMATS[format_name].is_xtml else "<|im_end|>"
    if text.endswith(end):
        reading.has_ended = True
        text = text[: -len(end)]
    try:
        if FORMATS[format_name].is_xtml:
            _read_xtml(reading, text)
        else:
            _read_chatml(reading, text, format_name, properties, num_earlier_calls)
    except (ValueError, KeyError, TypeError):
        reading.is_valid = False
    return reading


def _read_chatml(reading: Reading, text: str, format_name: str, properties: Properties, num_earlier: int) -> None:
    if "</think>" in text:
        thought, _, text = text.partition("</think>")
        reading.thought = thought.removeprefix("<think>")
    opener, parse = _PARSERS[format_name]
    start = text.find(opener)
    reading.content = text if start < 0 else text[:start]
    if any(marker in reading.content for marker, _ in ADDED_TOKENS):
        raise _InvalidMarkupError(reading.content)
    if start >= 0:
        reading.calls = parse(text[start:], properties, num_earlier)


def _sequence(pattern: str, text: str) -> list[re.Match[str]]:
    """Matches that cover the whole text without a gap."""
    matches, position = [], 0
    for match in re.finditer(pattern, text, re.DOTALL):
        if match.start() != position:
            raise _InvalidMarkupError(text)
        matches.append(match)
        position = match.end()
    if position != len(text):
        raise _InvalidMarkupError(text)
    return matches


def _typed(raw: str, name: str, key: str, properties: Properties) -> Any:
    """A raw value as its declared type says; undeclared ones stay text."""
    schema = properties.get(name, {}).get(key)
    if schema is None or schema.get("type") == "string" or "enum" in schema:
        return raw
    options = schema.get("anyOf")
    if options and any(option.get("type") == "string" for option in options):
        return raw
    return json.loads(raw)


def _fullmatch(pattern: str, text: str) -> re.Match[str]:
    match = re.fullmatch(pattern, text, re.DOTALL)
    if match is None:
        raise _InvalidMarkupError(text)
    return match


def _qwen(text: str, properties: Properties, _earlier: int) -> list[Call]:
    calls = []
    for match in _sequence(r"<tool_call>\n<function=([^>\n]+)>\n(.*?)</function>\n</tool_call>", text):
        fields = _sequence(r"<parameter=([^>\n]+)>\n(.*?)\n</parameter>\n", match[2])
        calls.append(Call(match[1], {f[1]: _typed(f[2], match[1], f[1], properties) for f in fields}))
    return calls


def _hermes(text: str, _properties: Properties, _earlier: int) -> list[Call]:
    calls = []
    for match in _sequence(r"<tool_call>\n(\{.*?\})\n</tool_call>", text):
        value = json.loads(match[1])
        if list(value) != ["name", "arguments"]:
            raise _InvalidMarkupError(text)
        calls.append(Call(value["name"], dict(value["arguments"])))
    return calls


def _glm(text: str, properties: Properties, _earlier: int) -> list[Call]:
    calls = []
    for match in _sequence(r"<tool_call>([^\n<]+)\n(.*?)</tool_call>", text):
        fields = _sequence(r"<arg_key>(.*?)</arg_key>\n<arg_value>(.*?)</arg_value>\n", match[2])
        calls.append(Call(match[1], {f[1]: _typed(f[2], match[1], f[1], properties) for f in fields}))
    return calls


def _kimi(text: str, _properties: Properties, earlier: int) -> list[Call]:
    body = _fullmatch(r"<\|tool_calls_section_begin\|>(.*)<\|tool_calls_section_end\|>", text)[1]
    pattern = r"<\|tool_call_begin\|>functions\.([^:]+):(\d+)<\|tool_call_argument_begin\|>(.*?)<\|tool_call_end\|>"
    calls = []
    for index, match in enumerate(_sequence(pattern, body), earlier):
        if int(match[2]) != index:
            raise _InvalidMarkupError(text)
        calls.append(Call(match[1], dict(json.loads(match[3]))))
    return calls


def _minimax(text: str, properties: Properties, _earlier: int) -> list[Call]:
    body = _fullmatch(r"<minimax:tool_call>\n(.*)</minimax:tool_call>", text)[1]
    calls = []
    for match in _sequence(r'<invoke name="([^"]+)">\n(.*?)</invoke>\n', body):
        fields = _sequence(r'<parameter name="([^"]+)">(.*?)</parameter>\n', match[2])
        calls.append(Call(match[1], {f[1]: _typed(f[2], match[1], f[1], properties) for f in fields}))
    return calls


def _dsml(text: str, _properties: Properties, _earlier: int) -> list[Call]:
    body = _fullmatch(rf"<{DSML}tool_calls>\n(.*)</{DSML}tool_calls>", text)[1]
    calls = []
    for match in _sequence(rf'<{DSML}invoke name="([^"]+)">\n(.*?)</{DSML}invoke>\n', body):
        inner = "" if match[2] == "\n" else match[2]
        fields = _sequence(rf'<{DSML}parameter name="([^"]+)" string="(true|false)">(.*?)</{DSML}parameter>\n', inner)
        calls.append(Call(match[1], {f[1]: f[3] if f[2] == "true" else json.loads(f[3]) for f in fields}))
    return calls


_Parser = Callable[[str, Properties, int], list[Call]]
_PARSERS: dict[str, tuple[str, _Parser]] = {
    "qwen": ("<tool_call>", _qwen),
    "hermes": ("<tool_call>", _hermes),
    "glm": ("<tool_call>", _glm),
    "kimi": ("<|tool_calls_section_begin|>", _kimi),
    "minimax": ("<minimax:tool_call>", _minimax),
    "dsml": (f"<{DSML}tool_calls>", _dsml),
}
_XTML = (
    r"(?:(?P<thought>.*?)<\|close\|>think<\|sep\|><\|open\|>response<\|sep\|>)?(?P<content>.*?)<\|close\|>response<\|sep\|>"
    r"(?:<\|open\|>tools<\|sep\|>(?P<calls>.*?)<\|close\|>tools<\|sep\|>)?<\|close\|>message<\|sep\|>"
)


def _read_xtml(reading: Reading, text: str) -> None:
    match = _fullmatch(_XTML, text)
    reading.thought, reading.content = match["thought"], match["content"]
    pattern = r'<\|open\|>call tool="([^"]*)" index="(\d+)"<\|sep\|>(.*?)<\|close\|>call<\|sep\|>'
    for index, call in enumerate(_sequence(pattern, match["calls"] or ""), 1):
        if int(call[2]) != index:
            raise _InvalidMarkupError(text)
        argument = r'<\|open\|>argument key="([^"]*)" type="([a-z]+)"<\|sep\|>(.*?)<\|close\|>argument<\|sep\|>'
        fields = _sequence(argument, call[3])
        reading.calls.append(Call(call[1], {f[1]: f[3] if f[2] == "string" else json.loads(f[3]) for f in fields}))
