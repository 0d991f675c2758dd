"""Readers that say what a test tells them to."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from atom.entrypoints.openai.events import ContentDelta, Event, ToolCallArguments, ToolCallEnd, ToolCallStart


class Echo:
    """Gives every text back as content, after `change`; `last` is said at the end."""

    def __init__(self, change: Callable[[str], str] = str, last: Sequence[Event] = ()) -> None:
        self._change = change
        self._last = list(last)

    def feed(self, text: str) -> list[Event]:
        changed = self._change(text)
        return [ContentDelta(changed)] if changed else []

    def finish(self) -> list[Event]:
        return self._last


def call_events(index: int, name: str, arguments: str) -> list[Event]:
    """A whole call."""
    return [ToolCallStart(index, f"id{index}", name), ToolCallArguments(index, arguments), ToolCallEnd(index)]
