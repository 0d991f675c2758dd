"""Drawn requests made cheap enough for a small model on a CPU, without a change to what they are about.

Only requests that the contract allows are touched: one that breaks it is refused before anything is generated, and must
stay as broken as it was drawn.
"""

from __future__ import annotations

import json
import zlib
from typing import Any

MOST_TOKENS = 4
MOST_CHOICES = 2
MOST_PROMPTS = 3

# By operationId: the fields that limit the answer; the first is written where the request has none of them.
_LIMITS: dict[str, tuple[str, ...]] = {
    "createChatCompletion": ("max_tokens", "max_completion_tokens"),
    "createCompletion": ("max_tokens", "max_completion_tokens"),
    "createMessage": ("max_tokens",),
    "createResponse": ("max_output_tokens",),
}


def bounded(operation_id: str, body: dict[str, Any]) -> dict[str, Any]:
    """The request with a short answer, few choices and few prompts, every second one of the silent ones streamed."""
    limits = _LIMITS.get(operation_id)
    if limits is None:
        return body
    bounded = dict(body)
    for name in (*limits, "n", "best_of"):
        most = MOST_TOKENS if name in limits else MOST_CHOICES
        if isinstance(body.get(name), int | float):
            bounded[name] = min(body[name], most)
    if all(body.get(name) is None for name in limits):
        bounded[limits[0]] = MOST_TOKENS
    if isinstance(body.get("prompt"), list) and operation_id == "createCompletion":
        bounded["prompt"] = body["prompt"][:MOST_PROMPTS]
    if "stream" not in body:
        bounded["stream"] = _is_odd(body)
    return bounded


def _is_odd(body: dict[str, Any]) -> bool:
    """A coin that falls the same way for the same request, so that a run can be repeated."""
    return bool(zlib.crc32(json.dumps(body, sort_keys=True).encode()) & 1)
