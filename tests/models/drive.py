"""Drives a ModelRunner by hand: admits sequences, cuts prompts into chunks, collects tokens. No scheduler involved."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from atom.config import Config
from atom.model_engine.batch import ScheduledBatch, SlotAdmission, StepResult
from atom.model_engine.model_runner import ModelRunner
from atom.sampling_params import SamplingParams

GREEDY = SamplingParams(temperature=0.0, max_tokens=1024, ignore_eos=True)


def make_runner(folder: Any, **overrides: Any) -> ModelRunner:
    """A runner over a checkpoint, small enough for a test."""
    settings = {"dtype": "float32", "device": "cpu", "max_num_seqs": 16, "kv_cache_memory": 64 << 20, "block_size": 4}
    return ModelRunner(Config.resolve(str(folder), **{**settings, **overrides}))


@dataclass
class Running:
    """A sequence in a slot. `tokens`: prompt and what was generated."""

    slot: int
    tokens: list[int]
    num_prompt: int
    blocks: list[int]
    sampling: SamplingParams
    seed: int
    num_computed: int = 0
    is_admitted: bool = False
    is_decoding: bool = False
    logprobs: list[Any] = field(default_factory=list)
    prompt_logprobs: list[Any] = field(default_factory=list)

    @property
    def output(self) -> list[int]:
        return self.tokens[self.num_prompt :]


class Driver:
    """Hands out slots and blocks (shuffled, so that none are in order) and runs steps."""

    def __init__(self, runner: ModelRunner, shuffle_seed: int = 3) -> None:
        self.runner = runner
        self.size = runner.config.block_size
        self._free = np.random.default_rng(shuffle_seed).permutation(runner.num_blocks).tolist()
        self._slots = list(range(runner.config.max_num_seqs))
        self._step = 0

    def add(self, prompt: list[int], sampling: SamplingParams = GREEDY, seed: int = 0) -> Running:
        return Running(self._slots.pop(), list(prompt), len(prompt), [], sampling, seed)

    def release(self, sequence: Running) -> None:
        """The sequence has ended."""
        self._free.extend(sequence.blocks)
        self._slots.insert(0, sequence.slot)

    def preempt(self, sequence: Running) -> None:
        """Take slot and blocks away; its tokens are computed again."""
        self.release(sequence)
        sequence.blocks, sequence.num_computed = [], 0
        sequence.is_admitted = sequence.is_decoding = False
        sequence.slot = self._slots.pop()

    def step(self, sequences: list[Running], chunk: int = 1 << 20) -> StepResult:
        """One step: a decode for every sequence that a step left a token of in its slot, else up to `chunk` tokens."""
        decodes = [s for s in sequences if s.is_decoding]
        prefills = [s for s in sequences if s not in decodes]
        order = decodes + prefills
        lens = [1] * len(decodes) + [min(chunk, len(s.tokens) - s.num_computed) for s in prefills]
        admissions, new_blocks = [], []
        for sequence, length in zip(order, lens, strict=True):
            need = -(-(sequence.num_computed + length) // self.size) - len(sequence.blocks)
            taken = [self._free.pop() for _ in range(need)]
            if not sequence.is_admitted:
                sequence.is_admitted = True
                sequence.blocks += taken
                admissions.append(self._admission(sequence))
                continue
            first = len(sequence.blocks)
            new_blocks += [(sequence.slot, first + i, block) for i, block in enumerate(taken)]
            sequence.blocks += taken
        flat = [t for s, n in zip(prefills, lens[len(decodes) :], strict=True) for t in s.tokens[s.num_computed :][:n]]
        samples = [s.num_computed + n == len(s.tokens) for s, n in zip(order, lens, strict=True)]
        batch = ScheduledBatch(
            self._step,
            np.array([s.slot for s in order], dtype=np.int32),
            np.array(lens, dtype=np.int32),
            np.array([s.num_computed for s in order], dtype=np.int32),
            np.array(samples),
            len(decodes),
            np.array(flat, dtype=np.int32),
            np.array(new_blocks, dtype=np.int32).reshape(-1, 3),
            admissions,
        )
        self._step += 1
        result = self.runner.run(batch).result()
        self._apply(order, lens, result)
        return result

    def _admission(self, s: Running) -> SlotAdmission:
        return SlotAdmission(s.slot, list(s.tokens), s.num_prompt, list(s.blocks), s.sampling, s.seed)

    def _apply(self, order: list[Running], lens: list[int], result: StepResult) -> None:
        for row, (sequence, length) in enumerate(zip(order, lens, strict=True)):
            sequence.num_computed += length
            sequence.tokens += result.token_ids[row, : result.num_tokens[row]].tolist()
            sequence.is_decoding = bool(result.num_tokens[row])
            sequence.logprobs += result.logprobs.get(row, [])
            sequence.prompt_logprobs += result.prompt_logprobs.get(row, [])

    def generate(self, sequences: list[Running], num_tokens: int, chunk: int = 1 << 20) -> None:
        """Steps until every sequence has `num_tokens` tokens."""
        while running := [s for s in sequences if len(s.output) < num_tokens]:
            self.step(running, chunk)
