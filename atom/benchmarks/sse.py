"""Server-sent events out of a byte stream.

Owns the framing only: lines, `data:` fields, the blank line that ends an event. Does not know what an event holds.
The work per event is one split and one slice, since it is done between two timestamps of a measurement.
"""

from __future__ import annotations


class EventSplitter:
    """Cuts a stream that arrives in pieces of any size into the data of its events.

    Lines may end in LF or CRLF. Comments and fields other than `data` are dropped.
    """

    __slots__ = ("_data", "_rest")

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of every event that `chunk` completes, in order."""
        lines = (self._rest + chunk).split(b"\n")
        self._rest = lines.pop()
        events: list[bytes] = []
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(_field_value(line))
            elif line in (b"", b"\r") and self._data:
                events.append(b"\n".join(self._data))
                self._data.clear()
        return events

    def finish(self) -> list[bytes]:
        """The data of a last event whose blank line never came."""
        return self.feed(b"\n\n")


def _field_value(line: bytes) -> bytes:
    """What stands behind `data:`, without the one space that may follow the colon."""
    start = 6 if line[5:6] == b" " else 5
    return line[start:-1] if line.endswith(b"\r") else line[start:]
