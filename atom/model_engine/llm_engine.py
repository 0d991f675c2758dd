"""`LLMEngine`: generate text from Python, with the engine core in the caller's process.

Owns the public offline interface: prompts and texts in and out, requests in flight. The loop, the scheduler and the
model are the engine core's, the same that the server runs in a process of its own.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Sequence as SequenceOf
from concurrent.futures import wait
from types import TracebackType
from typing import Any, NoReturn, Self

from atom import envs
from atom.config import Config
from atom.model_engine.engine_core import IN_PROCESS_EXECUTOR, EngineCore
from atom.model_engine.messages import EngineRequest, EngineStats
from atom.model_engine.offline_request import OfflineRequest, StreamCallback
from atom.model_engine.sequence import Sequence
from atom.sampling_params import SamplingParams
from atom.tokenizer import Tokenizer

Prompt = str | SequenceOf[int]
OneOrMore = SamplingParams | SequenceOf[SamplingParams]


class LLMEngine:
    """A model that is loaded and ready. Not safe to use from several threads at once.

    >>> with LLMEngine("atom-tiny") as engine:
    ...     [answer] = engine.generate(["Hello"], SamplingParams(max_tokens=8))
    """

    def __init__(self, model: str, **kwargs: Any) -> None:
        """`kwargs` are the engine's settings (docs/settings.md). TypeError: an unknown one; ValueError: a bad value."""
        config = Config.resolve(model, **kwargs)
        self._set_up(config, Tokenizer.load(config.model_path, config.trust_remote_code), IN_PROCESS_EXECUTOR)

    @classmethod
    def from_config(cls, config: Any, tokenizer: Tokenizer, executor: str = IN_PROCESS_EXECUTOR) -> Self:
        """An engine over an executor named by a dotted string; `config` needs what that executor and the core read."""
        engine = cls.__new__(cls)
        engine._set_up(config, tokenizer, executor)
        return engine

    def _set_up(self, config: Any, tokenizer: Tokenizer, executor: str) -> None:
        self.config = config
        self.tokenizer = tokenizer
        self._core: EngineCore | None = EngineCore.create(config, executor)
        self._requests: dict[str, OfflineRequest] = {}
        self._ended: list[Sequence] = []
        self._ids = itertools.count()

    def generate(self, prompts: Prompt | SequenceOf[Prompt], sampling_params: OneOrMore) -> list[dict[str, Any]]:
        """Complete every prompt; one entry a prompt, in their order.

        prompts: texts or lists of token ids; a single one is a list of one. sampling_params: one for all, or one each.
        Entries: text, token_ids, latency, finish_reason ("stop", "length"), num_tokens_input, num_tokens_output, ttft,
        tpot (times in seconds), and logprobs and prompt_logprobs (lists of TokenLogprobs) where asked for.
        ValueError when a prompt can never run here; then nothing has been started.
        """
        ids = self.add_request(as_prompts(prompts), sampling_params)
        mine = [self._requests[request_id] for request_id in ids]
        waiting = {request.sequence.request_id for request in mine}
        try:
            while waiting:
                for sequence in self._step():
                    if sequence.request_id in waiting:
                        waiting.remove(sequence.request_id)
                    else:
                        self._ended.append(sequence)
        finally:
            for request_id in waiting:  # left behind by an exception
                self._requests.pop(request_id, None)
            self._running_core().abort(list(waiting))
        return [request.summary() for request in mine]

    def add_request(
        self,
        prompt_or_tokens_list: SequenceOf[Prompt],
        sampling_params_list: OneOrMore,
        stream_callback: StreamCallback | None = None,
    ) -> list[str]:
        """Queue requests for `step` and return their ids. `stream_callback` gets a RequestOutput for each piece.

        ValueError when one of them can never run here; then none is queued.
        """
        core = self._running_core()
        arrived = time.monotonic()
        requests = [
            EngineRequest(str(next(self._ids)), self._encode(prompt), sampling, arrived)
            for prompt, sampling in pair(prompt_or_tokens_list, sampling_params_list)
        ]
        for request in requests:
            core.check(request)
        for request in requests:
            offline = OfflineRequest(core.add(request), self.tokenizer, arrived, stream_callback)
            self._requests[request.request_id] = offline
        return [request.request_id for request in requests]

    def step(self) -> list[Sequence]:
        """One turn of the engine; returns the sequences that ended, each once, with `text` and `finish_reason`."""
        ended, self._ended = self._ended, []
        return ended + self._step()

    def _step(self) -> list[Sequence]:
        core = self._running_core()
        ended: list[Sequence] = []
        now = None
        for delta in core.step():
            request = self._requests.get(delta.request_id)
            if request is None:
                continue
            now = now or time.monotonic()
            if request.take(delta, now):
                core.abort([delta.request_id])
            if request.finish_reason is not None:
                del self._requests[delta.request_id]
                ended.append(request.ended_sequence())
        return ended

    def is_finished(self) -> bool:
        """Whether every request has ended and been returned, so that `while not engine.is_finished()` ends."""
        return not self._requests and not self._ended

    def abort(self, request_ids: SequenceOf[str]) -> None:
        """End requests and free what they hold at once; the next `step` returns them. Unknown ids are ignored."""
        self._running_core().abort(list(request_ids))

    def stats(self) -> EngineStats:
        """Gauges and counters of the engine at this moment."""
        return self._running_core().stats()

    def start_profile(self) -> None:
        """Begin to record a trace into `torch_profiler_dir`; docs/profiling.md says what it holds.

        EngineCallError: no folder was given, or a trace is recorded or written already. TimeoutError: see stop_profile.
        """
        self._call("start_profile")

    def stop_profile(self) -> list[dict[str, Any]]:
        """End the recording and write it; one entry a worker: trace_dir, file, elapsed (seconds that it covers).

        EngineCallError: nothing is recorded. TimeoutError after ATOM_PROFILER_TIMEOUT seconds; the writing goes on.
        """
        traces: list[dict[str, Any]] = self._call("stop_profile")
        return traces

    def print_mtp_statistics(self) -> NoReturn:
        """Speculative decoding is not there yet."""
        raise _missing("print_mtp_statistics", "speculative decoding (--method)")

    def close(self) -> None:
        """Release the device and the memory. Safe to call twice; nothing else may be called after."""
        core, self._core = self._core, None
        if core is not None:
            core.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _call(self, name: str) -> Any:
        seconds = envs.ATOM_PROFILER_TIMEOUT
        future = self._running_core().call(name, {})
        if not wait([future], seconds).done:
            raise TimeoutError(f"{name} has taken longer than ATOM_PROFILER_TIMEOUT, {seconds:g} s, and goes on")
        return json.loads(future.result())

    def _running_core(self) -> EngineCore:
        if self._core is None:
            raise RuntimeError("the engine is closed")
        return self._core

    def _encode(self, prompt: Prompt) -> list[int]:
        return self.tokenizer.encode(prompt) if isinstance(prompt, str) else list(prompt)


def as_prompts(prompts: Prompt | SequenceOf[Prompt]) -> list[Prompt]:
    """A list of prompts; one text or one list of token ids becomes a list of one."""
    if isinstance(prompts, str):
        return [prompts]
    texts = [item for item in prompts if not isinstance(item, int)]
    tokens = [item for item in prompts if isinstance(item, int)]
    if texts and tokens:
        raise TypeError("prompts mix token ids with whole prompts")
    return [tokens] if tokens else list(texts)


def pair(prompts: SequenceOf[Prompt], sampling: OneOrMore) -> list[tuple[Prompt, SamplingParams]]:
    """Each prompt with its sampling parameters. ValueError when the numbers differ."""
    if isinstance(sampling, SamplingParams):
        return [(prompt, sampling) for prompt in prompts]
    if len(sampling) != len(prompts):
        raise ValueError(f"{len(prompts)} prompts came with {len(sampling)} sampling parameters")
    return list(zip(prompts, sampling, strict=True))


def _missing(name: str, feature: str) -> NotImplementedError:
    return NotImplementedError(f"{name} needs {feature}, which is not implemented yet")
