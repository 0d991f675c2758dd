"""An engine that plays scripts instead of running a model.

Owns the playing: pace, faults, limits, made-up log probabilities. Obeys the interface of the real engine client, so
that everything above it is the real server. One process, no threads.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextvars import ContextVar
from typing import Any

from atom.entrypoints.scripted.script import Script
from atom.entrypoints.scripted.tokens import ScriptedTokenizer
from atom.model_engine.messages import (
    EngineCallError,
    EngineInfo,
    EngineRequest,
    EngineStats,
    TokenDelta,
    TokenLogprobs,
)
from atom.model_engine.token_stream import EngineDeadError

# The script of the HTTP request that is being answered, where one was chosen by name.
current_script: ContextVar[Script | None] = ContextVar("current_script", default=None)


class ScriptedEngineClient:
    """Plays `current_script`, or without one the scripts in turn. `requests` keeps the last requests, oldest first."""

    def __init__(
        self, scripts: Sequence[Script], tokenizer: ScriptedTokenizer, *, max_model_len: int = 4096, vocab_size: int = 0
    ) -> None:
        self.scripts = list(scripts)
        self.requests: deque[EngineRequest] = deque(maxlen=1000)
        self.died = asyncio.Event()
        self._tokenizer = tokenizer
        self._next = 0
        self._running: dict[str, bool] = {}  # request id -> whether it was aborted
        self._num_finished = 0
        self._num_aborted = 0
        self._num_steps = 0
        self._num_generated = 0
        self.info = EngineInfo(
            model="scripted",
            architecture="Scripted",
            device="none",
            dtype="none",
            max_model_len=max_model_len,
            vocab_size=vocab_size or tokenizer.vocab_size,
            eos_token_ids=[] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id],
            block_size=16,
            num_blocks=65536,
            max_num_seqs=1024,
        )

    async def start(self) -> None:
        """Nothing to start."""

    @property
    def is_alive(self) -> bool:
        """See EngineClient."""
        return not self.died.is_set()

    @property
    def stats(self) -> EngineStats:
        """See EngineClient; a block is a running sequence."""
        return EngineStats(
            num_running=len(self._running),
            num_blocks_total=self.info.num_blocks,
            num_blocks_used=len(self._running),
            generation_tokens=self._num_generated,
            steps=self._num_steps,
            requests_finished=self._num_finished,
            requests_aborted=self._num_aborted,
        )

    async def generate(self, request: EngineRequest) -> AsyncGenerator[TokenDelta, None]:
        """Play a script for this request; see EngineClient."""
        script = current_script.get() or self._in_turn()
        self.requests.append(request)
        self._running[request.request_id] = False
        is_finished = False
        try:
            async for delta in self._play(script, request):
                is_finished = delta.finish_reason is not None
                yield delta
        finally:
            del self._running[request.request_id]
            self._num_finished += is_finished
            self._num_aborted += not is_finished

    def abort(self, request_id: str) -> None:
        """End a running sequence at its next token."""
        if request_id in self._running:
            self._running[request_id] = True

    async def call(self, name: str, **arguments: str | int | float | bool | None) -> Any:
        """No operation exists, profiling among them."""
        if name in ("start_profile", "stop_profile"):
            raise EngineCallError("the scripted engine has no profiler", "profiler_disabled")
        raise EngineCallError(f"the scripted engine has no operation {name!r}")

    async def shutdown(self, drain_timeout: float = 0.0) -> None:
        """Nothing to stop."""

    def die(self) -> None:
        """Fail as an engine process fails: every running sequence ends with EngineDeadError."""
        self.died.set()

    def _in_turn(self) -> Script:
        script = self.scripts[self._next % len(self.scripts)]
        self._next += 1
        return script

    async def _play(self, script: Script, request: EngineRequest) -> AsyncIterator[TokenDelta]:
        ids = self._tokenizer.ids_of(script)
        limit = request.sampling.max_tokens
        finish_reason = "length" if len(ids) > limit else script.finish_reason
        ids = ids[:limit]
        await self._pause(script.first_delay)
        first = self._first_fields(script, request)
        if not ids:
            yield TokenDelta(request.request_id, [], finish_reason=finish_reason, **first)
            return
        for at in range(0, len(ids), script.burst):
            if at:
                await self._pause(script.delay)
            if self._running[request.request_id]:
                yield TokenDelta(request.request_id, [], finish_reason="abort", **first)
                return
            arrived = ids[at : at + script.burst]
            if script.fault_after is not None and script.fault_after < at + len(arrived):
                arrived = arrived[: script.fault_after - at]
                if arrived:
                    yield self._delta(request, arrived, None, first)
                if script.fault == "die":
                    self.die()
                    raise EngineDeadError("the script says so")
                yield TokenDelta(request.request_id, [], finish_reason="error", error="The script ends in a fault.")
                return
            is_last = at + script.burst >= len(ids)
            yield self._delta(request, arrived, finish_reason if is_last else None, first)
            first = {}

    def _delta(self, request: EngineRequest, ids: list[int], finish_reason: Any, first: dict[str, Any]) -> TokenDelta:
        num_top = request.sampling.logprobs
        logprobs = None if num_top is None else [_made_up(token_id, num_top) for token_id in ids]
        self._num_steps += 1
        self._num_generated += len(ids)
        return TokenDelta(request.request_id, ids, finish_reason=finish_reason, logprobs=logprobs, **first)

    def _first_fields(self, script: Script, request: EngineRequest) -> dict[str, Any]:
        """What only a sequence's first delta carries."""
        prompt = request.prompt_token_ids
        fields: dict[str, Any] = {"num_cached_tokens": min(script.cached_tokens, max(0, len(prompt) - 1))}
        num_top = request.sampling.prompt_logprobs
        if num_top is not None:
            fields["prompt_logprobs"] = [None, *(_made_up(token_id, num_top) for token_id in prompt[1:])]
        return fields

    async def _pause(self, seconds: float) -> None:
        """Wait, but not beyond the engine's death."""
        if seconds > 0:
            try:
                await asyncio.wait_for(self.died.wait(), seconds)
            except TimeoutError:
                return
        else:
            await asyncio.sleep(0)
        if self.died.is_set():
            raise EngineDeadError("the engine has died")


def _made_up(token_id: int, num_top: int) -> TokenLogprobs:
    """Probabilities 1/2, 1/4, 1/8, … for this token and the ids before it."""
    logprobs = [-0.6931471805599453 * place for place in range(1, num_top + 1)]
    ids = [token_id - place if token_id >= place else token_id + place for place in range(num_top)]
    return TokenLogprobs(token_id, -0.6931471805599453, 1, ids, logprobs)
