"""Clients that leave, servers that stop, engines that die."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from atom.entrypoints.openai import connection, lifecycle
from atom.entrypoints.scripted.script import Script
from atom.entrypoints.scripted.serving import ScriptedServing
from tests.entrypoints.gate import Gate
from tests.entrypoints.live import PATIENCE, LiveServer, error_of, frames_of, running, script, scripted

SLOW = Script(id="slow", text="x" * 100_000, delay=0.01)
BODIES: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": ("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 3000}),
    "completion": ("/v1/completions", {"prompt": ["a", "b"], "n": 2, "max_tokens": 3000}),
}


def until(condition: Callable[[], bool], seconds: float = PATIENCE) -> None:
    """Wait for something that has to happen."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def num_running(server: LiveServer) -> int:
    assert isinstance(server.serving, ScriptedServing)
    return server.serving.scripted_engine.stats.num_running


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with running(
        scripted(SLOW, Script(id="quick", text="done"), Script(id="queued", text="x", first_delay=60))
    ) as live:
        yield live


def open_request(server: LiveServer, kind: str, *, stream: bool, script_id: str = "slow") -> socket.socket:
    """Send a request and leave its socket open."""
    path, body = BODIES[kind]
    raw = json.dumps({**body, "stream": stream}).encode()
    host, port = server.url.removeprefix("http://").split(":")
    client = socket.create_connection((host, int(port)))
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nx-script-id: {script_id}\r\n"
    client.sendall(f"{head}content-length: {len(raw)}\r\n\r\n".encode() + raw)
    return client


@pytest.mark.parametrize("kind", list(BODIES))
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("script_id", ["slow", "queued"])
def test_a_client_that_leaves_ends_its_work(server: LiveServer, kind: str, stream: bool, script_id: str) -> None:
    assert isinstance(server.serving, ScriptedServing)
    engine = server.serving.scripted_engine
    num_choices = 1 if kind == "chat" else 4
    aborted = engine.stats.requests_aborted
    client = open_request(server, kind, stream=stream, script_id=script_id)
    until(lambda: num_running(server) == num_choices)
    if stream and script_id == "slow":
        assert client.recv(1000)
    client.close()
    until(lambda: (num_running(server), len(server.serving.work)) == (0, 0))
    until(lambda: engine.stats.requests_aborted == aborted + num_choices)
    assert server.chat(headers=script("quick")).status_code == 200


def test_gauges_fall_when_all_clients_leave_at_once(server: LiveServer) -> None:
    clients = [open_request(server, "chat", stream=True) for _ in range(20)]
    until(lambda: num_running(server) == 20)
    for client in clients:
        client.close()
    gauges = ("atom:requests_in_progress", "atom:stream_longest_silence_seconds", "atom:requests_running")
    until(lambda: all(f"{gauge} 0.0" in server.client.get("/metrics").text for gauge in gauges))


def test_a_client_that_half_closes_is_gone(server: LiveServer) -> None:
    client = open_request(server, "chat", stream=True)
    until(lambda: num_running(server) == 1)
    client.shutdown(socket.SHUT_WR)
    until(lambda: num_running(server) == 0)
    client.close()


def test_a_client_that_stops_reading_does_not_stop_others(server: LiveServer) -> None:
    client = open_request(server, "completion", stream=True)
    until(lambda: num_running(server) == 4)
    assert server.chat(headers=script("quick")).status_code == 200
    client.close()
    until(lambda: num_running(server) == 0)


HEALTH = b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n"


def ask_health(client: socket.socket) -> None:
    client.sendall(HEALTH)
    received = b""
    while b'{"status":"ok"}' not in received:
        piece = client.recv(4096)
        assert piece, "the server has closed the connection"
        received += piece
    assert b"200 OK" in received


def test_connections_are_reused(server: LiveServer) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as client:
        ask_health(client)
        ask_health(client)


def test_an_idle_connection_is_closed_and_its_reuse_is_told(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "LINGER", PATIENCE)
    monkeypatch.setattr(connection.Connection, "_last_hint", -connection.LOG_INTERVAL)
    with running(scripted("hi", timeout_keep_alive=1)) as server:
        host, port = server.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as client:
            ask_health(client)
            assert client.recv(4096) == b""  # closed when idle for longer than the flag allows
            assert "keep-alive" not in caplog.text
            client.sendall(HEALTH)
            until(lambda: "raise --timeout-keep-alive" in caplog.text)


def in_thread(work: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(work()))
    thread.start()
    return thread, results


def test_a_stopping_server_finishes_what_runs_and_refuses_the_rest() -> None:
    with running(scripted(Script(text="x" * 100, first_delay=1), drain_timeout=600.0)) as server:
        gate = Gate(server)
        idle = httpx.Client(base_url=server.url, timeout=PATIENCE)
        idle.get("/health")
        stream, streamed = in_thread(lambda: server.complete(stream=True))
        whole, answers = in_thread(
            lambda: httpx.post(server.url + "/v1/completions", json={"prompt": "x"}, timeout=PATIENCE)
        )
        until(lambda: num_running(server) == 2)
        server.loop.call_soon_threadsafe(server.signals.first.set)
        until(lambda: server.serving.is_draining)
        for client in (idle, httpx.Client(base_url=server.url, timeout=PATIENCE)):
            refused = client.post("/v1/completions", json={"prompt": "x"})
            assert error_of(refused, 503)["code"] == "shutting_down" and refused.headers["retry-after"] == "1"
            assert client.get("/health").status_code == 503
            assert client.get("/metrics").status_code == 200
            client.close()
        gate.let_pass(2)
        stream.join(PATIENCE)
        whole.join(PATIENCE)
        assert frames_of(streamed[0])[-1] == "[DONE]"
        assert answers[0].json()["usage"]["completion_tokens"] == 100
        until(lambda: server.exit_code is not None)
        assert server.exit_code == 0


@pytest.mark.parametrize("way", ["drain timeout", "second signal"])
def test_what_does_not_finish_is_cut_with_a_last_word(way: str) -> None:
    with running(scripted(SLOW, drain_timeout=0.2 if way == "drain timeout" else 600.0)) as server:
        stream, streamed = in_thread(lambda: server.complete(stream=True, max_tokens=3000))
        whole, answers = in_thread(
            lambda: httpx.post(
                server.url + "/v1/completions", json={"prompt": "x", "max_tokens": 3000}, timeout=PATIENCE
            )
        )
        until(lambda: num_running(server) == 2)
        server.loop.call_soon_threadsafe(server.signals.first.set)
        if way == "second signal":
            server.loop.call_soon_threadsafe(server.signals.second.set)
        stream.join(PATIENCE)
        whole.join(PATIENCE)
        assert json.loads(frames_of(streamed[0])[-1])["error"]["code"] == "shutting_down"
        assert error_of(answers[0], 503)["code"] == "shutting_down"
        until(lambda: server.exit_code is not None)
        assert server.exit_code == 0 and num_running(server) == 0


def test_a_request_that_is_read_when_all_are_given_up_is_refused() -> None:
    with running(scripted("hi")) as server:
        server.in_loop(server.serving.work.cancel_all)
        for stream in (False, True):
            assert error_of(server.complete(stream=stream), 503)["code"] == "shutting_down"


def test_an_engine_that_dies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "DEATH_NOTICE", 600.0)
    with running(scripted(SLOW, Script(id="queued", text="x", first_delay=60))) as server:
        assert isinstance(server.serving, ScriptedServing)
        threads = [
            in_thread(lambda: server.complete(stream=True, max_tokens=3000, headers=script("slow"))),
            in_thread(lambda: server.complete(max_tokens=3000, headers=script("slow"))),
            in_thread(lambda: server.complete(stream=True, headers=script("queued"))),
            in_thread(lambda: server.chat(n=2, headers=script("queued"))),
        ]
        until(lambda: num_running(server) == 4)  # the last one's second choice waits for its first
        server.in_loop(server.serving.scripted_engine.die)
        for thread, _ in threads:
            thread.join(PATIENCE)
        streamed, whole, queued, several = (results[0] for _, results in threads)
        assert json.loads(frames_of(streamed)[-1])["error"]["code"] == "engine_dead"
        for response in (whole, queued, several):
            assert error_of(response, 500)["code"] == "engine_dead"
            assert response.headers["x-should-retry"] == "false"
        assert error_of(server.client.get("/health"), 503)["code"] == "engine_dead"
        assert error_of(server.complete(), 503)["code"] == "engine_dead"
        assert "atom:engine_up 0.0" in server.client.get("/metrics").text
        assert server.exit_code is None
        server.loop.call_soon_threadsafe(server.signals.first.set)  # who stops it need not wait for the notice to end
        until(lambda: server.exit_code is not None)
        assert server.exit_code == 1


def test_a_server_whose_engine_has_died_stops_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "DEATH_NOTICE", 0.01)
    with running(scripted()) as server:
        assert isinstance(server.serving, ScriptedServing)
        server.in_loop(server.serving.scripted_engine.die)
        until(lambda: server.exit_code is not None)
        assert server.exit_code == 1


def test_a_taken_port_is_refused() -> None:
    with running(scripted()) as server:
        host, port = server.url.removeprefix("http://").split(":")
        with pytest.raises(OSError, match="in use"):
            lifecycle.bind_socket(host, int(port))
