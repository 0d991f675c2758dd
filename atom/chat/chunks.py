"""Chunks of a streamed answer: read from their JSON, and held to the shape that the rest of the chat relies on.

Owns how much of a chunk is read. What else stands in it may be anything.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | None = None


class _Call(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Delta(msgspec.Struct):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(msgspec.Struct):
    index: int | None = None
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Usage(msgspec.Struct):
    completion_tokens: int | None = None
    ttft_s: float | None = None
    tpot_s: float | None = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None


def read_chunk(data: bytes) -> dict[str, Any]:
    """The chunk. Raises ValueError for what is none."""
    try:
        chunk: dict[str, Any] = json.loads(data)
        msgspec.convert(chunk, _Chunk)
    except (ValueError, RecursionError) as error:  # msgspec's ValidationError is a ValueError
        raise ValueError(f"no chunk of an answer: {error}") from None
    return chunk
