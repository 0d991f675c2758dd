"""Cases about clients that leave, servers that stop, keys, browsers and the profiler."""

from __future__ import annotations

import json
import re
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import psutil

from atom.entrypoints.openai import lifecycle
from conformance.http.server import started
from tests.entrypoints.cases.registry import MODEL, Given, case, ok
from tests.entrypoints.live import PATIENCE, error_of, running, scripted

GAUGES = (
    "atom:requests_running",
    "atom:requests_waiting",
    "atom:kv_cache_blocks_used",
    "atom:requests_in_progress",
)
IDLE = dict.fromkeys(GAUGES, 0.0)


def until(condition: Callable[[], bool], seconds: float = PATIENCE) -> None:
    """Wait for something that has to happen."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


def gauges(client: httpx.Client) -> dict[str, float]:
    """The gauges of requests and blocks."""
    text = client.get("/metrics").text
    found = {}
    for name in GAUGES:
        value = re.search(rf"^{name}(?:{{[^}}]*}})? (\S+)$", text, re.MULTILINE)
        if value:
            found[name] = float(value[1])
    assert set(found) == set(GAUGES), found
    return found


def counted(client: httpx.Client) -> float:
    """How many requests have ended, whichever way."""
    lines = re.findall(r"^atom:requests_total{[^}]*} (\S+)$", client.get("/metrics").text, re.MULTILINE)
    return sum(map(float, lines))


def open_request(url: str, path: str, body: dict[str, Any]) -> socket.socket:
    """Send a request and leave its socket open."""
    raw = json.dumps(body).encode()
    host, port = url.removeprefix("http://").split(":")
    client = socket.create_connection((host, int(port)))
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(raw)}\r\n\r\n"
    client.sendall(head.encode() + raw)
    return client


@case("B58", "A client that hangs up ends its request, streamed or not, running or waiting; nothing of it stays.")
def _(given: Given) -> None:
    until(lambda: gauges(given.model) == IDLE)  # whatever another case left
    for request in given.requests:
        body = {**request["body"], "model": MODEL}
        sockets = [open_request(given.process.url, request["path"], body) for _ in range(12)]
        until(lambda: min(gauges(given.model)[f"atom:requests_{state}"] for state in ("running", "waiting")) > 0)
        for client in sockets:
            client.close()
        until(lambda: gauges(given.model) == IDLE)
        assert given.ask(request, max_tokens=1).status_code == 200


@case("B60", "`--timeout-keep-alive` is how long an idle connection stays open: reused before, closed after.")
def _(given: Given) -> None:
    for seconds in (600, 1):
        with running(scripted("fine", timeout_keep_alive=seconds)) as server:
            host, port = server.url.removeprefix("http://").split(":")
            client = HTTPConnection(host, int(port), timeout=PATIENCE)
            client.connect()
            idle = client.sock
            for _ in range(2 if seconds == 600 else 1):
                client.request("GET", "/health")
                assert client.getresponse().read() == b'{"status":"ok"}' and client.sock is idle
            if seconds == 1:
                assert idle.recv(1) == b"", "the server has not closed it"
            client.close()


@case(
    "B61",
    "A preflight needs no key; a request without one is a 401; Bearer in any case, and x-api-key; /health is open.",
)
def _(given: Given) -> None:
    origin = {"origin": given.input["headers"]["Origin"]}
    chat = {"messages": [{"role": "user", "content": "hi"}]}
    with running(scripted("fine", api_key=("key-1",), allowed_origins=(origin["origin"],))) as server:
        preflight = server.client.options(given.input["path"], headers=given.input["headers"])
        assert preflight.status_code in (200, 204)
        assert preflight.headers["access-control-allow-origin"] == origin["origin"]
        allowed = preflight.headers["access-control-allow-headers"].lower()
        assert "authorization" in allowed and "content-type" in allowed
        error_of(server.client.post(given.input["path"], json=chat, headers=origin), 401)
        for key in ({"authorization": "bearer key-1"}, {"authorization": "BEARER key-1"}, {"x-api-key": "key-1"}):
            assert ok(server.client.post("/v1/messages", json={**chat, "max_tokens": 4}, headers=key))
            assert ok(server.client.post(given.input["path"], json=chat, headers=key))
            assert ok(server.client.get("/v1/models", headers=key))
        error_of(server.client.get("/v1/models"), 401)
        assert server.client.get("/health").status_code == 200


@case("B62", "Thirty streams dropped at once leave the gauges where they were, and are all counted.")
def _(given: Given) -> None:
    until(lambda: gauges(given.model) == IDLE)
    ended = counted(given.model)
    body = {"prompt": "x", "max_tokens": 4000, "ignore_eos": True, "stream": True}
    sockets = [open_request(given.process.url, "/v1/completions", body) for _ in range(30)]
    until(lambda: gauges(given.model)["atom:requests_in_progress"] >= 30)
    for client in sockets:
        client.close()
    until(lambda: gauges(given.model) == IDLE)
    until(lambda: counted(given.model) == ended + 30)
    until(lambda: "atom:stream_longest_silence_seconds 0.0\n" in given.model.get("/metrics").text)


@case(
    "B63", "SIGTERM: new requests are refused, a running stream ends with an error frame, exit 0, no process is left."
)
def _(given: Given) -> None:
    with TemporaryDirectory() as folder:
        with (
            started(Path(folder), flags=("--drain-timeout", "1")) as server,
            httpx.Client(base_url=server.url, timeout=PATIENCE) as client,
        ):
            children = psutil.Process(server.process.pid).children(recursive=True)
            body = {"prompt": "x", "max_tokens": 4000, "ignore_eos": True, "stream": True}
            with client.stream("POST", "/v1/completions", json=body) as response:
                lines = response.iter_lines()
                next(lines)
                server.process.send_signal(signal.SIGTERM)
                until(lambda: _is_refused(client))
                *_, last = filter(None, lines)
            assert server.process.wait(PATIENCE) == 0
        assert last.startswith('data: {"error":') or last == "data: [DONE]"
        until(lambda: all(map(_is_gone, children)))
        lifecycle.bind_socket("127.0.0.1", int(server.url.rpartition(":")[2])).close()  # as the next start does


def _is_gone(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _is_refused(client: httpx.Client) -> bool:
    with suppress(httpx.TransportError):
        return client.post("/v1/completions", json={"prompt": "x", "max_tokens": 1}).status_code == 503
    return True


@case("B79", "The profiler: a trace a worker, 409 out of order, 400 without a folder; `/health` is answered meanwhile.")
def _(given: Given) -> None:
    assert error_of(given.scripted.client.post("/start_profile"))["code"] == "profiler_disabled"
    given.model.post("/stop_profile")  # whatever another case left
    assert error_of(given.model.post("/stop_profile"), 409)
    assert ok(given.model.post("/start_profile"))["status"] == "success"
    assert error_of(given.model.post("/start_profile"), 409)
    assert ok(given.model.post("/v1/completions", json={"prompt": "x", "max_tokens": 2}))
    assert given.model.get("/health").status_code == 200
    traces = ok(given.model.post("/stop_profile"))["traces"]
    assert len(traces) == 1 and Path(traces[0]["trace_dir"], traces[0]["file"]).suffix == ".gz"
    assert ok(given.model.post("/v1/completions", json={"prompt": "x", "max_tokens": 2}))
