"""Mixed load for a given time: random lengths, sampling, grammars, log probabilities, aborts, and what must hold.

Owns the load and the checks of what it leaves behind. Every greedy answer, aborted ones up to there, is compared with
the answer that its prompt gets alone; so greedy prompts come from a pool whose answers were made first. Prompts whose
two best tokens are nearly alike somewhere are no part of it: sums in another order may choose the other one.
"""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
import torch

from atom.model_engine.engine_core import EngineCore
from atom.model_engine.messages import EngineRequest, TokenDelta
from atom.sampling_params import AnswerGrammar, SamplingParams

# Least distance of the two best tokens' log probabilities in a pool's answer.
_CLEAR = 1e-3
_ABORTED, _GREEDY = 0.15, 0.6
_LARGEST_TOKEN = 1000
_GRAMMARS = ("start: /[a-z ]{1,20}/", 'start: "yes" | "no, " /[0-9]+/')
# What the last step's own tensors may make a difference of.
_SLACK = {"bytes": 2 << 20, "tensors": 16}


@dataclass(slots=True)
class _Running:
    """A request in the engine. expected: the answer alone of a greedy one; abort_at: tokens after which it is ended."""

    expected: list[int] | None
    sampling: SamplingParams
    abort_at: int | None
    tokens: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SoakReport:
    """What happened. wrong: ids of greedy answers that differ from those alone; leaks: what is not as it was before."""

    num_requests: int
    num_compared: int
    num_aborted: int
    num_tokens: int
    preemptions: int
    wrong: list[str]
    leaks: dict[str, tuple[int, int]]


class Soak:
    """A load on an engine of its own, in the caller's process."""

    def __init__(self, core: EngineCore, device: str, seed: int, longest_prompt: int, longest_answer: int) -> None:
        self._core = core
        self._device = device
        self._random = np.random.default_rng(seed)
        self._longest_prompt = longest_prompt
        self._longest_answer = longest_answer
        self._running: dict[str, _Running] = {}
        self._pool: list[tuple[list[int], list[int]]] = []
        self._num_sent = self._num_compared = self._num_aborted = self._num_tokens = 0
        self._wrong: list[str] = []

    def run(self, seconds: float, num_requests: int, pool_size: int, width: int) -> SoakReport:
        """Load of up to `width` requests at a time, for so long and for so many requests, whatever takes longer.

        A fifth first and then the rest, drained after each: what is held after the first is what must be held at last.
        """
        self._fill_pool(pool_size)
        started = time.monotonic()
        self._load(started + seconds / 5, num_requests // 5, width)
        before = self._held()
        self._load(started + seconds, num_requests, width)
        after = self._held()
        leaks = {name: (before[name], after[name]) for name in before if after[name] > before[name] + _SLACK[name]}
        return SoakReport(
            self._num_sent, self._num_compared, self._num_aborted, self._num_tokens, self._core.stats().preemptions,
            self._wrong, leaks,
        )  # fmt: skip

    def _prompt(self) -> list[int]:
        """Few are long."""
        length = 1 + int(self._longest_prompt * self._random.random() ** 3)
        return self._random.integers(1, _LARGEST_TOKEN, min(length, self._longest_prompt)).tolist()

    def _fill_pool(self, size: int) -> None:
        """Prompts, every second the continuation of an earlier one, and their greedy answers, made one at a time."""
        sampling = SamplingParams(temperature=0.0, max_tokens=self._longest_answer, ignore_eos=True, logprobs=2)
        while len(self._pool) < size:
            prompt = self._prompt()
            if self._pool and len(self._pool) % 2:
                earlier = self._pool[int(self._random.integers(len(self._pool)))][0]
                prompt = (earlier + prompt)[: self._longest_prompt]
            self._core.add(EngineRequest(f"alone {time.monotonic_ns()}", prompt, sampling))
            deltas = self._drained()
            gaps = [top.top_logprobs[0] - top.top_logprobs[1] for delta in deltas for top in delta.logprobs or ()]
            if min(gaps) > _CLEAR:
                self._pool.append((prompt, [token for delta in deltas for token in delta.token_ids]))

    def _load(self, until: float, num_requests: int, width: int) -> None:
        while time.monotonic() < until or self._num_sent < num_requests:
            wanted = int(self._random.integers(1, width + 1))
            while len(self._running) < wanted:
                self._send()
            for _ in range(int(self._random.integers(1, 9))):
                self._take(self._core.step())
        while self._running or self._core.has_work:
            self._take(self._core.step())

    def _send(self) -> None:
        request_id = str(self._num_sent)
        self._num_sent += 1
        length = int(self._random.integers(1, self._longest_answer + 1))
        abort_at = int(self._random.integers(0, length)) if self._random.random() < _ABORTED else None
        sampling = SamplingParams(temperature=0.0, max_tokens=length, ignore_eos=True)
        if self._random.random() < _GREEDY:
            prompt, expected = self._pool[int(self._random.integers(len(self._pool)))]
            running = _Running(expected[:length], sampling, abort_at)
        else:
            prompt, running = self._prompt(), _Running(None, replace_some(sampling, self._random), abort_at)
        self._running[request_id] = running
        self._core.add(EngineRequest(request_id, prompt, running.sampling))
        if abort_at == 0:
            self._core.abort([request_id])

    def _take(self, deltas: list[TokenDelta]) -> None:
        for delta in deltas:
            running = self._running[delta.request_id]
            running.tokens += delta.token_ids
            self._num_tokens += len(delta.token_ids)
            if delta.finish_reason is not None:
                assert delta.finish_reason in ("length", "stop", "abort"), delta.error
                self._end(delta.request_id, delta.finish_reason == "abort")
            elif running.abort_at and len(running.tokens) >= running.abort_at:
                self._core.abort([delta.request_id])

    def _end(self, request_id: str, is_aborted: bool) -> None:
        running = self._running.pop(request_id)
        self._num_aborted += is_aborted
        if running.expected is None:
            return
        self._num_compared += 1
        wanted = running.expected[: len(running.tokens)] if is_aborted else running.expected
        if running.tokens != wanted:
            self._wrong.append(request_id)

    def _drained(self) -> list[TokenDelta]:
        found = []
        while self._core.has_work:
            found += self._core.step()
        return found

    def _held(self) -> dict[str, int]:
        """What an engine without work holds."""
        stats = self._core.stats()
        held = (stats.num_running, stats.num_waiting, stats.num_blocks_used, len(self._core.request_ids))
        assert not any(held), held
        gc.collect()
        if self._device == "cuda":
            torch.cuda.synchronize()
            return {"bytes": torch.cuda.memory_allocated()}
        return {"tensors": sum(issubclass(type(x), torch.Tensor) for x in gc.get_objects())}


def replace_some(sampling: SamplingParams, random: np.random.Generator) -> SamplingParams:
    """Sampled, with filters, penalties, a bias, log probabilities; some follow a grammar, and some only score."""
    given: dict[str, Any] = {"temperature": float(random.uniform(0.2, 1.5)), "seed": int(random.integers(1 << 40))}
    some: dict[str, Any] = {
        "top_p": 0.9, "top_k": 40, "min_p": 0.05, "frequency_penalty": 0.5, "repetition_penalty": 1.2,
        "logit_bias": {5: 10.0}, "logprobs": 2, "prompt_logprobs": 1, "min_tokens": 1,
    }  # fmt: skip
    given.update({name: value for name, value in some.items() if random.random() < 0.25})
    kind = random.random()
    if kind < 0.2:
        given.update(grammar=AnswerGrammar(_GRAMMARS[int(random.integers(len(_GRAMMARS)))]), ignore_eos=False)
    elif kind < 0.3:
        given.update(max_tokens=0, min_tokens=0, prompt_logprobs=1)
    elif kind < 0.4:
        given.update(stop_token_ids=tuple(random.integers(1, _LARGEST_TOKEN, 100).tolist()))
    return msgspec.structs.replace(sampling, **given)
