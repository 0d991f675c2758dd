"""The order of the events of the two OpenAI endpoints that stream chunks: chat and completions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from conformance.http.sse import UNNAMED, Event, is_object, need

Chunk = dict[str, Any]


def check_chat(events: Sequence[Event], request: dict[str, Any]) -> None:
    """Raise StreamError unless: role, deltas, one finish_reason a choice with nothing behind it, usage, [DONE]."""
    chunks = _chunks(events, request)
    num_choices = int(request.get("n") or 1)
    for index, choices in _by_choice(chunks, num_choices).items():
        deltas = [choice["delta"] for choice in choices]
        need(deltas[0] == {"role": "assistant", "content": ""}, f"choice {index} does not begin with its role")
        need(not any("role" in delta for delta in deltas[1:]), f"choice {index} gives its role again")
        need(choices[-1]["delta"] == {}, f"choice {index} ends with a delta that says something")
        calls = [call for delta in deltas for call in delta.get("tool_calls") or ()]
        _check_calls(calls)


def check_completion(events: Sequence[Event], request: dict[str, Any]) -> None:
    """Raise StreamError unless: texts, one finish_reason a choice with nothing behind it, usage, [DONE]."""
    prompt = request["prompt"]
    is_one = isinstance(prompt, str) or isinstance(prompt[0], int | float)
    _by_choice(_chunks(events, request), (1 if is_one else len(prompt)) * int(request.get("n") or 1))


def _chunks(events: Sequence[Event], request: dict[str, Any]) -> list[Chunk]:
    """The chunks that have choices; the framing, their common fields and the usage chunk are checked here."""
    need(all(event.name == UNNAMED for event in events), "an event has a name")
    need([event.data for event in events].count("[DONE]") == 1, "[DONE] comes not exactly once")
    need(events[-1].data == "[DONE]", "something follows [DONE]")
    chunks = [event.json() for event in events[:-1]]
    for key in ("id", "object", "created", "model"):
        need(len({json.dumps(chunk[key]) for chunk in chunks}) == 1, f"{key} changes within the stream")
    options = request.get("stream_options") or {}
    without = [place for place, chunk in enumerate(chunks) if not chunk["choices"]]
    wanted = [len(chunks) - 1] if options.get("include_usage") else []
    need(without == wanted, f"chunks without choices at {without}, wanted at {wanted}")
    if wanted:
        need(chunks[-1].get("usage") is not None, "the last chunk has no usage")
        usage = chunks.pop()["usage"]
        total = usage["prompt_tokens"] + usage["completion_tokens"]
        need(usage["total_tokens"] == total, "total_tokens is not the sum")
    is_counted = [chunk.get("usage") is not None for chunk in chunks]
    wants_all = bool(options.get("continuous_usage_stats"))
    need(all(is_counted) if wants_all else not any(is_counted), "usage is not on all chunks, or where none was asked")
    return chunks


def _by_choice(chunks: Sequence[Chunk], num_choices: int) -> dict[int, list[Chunk]]:
    """The choices by index, in the order in which they came."""
    found: dict[int, list[Chunk]] = {}
    for chunk in chunks:
        for choice in chunk["choices"]:
            found.setdefault(choice["index"], []).append(choice)
    need(sorted(found) == list(range(num_choices)), f"choices {sorted(found)}, wanted {num_choices}")
    for index, choices in found.items():
        reasons = [choice["finish_reason"] for choice in choices]
        need(reasons[-1] is not None, f"choice {index} has no finish_reason at its end")
        need(not any(reasons[:-1]), f"choice {index} goes on behind its finish_reason")
    return found


def _check_calls(deltas: Sequence[dict[str, Any]]) -> None:
    """Calls come one after the other; id, type and name once, then arguments that are JSON of an object, cut or not."""
    arguments: dict[int, str] = {}
    for delta in deltas:
        index, function = delta["index"], delta["function"]
        is_new = index not in arguments
        need(index == len(arguments) - (0 if is_new else 1), f"call {index} is out of order")
        heads = ("id" in delta, "type" in delta, "name" in function)
        need(heads == (is_new,) * 3, f"call {index}: id, type and name come not exactly once")
        arguments[index] = arguments.get(index, "") + function["arguments"]
    for index, text in arguments.items():
        need(is_object(text), f"call {index}: arguments are no JSON object: {text[:200]!r}")
