"""The API process's side of an engine: requests in, streams of token deltas out, and what happens when the engine dies.

Owns the table of requests in flight. Knows neither text nor HTTP, and imports no tensor library: the engine's process
is started by a dotted string.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import signal
from collections.abc import AsyncGenerator
from typing import Any, Protocol

from atom.model_engine.engine_process import ChildProcess
from atom.model_engine.ipc import ClientSockets
from atom.model_engine.messages import (
    AbortRequests,
    EngineCallError,
    EngineInfo,
    EngineReady,
    EngineRequest,
    EngineStats,
    FromEngine,
    Shutdown,
    StepOutput,
    TokenDelta,
    UtilityCall,
    UtilityReply,
)
from atom.model_engine.token_stream import EngineDeadError, TokenStream

logger = logging.getLogger(__name__)

ENGINE_ENTRY = "atom.model_engine.engine_core:run"
IN_PROCESS_EXECUTOR = "atom.model_engine.executor.in_process:InProcessExecutor"
# How long a process may take to leave after it has nothing left to do.
EXIT_GRACE = 15.0
# Seconds between two looks at whether an engine that is ready listens too, which it does within a few milliseconds.
CONNECT_POLL = 0.001


class EngineStartError(RuntimeError):
    """The engine could not start; the message is for the user."""


class EngineClient(Protocol):
    """What a server needs of an engine."""

    @property
    def info(self) -> EngineInfo:
        """Facts about the started engine."""

    @property
    def is_alive(self) -> bool:
        """Started and neither dead nor shut down."""

    @property
    def died(self) -> asyncio.Event:
        """Set when the engine ended without being asked to."""

    @property
    def stats(self) -> EngineStats:
        """The latest gauges and counters."""

    async def start(self) -> None:
        """Start the engine and wait until it serves. Raises EngineStartError."""

    def generate(self, request: EngineRequest) -> AsyncGenerator[TokenDelta, None]:
        """Run a request; ends after the delta that has a finish_reason. Closing the generator early aborts the request.

        Raises EngineDeadError when the engine dies or is gone, ValueError when the id is in use.
        """

    def abort(self, request_id: str) -> None:
        """End a request; its stream ends with finish_reason "abort". Unknown ids are ignored."""

    async def call(self, name: str, **arguments: str | int | float | bool | None) -> Any:
        """Run a named operation. Raises EngineCallError, EngineDeadError."""

    async def shutdown(self, drain_timeout: float = 0.0) -> None:
        """Stop the engine; running requests may finish for `drain_timeout` seconds. Safe to call twice."""


class ProcessEngineClient:
    """An engine in a process of its own. Everything here runs in one event loop, the one that called `start`."""

    def __init__(self, config: Any, executor: str = IN_PROCESS_EXECUTOR, entry: str = ENGINE_ENTRY) -> None:
        """`config` is handed to `entry`, and by it to `executor` (both dotted strings), so it must be picklable."""
        self.died = asyncio.Event()
        self.stats = EngineStats()
        self._config = config
        self._executor = executor
        self._entry = entry
        self._info: EngineInfo | None = None
        self._process: ChildProcess | None = None
        self._state = "new"  # new -> starting -> serving -> stopping | dead -> closed
        self._error = "the engine is not started"
        self._streams: dict[str, TokenStream] = {}
        self._calls: dict[int, asyncio.Future[UtilityReply]] = {}
        self._num_calls = 0

    @property
    def info(self) -> EngineInfo:
        """As EngineClient."""
        if self._info is None:
            raise EngineDeadError(self._error)
        return self._info

    @property
    def is_alive(self) -> bool:
        """As EngineClient."""
        return self._state == "serving"

    @property
    def pid(self) -> int | None:
        """Process id of the engine, None before it starts."""
        return None if self._process is None else self._process.pid

    async def start(self) -> None:
        """As EngineClient."""
        if self._state != "new":
            raise RuntimeError("an engine client starts once")
        self._state = "starting"
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[EngineInfo] = self._loop.create_future()
        self._exited = asyncio.Event()
        self._error = "the engine process ended while it started"
        self._sockets = ClientSockets()
        self._loop.add_reader(self._sockets.fd, self._receive)
        arguments = (self._config, self._executor, self._sockets.addresses)
        self._process = ChildProcess(self._entry, arguments, self._exit_in_thread)
        try:
            self._info = await self._ready
        except BaseException:
            await self._close()
            raise
        self._state = "serving"
        self._error = "the engine process ended"

    async def generate(self, request: EngineRequest) -> AsyncGenerator[TokenDelta, None]:
        """As EngineClient."""
        if self._state != "serving":
            raise EngineDeadError(self._error)
        if request.request_id in self._streams:
            raise ValueError(f"request id {request.request_id!r} is already in use")
        stream = self._streams[request.request_id] = TokenStream()
        self._sockets.send(request)
        try:
            while not stream.is_ended:
                yield await stream.next()
        finally:
            if stream.is_complete:
                del self._streams[request.request_id]
            else:  # the id stays taken until its last delta, so that no later request gets what is still on its way
                stream.is_abandoned = True
                self.abort(request.request_id)

    def abort(self, request_id: str) -> None:
        """As EngineClient."""
        if self._state in ("serving", "stopping"):
            self._sockets.send(AbortRequests([request_id]))

    async def call(self, name: str, **arguments: str | int | float | bool | None) -> Any:
        """As EngineClient."""
        if self._state != "serving":
            raise EngineDeadError(self._error)
        self._num_calls += 1
        call_id = self._num_calls
        future = self._calls[call_id] = self._loop.create_future()
        self._sockets.send(UtilityCall(call_id, name, arguments))
        try:
            reply = await future
        finally:
            del self._calls[call_id]
        if reply.error is not None:
            raise EngineCallError(reply.error, reply.code)
        return None if reply.result is None else json.loads(reply.result)

    async def shutdown(self, drain_timeout: float = 0.0) -> None:
        """As EngineClient."""
        if self._state == "serving":
            self._state = "stopping"
            self._error = "the engine is shutting down"
            self._sockets.send(Shutdown(drain_timeout))
            try:
                await asyncio.wait_for(self._exited.wait(), drain_timeout + EXIT_GRACE)
            except TimeoutError:
                logger.warning("the engine process did not stop in time and is killed")
            finally:
                await self._close()
        elif self._state == "dead":
            await self._close()

    async def _close(self) -> None:
        """End the process if it still runs and release everything."""
        assert self._process is not None
        self._state = "closed"
        self._process.kill()
        await self._exited.wait()
        self._loop.remove_reader(self._sockets.fd)
        self._sockets.close()
        self._process.close()

    def _receive(self) -> None:
        """One wake-up for everything that has arrived."""
        for message in self._sockets.receive_all():
            self._handle(message)

    def _handle(self, message: FromEngine) -> None:
        if isinstance(message, StepOutput):
            streams = self._streams
            for delta in message.deltas:
                stream = streams.get(delta.request_id)
                if stream is None:
                    continue
                if not stream.is_abandoned:
                    stream.put(delta)
                elif delta.finish_reason is not None:
                    del streams[delta.request_id]
            if message.stats is not None:
                self.stats = message.stats
        elif isinstance(message, UtilityReply):
            future = self._calls.get(message.call_id)
            if future is not None and not future.done():
                future.set_result(message)
        elif isinstance(message, EngineReady):
            self._connect(message.info)
        else:
            self._end(message.error)

    def _connect(self, info: EngineInfo) -> None:
        """A ready engine serves once it listens too: what was sent before that would be lost."""
        if self._ready.done():
            return
        if self._sockets.is_connected:
            self._sockets.unlink()
            self._ready.set_result(info)
        else:
            self._loop.call_later(CONNECT_POLL, self._connect, info)

    def _exit_in_thread(self, code: int) -> None:
        self._sockets.wait_for_last_words()
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._on_exit, code)

    def _on_exit(self, code: int) -> None:
        if self._state != "closed":
            self._receive()
        self._end(self._error if self._state == "stopping" else f"{self._error} ({describe_exit(code)})")
        self._exited.set()

    def _end(self, error: str) -> None:
        """Nothing more will come from the engine: whoever waits is told so."""
        if not self._ready.done():
            self._ready.set_exception(EngineStartError(error))
        for stream in self._streams.values():
            stream.fail(EngineDeadError(error))
        for future in self._calls.values():
            if not future.done():
                future.set_exception(EngineDeadError(error))
        if self._state == "serving":
            logger.error("the engine is gone: %s", error)
            self._state, self._error = "dead", error
            self.died.set()


def describe_exit(code: int) -> str:
    """What a process's exit code says: "exit code 3", "killed by SIGKILL"."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"
