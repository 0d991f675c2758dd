"""What a streamed token costs the API process: CPU time of a real server over scripted answers, at 64 streams.

The server runs in a process of its own and its CPU time is read from the operating system, so a busy machine changes
the figure little. The engine's playing is included; the pipeline, frames, HTTP and the socket are what is measured.
"""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import psutil

NUM_STREAMS = 64
NUM_TOKENS = 400
BAR_MICROSECONDS = 60.0
_PROSE = "The quick brown fox jumps over the lazy dog, and nobody minds. "


def run() -> list[dict[str, Any]]:
    """One row an endpoint and kind of text."""
    text = (_PROSE * (1 + NUM_TOKENS * 8 // len(_PROSE)))[: NUM_TOKENS * 6]
    call = f"<tool_call>\n<function=write>\n<parameter=text>\n{text}\n</parameter>\n</function>\n</tool_call>"
    scripts = [
        {"id": "prose", "text": text, "chunk": 6},
        {"id": "thought", "text": f"<think>{text}</think>Done.", "chunk": 6},
        {"id": "call", "text": call, "chunk": 6, "format": "qwen"},
    ]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scripts.jsonl"
        file.write_text("".join(json.dumps(script) + "\n" for script in scripts))
        server = _Server(file)
        try:
            for endpoint, script in (
                ("completions", "prose"),
                ("chat", "prose"),
                ("chat", "thought"),
                ("chat", "call"),
            ):
                server.measure(endpoint, script, NUM_STREAMS, 20)  # warm-up
                cost = server.measure(endpoint, script, NUM_STREAMS, NUM_TOKENS)
                name = f"CPU of the API process, {endpoint}, {script}, {NUM_STREAMS} streams"
                rows.append({"name": name, "value": cost, "unit": "us/token", "bar": f"< {BAR_MICROSECONDS:g}"})
        finally:
            server.stop()
    return rows


class _Server:
    """A scripted server in a process of its own."""

    def __init__(self, file: Path) -> None:
        self.port = _free_port()
        arguments = ["--script", str(file), "--port", str(self.port), "--host", "127.0.0.1"]
        command = [sys.executable, "-m", "atom.entrypoints.scripted_server", *arguments, "--disable-uvicorn-access-log"]
        self._process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        self._cpu = psutil.Process(self._process.pid).cpu_times
        for _ in range(300):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=1)
                return
            except OSError:
                time.sleep(0.05)
        raise RuntimeError("the scripted server did not start")

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()

    def measure(self, endpoint: str, script: str, num_streams: int, num_tokens: int) -> float:
        """Microseconds of CPU a token."""
        before = self._cpu()
        asyncio.run(_streams(self.port, _request(endpoint, script, num_tokens), num_streams))
        after = self._cpu()
        seconds = after.user + after.system - before.user - before.system
        return seconds / (num_streams * num_tokens) * 1e6


def _request(endpoint: str, script: str, num_tokens: int) -> bytes:
    body: dict[str, Any] = {"stream": True, "max_tokens": num_tokens}
    if endpoint == "chat":
        path = "/v1/chat/completions"
        body["messages"] = [{"role": "user", "content": "hi"}]
        body["tools"] = [{"type": "function", "function": {"name": "write", "parameters": {"type": "object"}}}]
    else:
        path = "/v1/completions"
        body["prompt"] = "hi"
    raw = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nx-script-id: {script}\r\n"
    return f"{head}connection: close\r\ncontent-length: {len(raw)}\r\n\r\n".encode() + raw


async def _streams(port: int, request: bytes, num_streams: int) -> None:
    async def one() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request)
        received = b""
        while chunk := await reader.read(1 << 16):
            received = received[-100:] + chunk
        assert b"[DONE]" in received, received[-200:]
        writer.close()

    await asyncio.gather(*(one() for _ in range(num_streams)))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
