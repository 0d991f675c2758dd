"""Events to JSON: an answer folded into one message, or written out as chunks.

Owns both shapes side by side, so that they stay equal. Knows neither the engine nor HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from atom.entrypoints.openai.events import ContentDelta, Event, ReasoningDelta, ToolCallArguments, ToolCallStart
from atom.entrypoints.openai.frames import ChunkFrames
from atom.entrypoints.openai.generation import Step
from atom.entrypoints.openai.logprobs import TokenEntry

Logprobs = Callable[[Sequence[TokenEntry]], dict[str, Any] | None]


class FoldedAnswer:
    """One choice's events, added up. `entries`: the log probabilities of its content."""

    def __init__(self) -> None:
        self.entries: list[TokenEntry] = []
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._calls: dict[int, dict[str, Any]] = {}

    def add(self, step: Step) -> None:
        """Take one step's events."""
        self.entries += step.entries
        for event in step.events:
            if isinstance(event, ContentDelta):
                self._content.append(event.text)
            elif isinstance(event, ReasoningDelta):
                self._reasoning.append(event.text)
            elif isinstance(event, ToolCallStart):
                function = {"name": event.name, "arguments": ""}
                self._calls[event.index] = {"id": event.id, "type": "function", "function": function}
            elif isinstance(event, ToolCallArguments):
                self._calls[event.index]["function"]["arguments"] += event.text

    def message(self) -> dict[str, Any]:
        """The assistant's message. Content is null only where there is nothing but calls."""
        content = "".join(self._content)
        message: dict[str, Any] = {"role": "assistant", "content": content or (None if self._calls else "")}
        if self._reasoning:
            message["reasoning_content"] = message["reasoning"] = "".join(self._reasoning)
        if self._calls:
            message["tool_calls"] = [self._calls[index] for index in sorted(self._calls)]
        return message


def step_frames(frames: ChunkFrames, index: int, step: Step, logprobs: Logprobs) -> bytes:
    """The frames of one step of choice `index`. Log probabilities ride with its first content, else its last frame."""
    parts: list[bytes] = []
    entries = step.entries
    for event in step.events:
        delta = _delta(event)
        if delta is None:
            continue
        if entries and isinstance(event, ContentDelta):
            parts.append(frames.chat(index, delta, None, logprobs(entries)))
            entries = []
        else:
            parts.append(frames.chat(index, delta))
    if step.finish_reason is not None:
        parts.append(frames.chat(index, {}, step.finish_reason, logprobs(entries) if entries else None))
    elif entries:
        parts.append(frames.chat(index, {"content": ""}, None, logprobs(entries)))
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _delta(event: Event) -> dict[str, Any] | None:
    """The `delta` of a chunk; None for an event that has none."""
    if isinstance(event, ContentDelta):
        return {"content": event.text}
    if isinstance(event, ReasoningDelta):
        return {"reasoning_content": event.text, "reasoning": event.text}
    if isinstance(event, ToolCallStart):
        function = {"name": event.name, "arguments": ""}
        return {"tool_calls": [{"index": event.index, "id": event.id, "type": "function", "function": function}]}
    if isinstance(event, ToolCallArguments):
        return {"tool_calls": [{"index": event.index, "function": {"arguments": event.text}}]}
    return None
