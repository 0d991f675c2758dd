"""Looking for a declared call inside an open reasoning channel.

Owns one question: where does the first call start that names a declared tool? A reader of the model's format is run
over the thoughts, and only what it lets go is thought for sure. Knows nothing of reasoning markers.
"""

from __future__ import annotations

from typing import Protocol

from atom.entrypoints.openai.events import ContentDelta, Event, ToolCallStart


class Reader(Protocol):
    """What reads an answer's text for calls: a ToolCallReader, or a stand-in for models without a format."""

    @property
    def num_undeclared(self) -> int:
        """Complete calls that named no declared tool."""

    @property
    def is_in_region(self) -> bool:
        """Whether the text so far ends inside a call that is not complete."""

    def feed(self, text: str) -> list[Event]:
        """Events that this text settles."""

    def finish(self) -> list[Event]:
        """Events that the end of the text settles."""


class CallWatch:
    """The watch over one open channel. `reader` must let text go verbatim and in order up to its first call."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._parts: list[str] = []

    @property
    def pending(self) -> str:
        """Text that may yet belong to a call."""
        return "".join(self._parts)

    def feed(self, text: str) -> tuple[str, str | None]:
        """Text that belongs to no call, and, once there is a declared one, the text from its opener on."""
        self._parts.append(text)
        return self._take(self._reader.feed(text))

    def finish(self) -> tuple[str, str | None]:
        """The same at the end of the text; nothing is pending then."""
        return self._take(self._reader.finish())

    def _take(self, events: list[Event]) -> tuple[str, str | None]:
        if not events:
            return "", None
        size, has_call = 0, False
        for event in events:
            if isinstance(event, ToolCallStart):
                has_call = True
                break
            size += len(event.text) if isinstance(event, ContentDelta) else 0
        pending = self.pending
        self._parts = [pending[size:]]
        return pending[:size], pending[size:] if has_call else None
