"""The sockets between the API process and the engine process: msgspec structs as msgpack over ZMQ, one direction each.

Owns sockets, addresses and encoding. Knows neither asyncio nor what the messages mean. Both queues are without limit: a
sender never blocks, and what may pile up is bounded by the requests in flight.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import zmq
from zmq.utils.monitor import recv_monitor_message

from atom.model_engine.messages import FromEngine, ToEngine

_encode = msgspec.msgpack.Encoder().encode
_decode_to_engine = msgspec.msgpack.Decoder(ToEngine).decode
_decode_from_engine = msgspec.msgpack.Decoder(FromEngine).decode

# Longest path of a Unix socket (sun_path), less the null byte, on the strictest system.
_MAX_SOCKET_PATH = 103

# Seconds that an engine's last messages may take to leave it, and to arrive. They take milliseconds, unless the API
# process is held up.
_LAST_WORDS = 10.0


class EngineAddresses(msgspec.Struct, frozen=True):
    """Where the two sockets meet: `to_engine` carries ToEngine messages, `from_engine` FromEngine messages."""

    to_engine: str
    from_engine: str


class ClientSockets:
    """The API process's ends. `fd` is readable when a message may have come (edge-triggered: receive all there are)."""

    def __init__(self) -> None:
        self._context = zmq.Context()
        self._folder: Path | None = None
        self._to_engine = _socket(self._context, zmq.PUSH)
        self._from_engine = _socket(self._context, zmq.PULL)
        self._connections = self._from_engine.get_monitor_socket(zmq.EVENT_ACCEPTED | zmq.EVENT_DISCONNECTED)
        self.addresses = self._bind()
        self.fd: int = self._from_engine.fileno()

    def _bind(self) -> EngineAddresses:
        """Unix sockets in a folder that only this user can enter; loopback TCP where there are none."""
        if sys.platform != "win32":
            folder = Path(tempfile.mkdtemp(prefix="atom-"))
            if len(str(folder / "from_engine")) <= _MAX_SOCKET_PATH:
                self._folder = folder
                addresses = EngineAddresses(f"ipc://{folder}/to_engine", f"ipc://{folder}/from_engine")
                self._to_engine.bind(addresses.to_engine)
                self._from_engine.bind(addresses.from_engine)
                return addresses
            folder.rmdir()
        ports = [socket.bind_to_random_port("tcp://127.0.0.1") for socket in (self._to_engine, self._from_engine)]
        return EngineAddresses(*(f"tcp://127.0.0.1:{port}" for port in ports))

    @property
    def is_connected(self) -> bool:
        """Whether the engine listens, which may come after its first message: each direction connects on its own."""
        return bool(self._to_engine.poll(0, zmq.POLLOUT))

    def send(self, message: ToEngine) -> None:
        """Queue a message for the engine; never waits. Dropped when none is connected: before that, or it has died."""
        with contextlib.suppress(zmq.Again):
            self._to_engine.send(_encode(message), zmq.NOBLOCK)

    def receive_all(self) -> Iterator[FromEngine]:
        """Every message that has arrived, without waiting."""
        return (_decode_from_engine(frame) for frame in _frames(self._from_engine))

    def wait_for_last_words(self) -> None:
        """Return when everything is there to be received that an engine sent which has exited since.

        What it sent may be on its way still: another thread takes it from the system, and may be slow. The one method
        that may be called from a thread of its own.
        """
        num_open, deadline = 0, time.monotonic() + _LAST_WORDS
        while self._connections.poll(max(0, int(1000 * (deadline - time.monotonic()))) if num_open else 0):
            num_open += 1 if recv_monitor_message(self._connections)["event"] == zmq.EVENT_ACCEPTED else -1

    def unlink(self) -> None:
        """Remove the sockets' names, which a connected engine needs no more: nothing is left, however this ends."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def close(self) -> None:
        """Close at once; what was not delivered is dropped."""
        self._from_engine.disable_monitor()
        self._connections.close(linger=0)
        self._to_engine.close(linger=0)
        self._from_engine.close(linger=0)
        self._context.term()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


class EngineSockets:
    """The engine process's ends."""

    def __init__(self, addresses: EngineAddresses) -> None:
        self._context = zmq.Context()
        self._to_engine = _socket(self._context, zmq.PULL)
        self._from_engine = _socket(self._context, zmq.PUSH)
        self._to_engine.connect(addresses.to_engine)
        self._from_engine.connect(addresses.from_engine)

    def send(self, message: FromEngine) -> None:
        """Queue a message for the API process; never waits."""
        self._from_engine.send(_encode(message), zmq.NOBLOCK)

    def receive_all(self) -> Iterator[ToEngine]:
        """Every message that has arrived, without waiting."""
        return (_decode_to_engine(frame) for frame in _frames(self._to_engine))

    def wait(self, timeout: float | None) -> bool:
        """Return when a message has arrived or after `timeout` seconds; whether one has."""
        return bool(self._to_engine.poll(None if timeout is None else max(0, int(timeout * 1000))))

    def close(self) -> None:
        """Close after what was sent has left, which an API process that is held up may delay."""
        self._to_engine.close(linger=0)
        self._from_engine.close(linger=int(1000 * _LAST_WORDS))
        self._context.term()


def _socket(context: zmq.Context[zmq.Socket[bytes]], kind: int) -> zmq.Socket[bytes]:
    socket = context.socket(kind)
    socket.setsockopt(zmq.SNDHWM, 0)
    socket.setsockopt(zmq.RCVHWM, 0)
    return socket


def _frames(socket: zmq.Socket[bytes]) -> Iterator[bytes]:
    while True:
        try:
            frame = socket.recv(zmq.NOBLOCK)
        except zmq.Again:
            return
        yield frame
