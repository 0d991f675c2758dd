"""A server of our own for one evaluation: started, waited for, ended.

Owns: the process and its port. Does not know: what is asked.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

_START_SECONDS = 300.0
_STOP_SECONDS = 30.0


@contextmanager
def serve(model: str, flags: Sequence[str]) -> Iterator[str]:
    """The address of a server that answers. RuntimeError when it ends or is not ready in five minutes."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "atom.entrypoints.openai_server", "--model", model, "--host", "127.0.0.1"]
    command += ["--server-port", str(port), "--disable-uvicorn-access-log", *flags]
    process = subprocess.Popen(command)
    try:
        _wait(process, f"http://127.0.0.1:{port}")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(process: subprocess.Popen[bytes], address: str) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with status {process.returncode}")
        try:
            with urllib.request.urlopen(f"{address}/health", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise RuntimeError(f"the server was not ready within {_START_SECONDS:g} s")
