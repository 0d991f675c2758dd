"""A process of its own for the engine: how it starts, and that it never outlives its parent.

The child runs `python -m atom.model_engine.engine_process`, reads what to do from its standard input, and keeps that
pipe as its lifeline: it closes when the parent is gone, whatever that died of. On Linux the kernel is asked as well.
Nothing of the parent's main module is imported, so a user's script needs no guard and the child starts quickly. Knows
neither messages nor the engine: what runs is named by a dotted string.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import logging
import os
import pickle
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any, BinaryIO

_PR_SET_PDEATHSIG = 1
_LENGTH = struct.Struct("<Q")


class ChildProcess:
    """A running `entry(*arguments)`, `entry` being "module:function". `on_exit` gets the exit code, in a thread.

    The arguments are pickled: they go through a private pipe from the process that made them, as multiprocessing's do.
    """

    def __init__(self, entry: str, arguments: tuple[Any, ...], on_exit: Callable[[int], None]) -> None:
        command = [sys.executable, "-m", "atom.model_engine.engine_process"]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)
        payload = pickle.dumps((entry, arguments, os.getpid(), logging.getLogger().getEffectiveLevel()))
        self._exited = threading.Event()
        threading.Thread(target=self._watch, args=(on_exit,), name="engine-watch", daemon=True).start()
        assert self._process.stdin is not None  # for the type checker: stdin=PIPE
        self._lifeline = self._process.stdin
        with contextlib.suppress(BrokenPipeError):  # it died at once; `on_exit` says so
            self._lifeline.write(_LENGTH.pack(len(payload)) + payload)
            self._lifeline.flush()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it has not exited yet."""
        return not self._exited.is_set()

    def kill(self) -> None:
        """End it at once; nothing happens when it has ended already."""
        self._process.kill()

    def close(self) -> None:
        """Let go of a process that has ended."""
        with contextlib.suppress(BrokenPipeError):
            self._lifeline.close()

    def _watch(self, on_exit: Callable[[int], None]) -> None:
        code = self._process.wait()
        self._exited.set()
        on_exit(code)


def resolve(name: str) -> Any:
    """What a dotted string "module:attribute" names."""
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise ValueError(f"{name!r} is not of the form module:attribute")
    return getattr(importlib.import_module(module), attribute)


def main() -> None:
    """The child's side."""
    lifeline = os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    (length,) = _LENGTH.unpack(lifeline.read(_LENGTH.size))
    entry, arguments, parent, log_level = pickle.loads(lifeline.read(length))
    _end_with_parent(lifeline, parent)
    # The parent decides when the engine stops; a terminal's Ctrl-C and a service manager's signal reach both at once.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    logging.basicConfig(level=log_level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    resolve(entry)(*arguments)


def _end_with_parent(lifeline: BinaryIO, parent: int) -> None:
    def watch() -> None:
        lifeline.read(1)  # returns when the parent's end of the pipe is closed
        os._exit(1)

    threading.Thread(target=watch, name="lifeline", daemon=True).start()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the kernel knew
            os._exit(1)


if __name__ == "__main__":
    main()
