"""Usage of an answer: what was read, what was written, and how long it took.

Owns the arithmetic over an answer's choices. Times are seconds.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from atom.entrypoints.openai.generation import SequenceRun


def usage_of(runs: Sequence[SequenceRun], num_prompt_tokens: int, started: float) -> dict[str, Any]:
    """The usage object; each prompt counts once, however many choices it has. `started`: monotonic time of arrival.

    ttft_s: to the first token of any choice, and to now while there is none. tpot_s: mean time between the tokens of a
    choice, 0 where none has two. latency_s: to now.
    """
    now = time.monotonic()
    num_output = sum(run.num_tokens for run in runs)
    first_times = [run.first_token_time for run in runs if run.first_token_time is not None]
    return {
        "prompt_tokens": num_prompt_tokens,
        "completion_tokens": num_output,
        "total_tokens": num_prompt_tokens + num_output,
        "prompt_tokens_details": {"cached_tokens": min(num_prompt_tokens, _cached(runs))},
        "completion_tokens_details": {"reasoning_tokens": sum(run.pipeline.num_reasoning_tokens for run in runs)},
        "ttft_s": round(min(first_times, default=now) - started, 6),
        "tpot_s": round(_time_per_output_token(runs), 6),
        "latency_s": round(now - started, 6),
    }


def _cached(runs: Sequence[SequenceRun]) -> int:
    """Cached tokens, a prompt counted once: what its first choice found, which reads it for the others."""
    by_prompt: dict[int, int] = {}
    for run in runs:
        by_prompt.setdefault(run.prompt_index, run.num_cached_tokens)
    return sum(by_prompt.values())


def _time_per_output_token(runs: Sequence[SequenceRun]) -> float:
    seconds, num_steps = 0.0, 0
    for run in runs:
        if run.first_token_time is not None and run.last_token_time is not None and run.num_tokens > 1:
            seconds += run.last_token_time - run.first_token_time
            num_steps += run.num_tokens - 1
    return seconds / num_steps if num_steps else 0.0
