"""An executor without a model: the next token is a hash of all tokens so far, read back from a fake paged KV cache.

The cache stores token ids. A step writes its inputs where the block table says and reads every earlier position through
the same table, so a wrong block, a wrong position or a stale prefix gives a wrong token. `oracle` says what a sequence
must get, whatever was batched with it.
"""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

import numpy as np
import xxhash

from atom.model_engine.batch import ScheduledBatch, SlotAdmission, StepResult
from atom.model_engine.executor.base import CacheSpace, Executor
from atom.model_engine.messages import EngineCallError, EngineInfo, TokenLogprobs

EMPTY = -1
GARBAGE = 1_000_000_007


@dataclass(frozen=True)
class UniformConfig:
    """The settings that the engine core reads of a Config, and the fake's own.

    draft_len: tokens a drafter proposes. fail_at_step: the step that raises. step_seconds: how long a step takes.
    fail_at_start: the error to raise; "exit" ends the process without a word, "hang" never returns.
    """

    num_blocks: int = 64
    block_size: int = 4
    vocab_size: int = 97
    eos_token_ids: tuple[int, ...] = ()
    max_model_len: int = 256
    max_num_seqs: int = 8
    max_num_batched_tokens: int = 64
    enable_prefix_caching: bool = True
    scheduler_delay_factor: float = 0.0
    enable_log_stats: bool = False
    throughput_log_interval: float = 10.0
    max_in_flight: int = 2
    waits_for_prompts: bool = False
    draft_len: int = 0
    fail_at_step: int | None = None
    fail_at_start: str | None = None
    step_seconds: float = 0.0


def next_token(tokens: Sequence[int], vocab_size: int) -> int:
    """What the fake model says after `tokens`."""
    return xxhash.xxh64_intdigest(np.asarray(tokens, dtype=np.int64).tobytes()) % vocab_size


def oracle(prompt: Sequence[int], num_tokens: int, vocab_size: int) -> list[int]:
    """The tokens that a sequence alone would get, without any stop."""
    tokens = list(prompt)
    for _ in range(num_tokens):
        tokens.append(next_token(tokens, vocab_size))
    return tokens[len(prompt) :]


def logprobs_of(tokens: Sequence[int], token: int, num_top: int, vocab_size: int) -> TokenLogprobs:
    """Made-up log probabilities of `token` after `tokens`, a pure function of both."""
    first = next_token(tokens, vocab_size)
    top = [(first + index) % vocab_size for index in range(num_top)]
    return TokenLogprobs(token, -1.0 - token / 1000, 1, top, [-0.5 - index for index in range(num_top)])


@dataclass
class Slot:
    admission: SlotAdmission
    block_ids: list[int]
    last_token: int | None = None
    tokens: list[int] = field(default_factory=list)


class UniformExecutor(Executor):
    """Runs each launched step at once and hands the results out in order, as a fast device would."""

    def __init__(self, config: UniformConfig, on_batch: Callable[[ScheduledBatch], None] | None = None) -> None:
        self.config = config
        self.max_in_flight = config.max_in_flight
        self.waits_for_prompts = config.waits_for_prompts
        self.cache = np.full((config.num_blocks, config.block_size), EMPTY, dtype=np.int64)
        self.slots: dict[int, Slot] = {}
        self.results: deque[StepResult] = deque()
        self.is_shut_down = False
        self.is_failing = False
        self.waiting: list[Future[str]] = []
        self.on_batch = on_batch

    def start(self) -> tuple[EngineInfo, CacheSpace]:
        config = self.config
        if config.fail_at_start == "exit":
            os._exit(7)
        if config.fail_at_start == "hang":
            time.sleep(600)
        if config.fail_at_start is not None:
            raise ValueError(config.fail_at_start)
        info = EngineInfo(
            model="uniform",
            architecture="Uniform",
            device="cpu",
            dtype="float32",
            max_model_len=config.max_model_len,
            vocab_size=config.vocab_size,
            eos_token_ids=list(config.eos_token_ids),
            block_size=config.block_size,
            num_blocks=config.num_blocks,
            max_num_seqs=config.max_num_seqs,
        )
        return info, CacheSpace(config.num_blocks, config.block_size)

    def launch(self, batch: ScheduledBatch) -> None:
        if self.on_batch is not None:
            self.on_batch(batch)
        if len(self.results) >= self.max_in_flight:
            raise AssertionError(f"{len(self.results)} steps are in flight already")
        for admission in batch.admissions:
            self.slots[admission.slot] = Slot(admission, list(admission.block_ids))
        for slot, index, block in batch.new_blocks.tolist():
            table = self.slots[slot].block_ids
            if len(table) != index:
                raise AssertionError(f"slot {slot} has {len(table)} blocks and got one for index {index}")
            table.append(block)
        self.results.append(self._run(batch))

    def collect(self) -> StepResult:
        if self.config.step_seconds:
            time.sleep(self.config.step_seconds)
        result = self.results.popleft()
        if self.is_failing or result.step == self.config.fail_at_step:
            raise RuntimeError(f"step {result.step} failed, as it was told to")
        return result

    def call(self, name: str, arguments: dict[str, str | int | float | bool | None]) -> Future[str]:
        """`wait` ends when `go_on` is called, `refuse` fails with the given code, and `fail` fails the next step."""
        if name == "exit":
            os._exit(3)
        future: Future[str] = Future()
        if name == "wait":
            self.waiting.append(future)
        elif name == "fail":
            self.is_failing = True
            future.set_result(json.dumps(None))
        elif name == "refuse":
            future.set_exception(EngineCallError("not now", str(arguments["code"])))
        elif name == "go_on":
            for waiting in self.waiting:
                waiting.set_result(json.dumps("at last"))
            future.set_result(json.dumps(len(self.waiting)))
        elif name == "echo":
            future.set_result(json.dumps(arguments))
        else:
            raise ValueError(f"no operation is named {name!r}")
        return future

    def shutdown(self) -> None:
        self.is_shut_down = True

    def _run(self, batch: ScheduledBatch) -> StepResult:
        token_ids = np.full((batch.num_rows, 1 + self.config.draft_len), GARBAGE, dtype=np.int32)
        result = StepResult(batch.step, token_ids, np.zeros(batch.num_rows, dtype=np.int32))
        prefill_start = 0
        for row in range(batch.num_rows):
            slot = self.slots[int(batch.slots[row])]
            length, context = int(batch.query_lens[row]), int(batch.context_lens[row])
            if row < batch.num_decodes:
                self._decode(result, row, slot, length)
                continue
            inputs = batch.prefill_token_ids[prefill_start : prefill_start + length].tolist()
            prefill_start += length
            self._prefill(result, row, slot, inputs, context, bool(batch.samples[row]))
        if prefill_start != len(batch.prefill_token_ids):
            raise AssertionError("prefill_token_ids and query_lens disagree")
        return result

    def _prefill(
        self, result: StepResult, row: int, slot: Slot, inputs: list[int], context: int, samples: bool
    ) -> None:
        self._write(slot, context, inputs)
        tokens = self._read(slot, context + len(inputs))
        sampling, num_prompt = slot.admission.sampling, slot.admission.num_prompt_tokens
        if sampling.prompt_logprobs is not None:
            targets = range(context + 1, min(context + len(inputs), num_prompt - 1) + 1)
            prompt = slot.admission.token_ids
            result.prompt_logprobs[row] = [
                logprobs_of(tokens[:at], prompt[at], sampling.prompt_logprobs, self.config.vocab_size) for at in targets
            ]
        if samples:
            self._emit(result, row, slot, tokens, [next_token(tokens, self.config.vocab_size)])

    def _decode(self, result: StepResult, row: int, slot: Slot, length: int) -> None:
        """A decode of 1 + k tokens; the made-up drafter gets the first few right, how many the hash decides."""
        if slot.last_token is None:
            raise AssertionError("a slot decodes before it has sampled")
        context = len(slot.tokens) - 1
        if length > 1 or self.config.draft_len:
            length = min(length, len(slot.block_ids) * self.config.block_size - context)
        if length < 1:  # drafts took it past its end, which the host learns a step late; nobody reads this
            result.token_ids[row, 0], result.num_tokens[row] = GARBAGE, 1
            return
        self._write(slot, context, [slot.last_token])
        tokens = self._read(slot, context + 1)
        sampled = [next_token(tokens, self.config.vocab_size)]
        num_right = sampled[0] % length
        for index in range(1, length):
            draft = sampled[-1] if index <= num_right else GARBAGE
            self._write(slot, context + index, [draft])
            if index <= num_right:
                tokens = self._read(slot, context + index + 1)
                sampled.append(next_token(tokens, self.config.vocab_size))
        self._emit(result, row, slot, self._read(slot, context + 1), sampled)

    def _emit(self, result: StepResult, row: int, slot: Slot, tokens: list[int], sampled: list[int]) -> None:
        result.token_ids[row, : len(sampled)] = sampled
        result.num_tokens[row] = len(sampled)
        num_top = slot.admission.sampling.logprobs
        if num_top is not None:
            result.logprobs[row] = [
                logprobs_of([*tokens, *sampled[:index]], token, num_top, self.config.vocab_size)
                for index, token in enumerate(sampled)
            ]
        slot.tokens = [*tokens, *sampled]
        slot.last_token = sampled[-1]

    def _write(self, slot: Slot, position: int, tokens: list[int]) -> None:
        size = self.config.block_size
        for at, token in enumerate(tokens, position):
            self.cache[slot.block_ids[at // size], at % size] = token

    def _read(self, slot: Slot, num_tokens: int) -> list[int]:
        size = self.config.block_size
        return [int(self.cache[slot.block_ids[at // size], at % size]) for at in range(num_tokens)]
