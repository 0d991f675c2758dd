"""Looking for a declared call inside an open reasoning channel.

Owns one question: where does the first call start that names a declared tool? A reader of the model's format is run
over the thoughts, and only what it lets go is thought for sure. Knows nothing of reasoning markers.
"""

from __future__ import annotations

from atom.entrypoints.openai.events import ContentDelta, Event, ToolCallStart
from atom.entrypoints.openai.tool_parser.stream import ToolCallReader


class CallWatch:
    """The watch over one open channel. `reader` must let text go verbatim and in order up to its first call."""

    def __init__(self, reader: ToolCallReader) -> None:
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
