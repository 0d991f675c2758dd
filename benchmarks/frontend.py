"""What the API process costs: CPU time of a real server over scripted answers, a streamed token at 64 and 256 streams,
a prompt of 1,024 tokens, and a count of 100,000 characters' tokens.

The server runs in a process of its own and its CPU time is read from the operating system, so a busy machine changes
the figure little. The engine's playing is included; the pipeline, frames, HTTP and the socket are what is measured.
"""

from __future__ import annotations

import asyncio
import json
import random
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import psutil

from atom.builtin_model import resolve
from atom.tokenizer import Tokenizer

NUM_STREAMS = 64
NUM_TOKENS = 400
BAR_MICROSECONDS = 60.0
NUM_MANY_STREAMS, NUM_MANY_TOKENS = 256, 100
NUM_PROMPT_TOKENS = 1_024
BAR_PROMPT_MILLISECONDS = 2.0
NUM_CHARACTERS = 100_000
NUM_COUNTS = 10
BAR_COUNT_MILLISECONDS = 50.0
_ENDS = (b"[DONE]", b"event: message_stop", b"event: response.completed", b"event: response.incomplete")
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
                ("messages", "prose"),
                ("messages", "call"),
                ("responses", "prose"),
                ("responses", "call"),
            ):
                server.measure(endpoint, script, NUM_STREAMS, 20)  # warm-up
                cost = server.measure(endpoint, script, NUM_STREAMS, NUM_TOKENS)
                name = f"CPU of the API process, {endpoint}, {script}, {NUM_STREAMS} streams"
                rows.append({"name": name, "value": cost, "unit": "us/token", "bar": f"< {BAR_MICROSECONDS:g}"})
            rows += _many_streams(server)
            for kind, is_new in (("new", True), ("as before", False)):
                name = f"CPU of the API process, count_tokens, {NUM_CHARACTERS} characters, {kind}"
                row = {
                    "name": name,
                    "value": server.count(is_new),
                    "unit": "ms",
                    "bar": f"< {BAR_COUNT_MILLISECONDS:g}",
                }
                rows.append(row)
        finally:
            server.stop()
    return rows


def _many_streams(server: _Server) -> list[dict[str, Any]]:
    """What many streams at once cost: a token behind a short prompt, and how much more a request with a long one."""
    rows = []
    for endpoint in ("completions", "chat"):
        server.measure(endpoint, "prose", NUM_MANY_STREAMS, 2)  # warm-up
        token = server.measure(endpoint, "prose", NUM_MANY_STREAMS, NUM_MANY_TOKENS)
        short, long = (server.measure(endpoint, "prose", NUM_MANY_STREAMS, 1, prompt) for prompt in ("hi", _prompt()))
        name = f"CPU of the API process, {endpoint}, {NUM_MANY_STREAMS} streams"
        rows.append({"name": name, "value": token, "unit": "us/token", "bar": f"< {BAR_MICROSECONDS:g}"})
        bar = f"< {BAR_PROMPT_MILLISECONDS:g}"
        for size, cost in (("a short prompt", short), (f"{NUM_PROMPT_TOKENS} tokens of prompt", long)):
            rows.append({"name": f"{name}, {size}, one token", "value": cost / 1e3, "unit": "ms/request", "bar": bar})
    return rows


def _prompt() -> str:
    """Some words over and over, of NUM_PROMPT_TOKENS tokens for the shipped model's tokenizer."""
    tokenizer = Tokenizer.load(resolve("atom-tiny").path)
    return tokenizer.decode(tokenizer.encode(_PROSE * NUM_PROMPT_TOKENS)[:NUM_PROMPT_TOKENS])


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

    def measure(self, endpoint: str, script: str, num_streams: int, num_tokens: int, prompt: str = "hi") -> float:
        """Microseconds of CPU a token."""
        before = self._cpu()
        asyncio.run(_streams(self.port, _request(endpoint, script, num_tokens, prompt), num_streams))
        after = self._cpu()
        seconds = after.user + after.system - before.user - before.system
        return seconds / (num_streams * num_tokens) * 1e6

    def count(self, is_new: bool) -> float:
        """Milliseconds of CPU a count, of a text that is new each time or always the same."""
        bodies = [json.dumps(_counted(seed if is_new else 0)).encode() for seed in range(1, NUM_COUNTS + 1)]
        if not is_new:
            self._post("/v1/messages/count_tokens", bodies[0])
        before = self._cpu()
        for body in bodies:
            self._post("/v1/messages/count_tokens", body)
        after = self._cpu()
        return (after.user + after.system - before.user - before.system) / NUM_COUNTS * 1e3

    def _post(self, path: str, body: bytes) -> None:
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", body, headers)
        urllib.request.urlopen(request).read()


def _counted(seed: int) -> dict[str, Any]:
    words = _PROSE.split() * 2_000
    random.Random(seed).shuffle(words)
    return {"messages": [{"role": "user", "content": " ".join(words)[:NUM_CHARACTERS]}]}


def _request(endpoint: str, script: str, num_tokens: int, prompt: str) -> bytes:
    messages = [{"role": "user", "content": prompt}]
    schema = {"type": "object"}
    bodies: dict[str, tuple[str, dict[str, Any]]] = {
        "completions": ("/v1/completions", {"prompt": prompt, "max_tokens": num_tokens}),
        "chat": (
            "/v1/chat/completions",
            {
                "messages": messages,
                "max_tokens": num_tokens,
                "tools": [{"type": "function", "function": {"name": "write", "parameters": schema}}],
            },
        ),
        "messages": (
            "/v1/messages",
            {"messages": messages, "max_tokens": num_tokens, "tools": [{"name": "write", "input_schema": schema}]},
        ),
        "responses": (
            "/v1/responses",
            {
                "input": prompt,
                "max_output_tokens": num_tokens,
                "tools": [{"type": "function", "name": "write", "parameters": schema}],
            },
        ),
    }
    path, body = bodies[endpoint]
    body["stream"] = True
    raw = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nx-script-id: {script}\r\n"
    return f"{head}connection: close\r\ncontent-length: {len(raw)}\r\n\r\n".encode() + raw


async def _streams(port: int, request: bytes, num_streams: int) -> None:
    async def one() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request)
        received = b""
        while chunk := await reader.read(1 << 16):
            received = received[-4096:] + chunk
        assert any(end in received for end in _ENDS), received[-200:]
        writer.close()

    await asyncio.gather(*(one() for _ in range(num_streams)))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
