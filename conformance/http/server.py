"""A server with the shipped model, as a user starts it: a process of its own, on a free port, stopped at the end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

MODEL = "atom-tiny"
_START_SECONDS = 120
_STOP_SECONDS = 60
_SERVING = re.compile(r"serving .* at (http://\S+)\n")
_FAULT = re.compile(r" (?:WARNING|ERROR|CRITICAL) |^Traceback", re.MULTILINE)

# Schemathesis finds out first whether NULL bytes may stand in headers. They may not.
_CLIENT = re.compile(r"uvicorn\.error: Invalid HTTP request received")


@dataclass(frozen=True, slots=True)
class Server:
    """A server that answers. `log` is the file that it writes."""

    url: str
    log: Path
    process: subprocess.Popen[bytes]

    def faults(self) -> list[str]:
        """The lines of the log that are warnings, errors or tracebacks, less those that are about a client."""
        lines = self.log.read_text(encoding="utf-8").splitlines()
        return [line for line in lines if _FAULT.search(line) and not _CLIENT.search(line)]


@contextmanager
def started(folder: Path, *, model: str = MODEL, flags: Sequence[str] = ()) -> Iterator[Server]:
    """Start the server; its log and its traces go into `folder`. Raises RuntimeError when it does not come up."""
    log = folder / "server.log"
    command = [sys.executable, "-m", "atom.entrypoints.openai_server", "--model", model, "--host", "127.0.0.1"]
    command += [
        "--server-port",
        "0",
        "--kv-cache-memory",
        "64M",
        "--timeout-keep-alive",
        "600",
        "--torch-profiler-dir",
        str(folder / "traces"),
        *flags,
    ]
    with log.open("w", encoding="utf-8") as stream:
        process = subprocess.Popen(command, stderr=stream, env=os.environ | {"OMP_NUM_THREADS": "1"})
    try:
        yield Server(_address(process, log), log, process)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if found := _SERVING.search(log.read_text(encoding="utf-8")):
            return found[1]
        time.sleep(0.1)
    raise RuntimeError(f"the server did not start:\n{log.read_text(encoding='utf-8')}")
