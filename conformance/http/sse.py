"""Server-sent events as this server writes them.

Owns the framing: one `data:` line an event, an `event:` line before it where the API names its events, a blank line
behind it, comments between. Knows no API.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

UNNAMED = "message"


class StreamError(AssertionError):
    """A stream that is not what its API promises."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `name` is `message` where the stream names none."""

    name: str
    data: str

    def json(self) -> dict[str, Any]:
        """The data, which must be a JSON object that is no error."""
        try:
            value = json.loads(self.data)
        except ValueError:
            raise StreamError(f"an event's data is not JSON: {self.data[:200]!r}") from None
        need(isinstance(value, dict), f"an event's data is no object: {self.data[:200]!r}")
        need("error" not in value or value["error"] is None, f"the stream ends in an error: {self.data[:400]}")
        return dict(value)


def need(holds: bool, otherwise: str) -> None:
    """Raise StreamError unless it holds."""
    if not holds:
        raise StreamError(otherwise)


def is_object(text: str) -> bool:
    """Whether it is JSON of an object."""
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def read_events(text: str) -> list[Event]:
    """The events of a whole stream, comments left out. Raises StreamError where the framing is another."""
    need(text.endswith("\n\n"), f"the stream does not end with a blank line: {text[-80:]!r}")
    events = []
    for block in text[:-2].split("\n\n"):
        if block.startswith(":") and "\n" not in block:
            continue
        lines = block.split("\n")
        name = lines.pop(0).removeprefix("event: ") if lines[0].startswith("event: ") else UNNAMED
        framed = len(lines) == 1 and lines[0].startswith("data: ") and lines[0] != "data: "
        need(framed, f"an event is not one line of data: {block[:200]!r}")
        events.append(Event(name, lines[0].removeprefix("data: ")))
    return events
