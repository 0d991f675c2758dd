"""One streamed answer while it grows: its thought, its text, its calls.

Owns how chunks add up, and what of an answer goes back into the conversation. Knows neither HTTP nor terminals.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

# How an answer ends by itself; otherwise its last call may have been cut off.
_ENDS = ("stop", "tool_calls")


@dataclass(slots=True)
class Call:
    """A tool call. `arguments`: text, whole once the answer is; JSON unless the model's format lets other text pass."""

    id: str = ""
    name: str = ""
    arguments: str = ""

    @property
    def is_json(self) -> bool:
        """Whether the arguments are JSON, and so not cut off."""
        try:
            json.loads(self.arguments)
        except (ValueError, RecursionError):
            return False
        return True

    def value(self) -> Any:
        """What the arguments say; their text where they are no JSON, an empty object where there are none."""
        return json.loads(self.arguments) if self.is_json else self.arguments or {}


@dataclass(slots=True)
class Answer:
    """What has come so far. `usage` and `finish` come at the end."""

    thought: str = ""
    text: str = ""
    calls: dict[int, Call] = field(default_factory=dict)
    finish: str | None = None
    usage: dict[str, Any] | None = None

    def apply(self, chunk: dict[str, Any]) -> None:
        """Take one chunk in; of several choices the first."""
        self.usage = chunk.get("usage") or self.usage
        for choice in chunk.get("choices") or ():
            if choice.get("index"):
                continue
            delta = choice.get("delta") or {}
            self.thought += delta.get("reasoning_content") or delta.get("reasoning") or ""
            self.text += delta.get("content") or ""
            for piece in delta.get("tool_calls") or ():
                self._grow_call(piece)
            self.finish = choice.get("finish_reason") or self.finish

    def _grow_call(self, piece: dict[str, Any]) -> None:
        index = piece.get("index")
        call = self.calls.setdefault(len(self.calls) if index is None else index, Call())
        function = piece.get("function") or {}
        call.id = call.id or piece.get("id") or ""
        call.name = call.name or function.get("name") or ""
        call.arguments += function.get("arguments") or ""

    def whole_calls(self) -> list[Call]:
        """The calls that were not cut off, in order."""
        return [call for _, call in sorted(self.calls.items()) if self.finish in _ENDS or call.is_json]

    def message(self) -> dict[str, Any] | None:
        """The answer as a message of the conversation, without calls that were cut off; None when nothing is left."""
        calls = self.whole_calls()
        if not self.text and not calls:
            return None
        message: dict[str, Any] = {"role": "assistant", "content": self.text or None}
        if self.thought:
            message["reasoning_content"] = self.thought
        if calls:
            message["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in calls
            ]
        return message
