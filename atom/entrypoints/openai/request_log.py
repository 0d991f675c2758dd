"""The file of --request-log: every request and answer, one JSON object a line.

Owns the file and the thread that writes it, so that a slow disk never holds up an answer. Lines have timestamp (seconds
since the epoch), request_id, type (request, response, stream_chunk, stream_done) and data.
"""

from __future__ import annotations

import queue
import threading
import time
from pathlib import Path
from typing import Any, Literal

import msgspec

Kind = Literal["request", "response", "stream_chunk", "stream_done"]


class RequestLog:
    """An open request log. Raises OSError at construction when the file can not be written."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write, name="request-log", daemon=True)
        self._thread.start()

    def add(self, kind: Kind, request_id: str, data: bytes | None = None) -> None:
        """Note one event. `data`: JSON is embedded as it is, anything else as text."""
        line = {"timestamp": time.time(), "request_id": request_id, "type": kind, "data": _embeddable(data)}
        self._lines.put(msgspec.json.encode(line) + b"\n")

    def add_frames(self, request_id: str, frames: bytes) -> None:
        """Note the frames of a stream, one line each; its end is noted apart, not every API sends one."""
        for frame in frames.removesuffix(b"\n\n").split(b"\n\n"):
            _, _, data = frame.partition(b"data: ")  # before it, at most the event's name
            if data != b"[DONE]":
                self.add("stream_chunk", request_id, data)

    def close(self) -> None:
        """Write what is left."""
        self._lines.put(None)
        self._thread.join()
        self._file.close()

    def _write(self) -> None:
        while (line := self._lines.get()) is not None:
            self._file.write(line)


def _embeddable(data: bytes | None) -> Any:
    if data is None:
        return None
    try:
        msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return data.decode("utf-8", "replace")
    return msgspec.Raw(data.strip())
