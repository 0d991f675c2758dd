"""One sequence on its way through the scheduler: its tokens, where it stands, and when it must end.

Owns the rules that end a sequence on tokens (stop ids, minimum and maximum length). Knows neither blocks' contents nor
text; `text` is there for the offline engine to fill.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from atom.model_engine.messages import EngineRequest, FinishReason, TokenLogprobs
from atom.model_engine.prefix_cache import PrefixHashes
from atom.sampling_params import SamplingParams


class SequenceStatus(Enum):
    """WAITING holds no slot and no block; RUNNING holds both; FINISHED has given them back."""

    WAITING = "waiting"
    RUNNING = "running"
    FINISHED = "finished"


class Sequence:
    """A request inside the engine.

    token_ids: the prompt and every generated token that the host knows (a stop token is not among them).
    max_length: most tokens, prompt included, that the sequence may have. order: rank of its arrival, unique.
    resume_step: after a preemption, the last step whose result may still add a token; it is admitted again only when
    that result is applied, so that its tokens are complete. queue_time: seconds from its arrival to its first step,
    None before that.
    """

    __slots__ = (
        "arrival_time",
        "block_ids",
        "cache_salt",
        "finish_reason",
        "hashes",
        "is_decoding",
        "max_length",
        "min_length",
        "num_cached_tokens",
        "num_prompt_tokens",
        "order",
        "priority",
        "prompt_logprobs",
        "queue_time",
        "request_id",
        "resume_step",
        "sampling",
        "seed",
        "sent_first_delta",
        "slot",
        "status",
        "stop_ids",
        "stop_token",
        "text",
        "token_ids",
    )

    def __init__(
        self, request: EngineRequest, order: int, stop_ids: frozenset[int], length_limit: int, seed: int
    ) -> None:
        sampling = request.sampling
        self.request_id = request.request_id
        self.token_ids: list[int] = list(request.prompt_token_ids)
        self.num_prompt_tokens = len(self.token_ids)
        self.sampling: SamplingParams = sampling
        self.priority = request.priority
        self.arrival_time = request.arrival_time
        self.cache_salt = request.cache_salt
        self.order = order
        self.seed = seed
        self.stop_ids = stop_ids
        # A grammar lets a stop token be sampled early only where nothing else can follow.
        self.min_length = self.num_prompt_tokens + (sampling.min_tokens if sampling.grammar is None else 0)
        self.max_length = min(self.num_prompt_tokens + sampling.max_tokens, length_limit)
        self.status = SequenceStatus.WAITING
        self.finish_reason: FinishReason | None = None
        self.stop_token: int | None = None
        self.slot = -1
        self.block_ids: list[int] = []
        self.hashes: PrefixHashes | None = None
        self.resume_step = -1
        self.num_cached_tokens = 0
        self.is_decoding = False
        self.queue_time: float | None = None
        self.sent_first_delta = False
        self.prompt_logprobs: list[TokenLogprobs | None] | None = None if sampling.prompt_logprobs is None else [None]
        self.text = ""

    @property
    def output_token_ids(self) -> list[int]:
        """The generated tokens."""
        return self.token_ids[self.num_prompt_tokens :]

    @property
    def num_output_tokens(self) -> int:
        """How many tokens were generated."""
        return len(self.token_ids) - self.num_prompt_tokens

    @property
    def is_finished(self) -> bool:
        """Whether it has ended and holds nothing."""
        return self.status is SequenceStatus.FINISHED

    @property
    def wants_prompt_logprobs(self) -> bool:
        """Whether some prompt positions still lack the log probabilities that the request asked for."""
        return self.prompt_logprobs is not None and len(self.prompt_logprobs) < self.num_prompt_tokens

    def append(self, tokens: Iterable[int]) -> int:
        """Take sampled tokens up to the one that ends the sequence; returns how many were kept.

        Sets `finish_reason` (and `stop_token`, which is not kept) when one of them ends it. A stop token counts only
        after `min_tokens`; the length limit is checked after each token, so a stop at the very limit is a stop.
        """
        ids = self.token_ids
        num_kept = 0
        for token in tokens:
            if token in self.stop_ids and len(ids) >= self.min_length:
                self.finish_reason = "stop"
                self.stop_token = token
                return num_kept
            ids.append(token)
            num_kept += 1
            if len(ids) >= self.max_length:
                self.finish_reason = "length"
                return num_kept
        return num_kept

    def add_prompt_logprobs(self, context_len: int, entries: list[TokenLogprobs]) -> None:
        """Add a chunk's entries, which belong to prompt positions context_len + 1 and on; known positions are skipped.

        A preempted sequence is computed again, so entries may come twice, and a chunk may lie behind the prompt.
        """
        known = self.prompt_logprobs
        if known is None or not self.wants_prompt_logprobs:
            return
        first = context_len + 1
        if first > len(known):
            raise ValueError(f"prompt log probabilities of positions {len(known)} to {first - 1} are missing")
        known.extend(entries[len(known) - first : self.num_prompt_tokens - first])


def stop_ids_for(sampling: SamplingParams, eos_token_ids: frozenset[int]) -> frozenset[int]:
    """The ids that end a sequence; the common case shares the engine's own set."""
    own = sampling.stop_token_ids
    if sampling.ignore_eos:
        return frozenset(own)
    return eos_token_ids.union(own) if own else eos_token_ids
