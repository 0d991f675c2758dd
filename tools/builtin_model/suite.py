"""The hand-written suite of unseen tools, data/unseen_suite.txt, as dialogues.

Owns: reading the suite. Its tools and sentences take no part in training. Does not know: scores.
"""

from __future__ import annotations

import functools
import json
import random
import re
from dataclasses import dataclass
from typing import Any

from tools.builtin_model.exchanges import Dialogue
from tools.builtin_model.words import DATA


@dataclass(frozen=True, slots=True)
class SuiteTool:
    """One tool of the suite with its requests and the arguments that are right."""

    declaration: dict[str, Any]
    requests: tuple[tuple[str, dict[str, Any]], ...]

    @property
    def name(self) -> str:
        """The tool's name."""
        return str(self.declaration["function"]["name"])


@functools.cache
def load_suite() -> tuple[SuiteTool, ...]:
    """All tools of the suite."""
    text = "\n".join(
        line
        for line in (DATA / "unseen_suite.txt").read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
    )
    return tuple(_parse(block.splitlines()) for block in re.split(r"\n\s*\n", text.strip()))


def _parse(lines: list[str]) -> SuiteTool:
    name, _, description = lines[0].partition(" :: ")
    properties: dict[str, Any] = {}
    requests = []
    for line in lines[1:]:
        if line.startswith("> "):
            request, _, arguments = line[2:].rpartition(" => ")
            requests.append((request, json.loads(arguments)))
        else:
            key, _, rest = line.partition(": ")
            properties[key] = _schema(rest)
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return SuiteTool(
        {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}},
        tuple(requests),
    )


def _schema(text: str) -> dict[str, Any]:
    if text.startswith("{"):
        fields = dict(item.split(": ") for item in text.strip("{}").split(", "))
        return {
            "type": "object",
            "properties": {key: {"type": kind} for key, kind in fields.items()},
            "required": list(fields),
        }
    kind, _, description = text.partition(", ")
    schema: dict[str, Any]
    if kind.startswith("array of "):
        schema = {"type": "array", "items": {"type": kind.removeprefix("array of ")}}
    elif "|" in kind:
        schema = {"type": "string", "enum": kind.split("|")}
    else:
        schema = {"type": kind}
    return schema | ({"description": description} if description else {})


def suite_dialogues(format_name: str, thinking: bool, num_tools: int, seed: int = 5) -> list[Dialogue]:
    """Every request, its tool among `num_tools` declared ones (the others drawn from the suite with the seed)."""
    rng = random.Random(seed)
    tools = load_suite()
    dialogues = []
    for tool in tools:
        others = [other for other in tools if other is not tool]
        for request, arguments in tool.requests:
            declared = [tool.declaration, *(other.declaration for other in rng.sample(others, num_tools - 1))]
            rng.shuffle(declared)
            dialogue = Dialogue(
                format_name, thinking, f"unseen, {num_tools} tool{'s' if num_tools > 1 else ''}", declared
            )
            dialogue.say("user", request)
            call = {"type": "function", "function": {"name": tool.name, "arguments": arguments}}
            dialogue.messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
            dialogues.append(dialogue)
    return dialogues
