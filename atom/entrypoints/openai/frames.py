"""The chunks of a streamed answer, as frames.

Owns the JSON of `chat.completion.chunk` and `text_completion` chunks: what all chunks of an answer share is encoded
once. Knows neither tokens nor the engine.
"""

from __future__ import annotations

from typing import Any

import msgspec

_encode = msgspec.json.encode

# What most chunks say of themselves.
_GOES_ON = b',"logprobs":null,"finish_reason":null'


class ChunkFrames:
    """Frames of one answer. `running_usage`: None, or the JSON that every chunk carries as its `usage`.

    A chunk of choice 0 is `{"id":…,"choices":[{"index":0,` + the choice's own members + `}]` + usage + `}`.
    """

    def __init__(self, answer_id: str, kind: str, created: int, model: str, *, with_usage: bool) -> None:
        shared = _encode({"id": answer_id, "object": kind, "created": created, "model": model})
        self._head = b"data: " + shared[:-1] + b',"choices":['
        self._choice_heads: dict[int, bytes] = {}
        self._tail = b'}],"usage":null}\n\n' if with_usage else b"}]}\n\n"

    def set_running_usage(self, usage: dict[str, Any]) -> None:
        """Make the following chunks carry this usage."""
        self._tail = b'}],"usage":' + _encode(usage) + b"}\n\n"

    def usage(self, usage: dict[str, Any]) -> bytes:
        """The last chunk: no choices, only usage."""
        return self._head + b'],"usage":' + _encode(usage) + b"}\n\n"

    def chat(
        self,
        index: int,
        delta: dict[str, Any],
        finish_reason: str | None = None,
        logprobs: dict[str, Any] | None = None,
    ) -> bytes:
        """A chunk of a chat answer."""
        return self._chunk(index, b'"delta":' + _encode(delta), finish_reason, logprobs)

    def text(
        self, index: int, text: str, finish_reason: str | None = None, logprobs: dict[str, Any] | None = None
    ) -> bytes:
        """A chunk of a text completion."""
        return self._chunk(index, b'"text":' + _encode(text), finish_reason, logprobs)

    def _chunk(self, index: int, own: bytes, finish_reason: str | None, logprobs: dict[str, Any] | None) -> bytes:
        head = self._choice_heads.get(index)
        if head is None:
            head = self._choice_heads[index] = self._head + b'{"index":%d,' % index
        if logprobs is None and finish_reason is None:
            return b"".join((head, own, _GOES_ON, self._tail))
        shown = b',"logprobs":null' if logprobs is None else b',"logprobs":' + _encode(logprobs)
        reason = b',"finish_reason":null' if finish_reason is None else b',"finish_reason":' + _encode(finish_reason)
        return head + own + shown + reason + self._tail
