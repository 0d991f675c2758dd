"""A server in a process of its own, for benchmarks that measure through HTTP."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

START_TIMEOUT = 120.0


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def live_server(model: str | Path, flags: Sequence[str] = (), cores: set[int] | None = None) -> Iterator[str]:
    """The base URL of a ready server of ours. cores: the only ones that it may use. RuntimeError: it does not start."""
    port = free_port()
    command = [sys.executable, "-m", "atom.entrypoints.openai_server", "--model", str(model), *flags]
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores or before)  # inherited, by every thread and process of the server's
    try:
        process = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--server-port", str(port)], stderr=subprocess.PIPE, text=True
        )
    finally:
        os.sched_setaffinity(0, before)
    url = f"http://127.0.0.1:{port}"
    log: deque[str] = deque(maxlen=20)
    threading.Thread(target=_keep, args=(process, log), daemon=True).start()
    try:
        _wait(process, f"{url}/health", log)
        yield url
    finally:
        process.terminate()
        process.wait()


def _keep(process: subprocess.Popen[str], log: deque[str]) -> None:
    """Drain the server's log, of which only the end is ever read."""
    log.extend(process.stderr or ())


def _wait(process: subprocess.Popen[str], url: str, log: deque[str]) -> None:
    deadline = time.monotonic() + START_TIMEOUT
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5) as response:
            if response.status == 200:
                return
        time.sleep(0.05)
    raise RuntimeError("the server did not start:\n" + "".join(log))
