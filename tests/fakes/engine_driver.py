"""Drives an EngineCore over the uniform executor and says what each request must get."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from atom.model_engine.batch import ScheduledBatch
from atom.model_engine.block_manager import BlockManager
from atom.model_engine.engine_core import EngineCore
from atom.model_engine.messages import EngineRequest, TokenDelta, TokenLogprobs
from atom.model_engine.scheduler import Scheduler, UnservableRequest
from atom.model_engine.scheduler_limits import SchedulerLimits
from atom.sampling_params import SamplingParams
from tests.fakes.clock import ManualClock
from tests.fakes.uniform_executor import UniformConfig, UniformExecutor, logprobs_of, next_token


@dataclass
class Answer:
    """Everything that came for one request."""

    token_ids: list[int] = field(default_factory=list)
    logprobs: list[TokenLogprobs] = field(default_factory=list)
    prompt_logprobs: list[TokenLogprobs | None] | None = None
    finish_reason: str | None = None
    stop_token: int | None = None
    num_cached_tokens: int = 0
    error: str | None = None
    num_deltas: int = 0

    def take(self, delta: TokenDelta) -> None:
        assert self.finish_reason is None, "a delta came after the last one"
        if delta.prompt_logprobs is not None:
            assert self.num_deltas == 0, "prompt log probabilities came after the first delta"
            self.prompt_logprobs = delta.prompt_logprobs
        self.token_ids += delta.token_ids
        self.logprobs += delta.logprobs or []
        self.finish_reason, self.stop_token, self.error = delta.finish_reason, delta.stop_token, delta.error
        self.num_cached_tokens = delta.num_cached_tokens
        self.num_deltas += 1


class EngineDriver:
    """An engine core, the answers so far and the batches that it launched."""

    def __init__(self, config: UniformConfig, clock: ManualClock | None = None) -> None:
        self.config = config
        self.answers: dict[str, Answer] = {}
        self.batches: list[ScheduledBatch] = []
        self.executor = UniformExecutor(config, self.batches.append)
        info, space = self.executor.start()
        limits = SchedulerLimits(
            config.max_num_seqs,
            config.max_num_batched_tokens,
            config.max_model_len,
            frozenset(config.eos_token_ids),
            config.scheduler_delay_factor,
            decode_len=1 + config.draft_len,
        )
        blocks = BlockManager(space.num_blocks, space.block_size, config.enable_prefix_caching)
        self.scheduler = Scheduler(limits, blocks, *([clock] if clock is not None else []))
        self.core = EngineCore(self.executor, info, self.scheduler)

    def add(
        self, request_id: str, prompt: Sequence[int], priority: int = 0, salt: str = "", **sampling: object
    ) -> None:
        params = SamplingParams(**sampling)  # type: ignore[arg-type]  # values of one Any dict
        request = EngineRequest(request_id, list(prompt), params, 0.0, priority, salt)
        try:
            self.core.add(request)
        except UnservableRequest as error:
            self.core.refuse(request_id, str(error))

    def step(self) -> list[TokenDelta]:
        deltas = self.core.step()
        for delta in deltas:
            self.answers.setdefault(delta.request_id, Answer()).take(delta)
        return deltas

    def run(self, max_steps: int = 5000) -> dict[str, Answer]:
        for _ in range(max_steps):
            if not self.core.has_work:
                return self.answers
            self.step()
        raise AssertionError(f"still working after {max_steps} steps")

    def check_blocks(self) -> None:
        """Every block is held as often as tables say, and is free exactly when it is in no table."""
        blocks = self.scheduler.blocks
        counts = [0] * blocks.num_blocks
        for sequence in self.scheduler.sequences.values():
            for block in sequence.block_ids:
                counts[block] += 1
        assert counts == blocks._ref_counts
        free = [*blocks._vacant, *blocks._reusable]
        assert sorted(free) == [block for block, count in enumerate(counts) if not count]
        assert len(blocks.cache._entries) == len(blocks.cache._by_block)


def expected_answer(config: UniformConfig, prompt: Sequence[int], sampling: SamplingParams) -> Answer:
    """What the request gets when it runs alone, token by token, without caches, chunks or preemption."""
    limit = min(config.max_model_len, config.num_blocks * config.block_size)
    tokens, answer = list(prompt), Answer()
    stop_ids = set(sampling.stop_token_ids) | (set() if sampling.ignore_eos else set(config.eos_token_ids))
    if sampling.prompt_logprobs is not None:
        answer.prompt_logprobs = [None]
        for at in range(1, len(prompt)):
            entry = logprobs_of(prompt[:at], prompt[at], sampling.prompt_logprobs, config.vocab_size)
            answer.prompt_logprobs.append(entry)
    while len(answer.token_ids) < sampling.max_tokens and len(tokens) < limit:
        token = next_token(tokens, config.vocab_size)
        if sampling.logprobs is not None:
            answer.logprobs.append(logprobs_of(tokens, token, sampling.logprobs, config.vocab_size))
        if token in stop_ids and len(answer.token_ids) >= sampling.min_tokens:
            answer.finish_reason, answer.stop_token = "stop", token
            return answer
        tokens.append(token)
        answer.token_ids.append(token)
    answer.finish_reason = "length"
    return answer
