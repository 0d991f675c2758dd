"""The engine's loop: drain requests, schedule, launch, apply the previous result, emit.

Owns the order of these. Knows neither text nor tensors: the executor, named by a dotted string, runs the model. Used in
the caller's process by the offline engine, and behind sockets (`run`) by the server.
"""

from __future__ import annotations

import gc
import logging
import time
from concurrent.futures import Future
from typing import Any

from atom.model_engine.block_manager import BlockManager
from atom.model_engine.engine_process import resolve
from atom.model_engine.executor.base import Executor
from atom.model_engine.ipc import EngineAddresses, EngineSockets
from atom.model_engine.messages import (
    AbortRequests,
    EngineCallError,
    EngineDead,
    EngineInfo,
    EngineReady,
    EngineRequest,
    EngineStats,
    Shutdown,
    StepOutput,
    TokenDelta,
    UtilityCall,
    UtilityReply,
)
from atom.model_engine.preparing import PreparingRequests
from atom.model_engine.scheduler import Scheduler, UnservableRequest
from atom.model_engine.scheduler_limits import SchedulerLimits
from atom.model_engine.sequence import Sequence
from atom.model_engine.throughput_log import ThroughputLog

logger = logging.getLogger(__name__)

# What may stop a start through no fault of the engine: told to the user in one line, without a stack trace.
USER_ERRORS = (ValueError, TypeError, OSError, NotImplementedError, ImportError, MemoryError)

# Seconds between two looks at a named operation while there is nothing else to do.
CALL_POLL = 0.01
# The same for a grammar that is being compiled, which takes a millisecond or a few.
PREPARING_POLL = 0.001

IN_PROCESS_EXECUTOR = "atom.model_engine.executor.in_process:InProcessExecutor"


class EngineCore:
    """A scheduler and an executor, stepped by the caller."""

    def __init__(
        self, executor: Executor, info: EngineInfo, scheduler: Scheduler, log: ThroughputLog | None = None
    ) -> None:
        self.executor = executor
        self.info = info
        self.scheduler = scheduler
        self._log = log
        self._pending: list[TokenDelta] = []
        self._preparing = PreparingRequests()
        # The newest step in flight has prompts, and the executor wants no other behind it.
        self._is_waiting = False
        self._step = self._step_overlapped if executor.max_in_flight > 1 else self._step_plain

    @classmethod
    def create(cls, config: Any, executor: str = IN_PROCESS_EXECUTOR, owns_process: bool = False) -> EngineCore:
        """Start the executor over `config` and size the scheduler by what it reports.

        owns_process: this process is the engine's alone.
        """
        running: Executor = resolve(executor)(config)
        running.owns_process = owns_process
        try:
            info, space = running.start()
            limits = SchedulerLimits(
                max_num_seqs=config.max_num_seqs,
                max_num_batched_tokens=config.max_num_batched_tokens,
                max_model_len=info.max_model_len,
                eos_token_ids=frozenset(info.eos_token_ids),
                delay_factor=config.scheduler_delay_factor,
            )
            blocks = BlockManager(space.num_blocks, space.block_size, config.enable_prefix_caching)
            log = ThroughputLog(config.throughput_log_interval) if config.enable_log_stats else None
            return cls(running, info, Scheduler(limits, blocks), log)
        except BaseException:
            running.shutdown()
            raise

    @property
    def has_work(self) -> bool:
        """Whether `step` has anything to do before another request comes."""
        return self.scheduler.has_unfinished or self.scheduler.num_in_flight > 0 or bool(self._pending)

    @property
    def is_preparing(self) -> bool:
        """Whether requests wait for something that goes on beside the steps."""
        return len(self._preparing) > 0

    @property
    def patience(self) -> float:
        """Seconds that `step` had better not be called yet, unless another request comes."""
        return self.scheduler.patience() if self.executor.waits_for_prompts else 0.0

    @property
    def request_ids(self) -> list[str]:
        """Every request that has not ended."""
        return [*self._preparing.ids, *self.scheduler.sequences]

    def add(self, request: EngineRequest) -> Sequence:
        """Queue a request. UnservableRequest when it can never run, ValueError when its id is in use.

        Waits for its grammar to be compiled, where it has one.
        """
        self.check(request)
        if request.sampling.grammar is not None:
            self.executor.prepare(request.sampling.grammar).result()
        return self.scheduler.add(request)

    def add_when_ready(self, request: EngineRequest) -> None:
        """`add` without waiting: a request with a grammar is queued, or refused, by a later step."""
        if request.sampling.grammar is None:
            self.add(request)
            return
        self.check(request)
        if request.request_id in self._preparing:
            raise ValueError(f"request id {request.request_id!r} is already in use")
        self._preparing.add(request, self.executor.prepare(request.sampling.grammar))

    def check(self, request: EngineRequest) -> None:
        """UnservableRequest when the request can never run here."""
        check_token_ids(request, self.info.vocab_size)
        self.scheduler.check_length(request)

    def refuse(self, request_id: str, error: str) -> None:
        """Answer a request that can not be queued with an error delta, which comes with the next step."""
        self._pending.append(TokenDelta(request_id, [], "error", error=error))

    def abort(self, request_ids: list[str]) -> None:
        """End sequences now; unknown ids are ignored. Their last delta comes with the next step."""
        for request_id in request_ids:
            delta = self.scheduler.abort(request_id)
            if delta is not None:
                self._pending.append(delta)
            elif self._preparing.remove(request_id):
                self._pending.append(TokenDelta(request_id, [], "abort"))

    def step(self) -> list[TokenDelta]:
        """One turn of the loop; an empty list when no result was due."""
        if self._preparing:
            self._queue_prepared()
        pending = self.take_pending()
        deltas = pending + self._step() if pending else self._step()
        if self._log is not None and deltas:
            self._log.step(self.stats())
        return deltas

    def _queue_prepared(self) -> None:
        for request, error in self._preparing.take_ready():
            if error is not None:
                self.refuse(request.request_id, describe(error))
                continue
            try:
                self.scheduler.add(request)
            except ValueError as refusal:
                self.refuse(request.request_id, str(refusal))

    def take_pending(self) -> list[TokenDelta]:
        """The deltas of refused and aborted requests since the last step."""
        pending, self._pending = self._pending, []
        return pending

    def _step_plain(self) -> list[TokenDelta]:
        batch = self.scheduler.schedule()
        if batch is None:
            return []
        self.executor.launch(batch)
        return self.scheduler.apply(self.executor.collect())

    def _step_overlapped(self) -> list[TokenDelta]:
        """As the plain step, but a result is taken only when the next step is already on its way to the device."""
        batch = None if self._is_waiting else self.scheduler.schedule()
        self._is_waiting = False
        if batch is not None:
            self.executor.launch(batch)
            self._is_waiting = self.executor.waits_for_prompts and batch.num_decodes < batch.num_rows
        num_in_flight = self.scheduler.num_in_flight
        if num_in_flight == 0 or (batch is not None and num_in_flight < self.executor.max_in_flight):
            return []
        return self.scheduler.apply(self.executor.collect())

    def stats(self) -> EngineStats:
        """Gauges and counters as they stand."""
        return self.scheduler.stats()

    def call(self, name: str, arguments: dict[str, Any]) -> Future[str]:
        """Begin a named operation of the executor; the future's result is JSON text."""
        return self.executor.call(name, arguments)

    def shutdown(self) -> None:
        """Release the device."""
        self.executor.shutdown()


def check_token_ids(request: EngineRequest, vocab_size: int) -> None:
    """UnservableRequest when the request names a token that the model does not have."""
    ids = request.prompt_token_ids
    if ids and (min(ids) < 0 or max(ids) >= vocab_size):
        wrong = next(token for token in ids if not 0 <= token < vocab_size)
        raise UnservableRequest(f"token id {wrong} of the prompt is outside the vocabulary of {vocab_size}")
    for token in request.sampling.logit_bias or ():
        if not 0 <= token < vocab_size:
            raise UnservableRequest(f"token id {token} of logit_bias is outside the vocabulary of {vocab_size}")


def run(config: Any, executor: str, addresses: EngineAddresses) -> None:
    """The engine process: start, say so, serve until told to stop. Exits 1 after any failure."""
    sockets = EngineSockets(addresses)
    try:
        core = EngineCore.create(config, executor, owns_process=True)
    except Exception as error:
        if not isinstance(error, USER_ERRORS):
            logger.exception("the engine did not start")
        sockets.send(EngineDead(describe(error)))
        sockets.close()
        raise SystemExit(1) from None
    try:
        sockets.send(EngineReady(core.info))
        gc.collect()
        gc.freeze()  # what the start built lives as long as the process; later collections need not walk it
        serve(core, sockets)
    except Exception as error:
        logger.exception("the engine failed")
        sockets.send(EngineDead(describe(error)))
        raise SystemExit(1) from None
    finally:
        core.shutdown()
        sockets.close()


def serve(core: EngineCore, sockets: EngineSockets) -> None:
    """Step the engine over the sockets' messages; returns after a Shutdown."""
    deadline: float | None = None
    calls = OpenCalls(core, sockets)
    while True:
        if not core.has_work:
            if deadline is not None and not core.is_preparing:
                return
            sockets.wait(PREPARING_POLL if core.is_preparing else CALL_POLL if calls.are_open else None)
        deadline = _receive(core, calls, sockets, deadline)
        while deadline is None and (patience := core.patience) and sockets.wait(patience):
            deadline = _receive(core, calls, sockets, deadline)
        calls.answer()
        if deadline is not None and time.monotonic() >= deadline:
            core.abort(core.request_ids)
            sockets.send(StepOutput(core.take_pending(), core.stats()))
            return
        deltas = core.step()
        if deltas:
            sockets.send(StepOutput(deltas, core.stats()))


def _receive(core: EngineCore, calls: OpenCalls, sockets: EngineSockets, deadline: float | None) -> float | None:
    """Handle every message that has arrived; returns the deadline to end by, None where none was set."""
    for message in sockets.receive_all():
        if isinstance(message, Shutdown):
            deadline = time.monotonic() + message.drain_timeout
        else:
            _handle(core, calls, message)
    return deadline


class OpenCalls:
    """The named operations that the executor is at work on; each is owed a reply, and none holds up a step."""

    def __init__(self, core: EngineCore, sockets: EngineSockets) -> None:
        self._core = core
        self._sockets = sockets
        self._futures: dict[int, Future[str]] = {}

    @property
    def are_open(self) -> bool:
        """Whether any reply is still owed."""
        return bool(self._futures)

    def begin(self, call: UtilityCall) -> None:
        """Start it; one that can not start is answered at once."""
        try:
            self._futures[call.call_id] = self._core.call(call.name, call.arguments)
        except Exception as error:
            self._sockets.send(_failed(call.call_id, error))

    def answer(self) -> None:
        """Reply to every one that has ended."""
        for call_id in [call_id for call_id, future in self._futures.items() if future.done()]:
            future = self._futures.pop(call_id)
            error = future.exception()
            reply = UtilityReply(call_id, result=future.result()) if error is None else _failed(call_id, error)
            self._sockets.send(reply)


def _failed(call_id: int, error: BaseException) -> UtilityReply:
    code = error.code if isinstance(error, EngineCallError) else ""
    return UtilityReply(call_id, error=describe(error), code=code)


def _handle(core: EngineCore, calls: OpenCalls, message: EngineRequest | AbortRequests | UtilityCall) -> None:
    if isinstance(message, EngineRequest):
        try:
            core.add_when_ready(message)
        except ValueError as error:
            core.refuse(message.request_id, str(error))
    elif isinstance(message, AbortRequests):
        core.abort(message.request_ids)
    else:
        calls.begin(message)


def describe(error: BaseException) -> str:
    """One line for a user: the message, with the kind of error where the message alone says too little."""
    text = " ".join(str(error).split())
    if text and isinstance(error, (*USER_ERRORS, EngineCallError)):
        return text
    return f"{type(error).__name__}: {text}".rstrip(": ")
