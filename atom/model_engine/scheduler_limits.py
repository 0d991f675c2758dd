"""The bounds that the scheduler keeps to, and the totals that it counts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SchedulerLimits:
    """max_num_batched_tokens: tokens a step. max_model_len: tokens a sequence, prompt included.

    delay_factor: a waiting prompt starts only when the oldest has waited this many times the last prefill's duration.
    """

    max_num_seqs: int
    max_num_batched_tokens: int
    max_model_len: int
    eos_token_ids: frozenset[int] = frozenset()
    delay_factor: float = 0.0
    decode_len: int = 1

    def __post_init__(self) -> None:
        for name in ("max_num_seqs", "max_num_batched_tokens", "max_model_len", "decode_len"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.decode_len > self.max_num_batched_tokens:
            raise ValueError(
                f"max_num_batched_tokens ({self.max_num_batched_tokens}) must hold a decode of {self.decode_len} tokens"
            )


@dataclass(slots=True)
class Counters:
    """What only grows; names as in EngineStats."""

    prompt_tokens: int = 0
    cached_prompt_tokens: int = 0
    generation_tokens: int = 0
    preemptions: int = 0
    steps: int = 0
    requests_finished: int = 0
    requests_aborted: int = 0
    draft_tokens: int = 0
    accepted_tokens: int = 0
