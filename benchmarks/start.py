"""How soon `make serve` answers: from the command to the first answered request, with the shipped model, files warm.

Also what the API process weighs then. The best of a few starts is reported: what else the machine does only adds to it.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.request
from typing import Any

import psutil

NUM_STARTS = 3
BAR_SECONDS = 5.0
BAR_MEGABYTES = 250.0


def run() -> list[dict[str, Any]]:
    """Two rows: seconds and megabytes."""
    starts = [_start() for _ in range(NUM_STARTS + 1)][1:]  # the first one reads the files
    seconds = min(start[0] for start in starts)
    megabytes = max(start[1] for start in starts)
    return [
        {"name": "command to first answer, atom-tiny", "value": seconds, "unit": "s", "bar": f"< {BAR_SECONDS:g}"},
        {"name": "API process, resident", "value": megabytes, "unit": "MB", "bar": f"< {BAR_MEGABYTES:g}"},
    ]


def _start() -> tuple[float, float]:
    """Start a server, ask it once, stop it. Seconds until the answer, and the API process's resident megabytes."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    flags = ["--model", "atom-tiny", "--host", "127.0.0.1", "--server-port", str(port)]
    body = json.dumps({"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 8}).encode()
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/chat/completions", body, {"content-type": "application/json"}
    )
    started = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "atom.entrypoints.openai_server", *flags], stderr=subprocess.DEVNULL
    )
    try:
        while process.poll() is None:
            try:
                with urllib.request.urlopen(request, timeout=60) as response:
                    response.read()
                break
            except OSError:
                time.sleep(0.01)
        else:
            raise RuntimeError("the server did not start")
        return time.monotonic() - started, psutil.Process(process.pid).memory_info().rss / 1e6
    finally:
        process.terminate()
        process.wait()
