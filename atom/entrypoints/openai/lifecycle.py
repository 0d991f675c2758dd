"""From a bound socket to an exit code: signals, the drain, and the death of the engine.

Owns when the server stops. SIGTERM or SIGINT: new requests get 503, running ones may finish within the drain time,
exit code 0; a second signal stops the waiting. A dead engine: /health says so for a moment, then exit code 1. Knows
nothing of requests beyond that they run.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import time
from collections.abc import Iterator

import uvicorn
from starlette.types import ASGIApp

from atom.entrypoints.openai.connection import Connection
from atom.entrypoints.openai.serving import ServingContext

logger = logging.getLogger(__name__)

# How long a server with a dead engine still answers, so that whoever polls /health sees why it goes. A signal ends it.
DEATH_NOTICE = 2.0
# Connections that may wait to be taken.
BACKLOG = 2048
# How long cancelled requests get to write their last frame.
LAST_FRAMES = 5
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class StopSignals:
    """Counts the signals that ask the process to stop. `first` and `second` are set as they come."""

    def __init__(self) -> None:
        self.first = asyncio.Event()
        self.second = asyncio.Event()

    @contextlib.contextmanager
    def installed(self) -> Iterator[StopSignals]:
        """Handle the signals inside the block, in the running loop of the main thread."""
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._on_signal, number)
        try:
            yield self
        finally:
            for number in _SIGNALS:
                loop.remove_signal_handler(number)

    def _on_signal(self, number: int) -> None:
        if self.first.is_set():
            self.second.set()
        else:
            logger.info("got %s; running requests may finish, a second signal cuts them", signal.Signals(number).name)
            self.first.set()


class _Server(uvicorn.Server):
    """Uvicorn, with the signals left to StopSignals."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def bind_socket(host: str, port: int) -> socket.socket:
    """An address, taken before the model loads: one that is in use is refused at once (OSError).

    It is to listen before anyone is told of it: clients who come before `serve` then wait instead of being refused.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named, since asyncio sets TCP_NODELAY only then; without it every answer waits 40 ms for an ACK.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
    except OSError:
        bound.close()
        raise
    bound.set_inheritable(False)
    return bound


async def serve(app: ASGIApp, serving: ServingContext, listening: socket.socket, signals: StopSignals) -> int:
    """Serve until told to stop or until the engine dies. Returns the process's exit code."""
    server = _Server(_uvicorn_config(app, serving))
    running = asyncio.create_task(server.serve(sockets=[listening]))
    stopped = asyncio.create_task(signals.first.wait())
    died = asyncio.create_task(serving.engine.died.wait())
    try:
        await asyncio.wait((running, stopped, died), return_when=asyncio.FIRST_COMPLETED)
        exit_code = 0
        if serving.engine.died.is_set():
            exit_code = 1
            logger.error("the engine is dead; the server stops in %g s", DEATH_NOTICE)
            await asyncio.wait((stopped,), timeout=DEATH_NOTICE)
        elif stopped.done():
            await _drain(serving, signals)
        serving.work.cancel_all()
        server.should_exit = True
        await running
        return exit_code
    finally:
        for task in (running, stopped, died):
            task.cancel()


async def _drain(serving: ServingContext, signals: StopSignals) -> None:
    """Refuse new requests, and wait for the running ones as long as --drain-timeout allows."""
    serving.is_draining = True
    deadline = time.monotonic() + serving.server.drain_timeout
    while len(serving.work) and time.monotonic() < deadline and not signals.second.is_set():
        if serving.engine.died.is_set():
            return
        await asyncio.sleep(0.05)
    if len(serving.work):
        logger.warning("%d requests are cut short", len(serving.work))


def _uvicorn_config(app: ASGIApp, serving: ServingContext) -> uvicorn.Config:
    options = serving.server
    return uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=not options.disable_uvicorn_access_log,
        timeout_keep_alive=options.timeout_keep_alive,
        timeout_graceful_shutdown=LAST_FRAMES,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
    )
