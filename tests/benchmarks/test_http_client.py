"""The client's own HTTP: connections, framings, and answers that are none."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from atom.benchmarks import http_client
from atom.benchmarks.http_client import Answer, BrokenAnswerError, ServerCallError, Session, call
from tests.benchmarks.conftest import Serve
from tests.benchmarks.sse_server import Script, SSEServer, at_once

T = TypeVar("T")


def with_session(work: Callable[[Session], Awaitable[T]]) -> T:
    async def run() -> T:
        async with Session() as session:
            return await work(session)

    return asyncio.run(run())


def post(server: SSEServer, **arguments: Any) -> Answer:
    return with_session(lambda session: session.request("POST", server.url + "/path?x=1", b"{}", **arguments))


def test_the_body_arrives_piece_by_piece_with_the_time_of_each(serve: Serve) -> None:
    came = [threading.Event(), threading.Event(), threading.Event()]
    server = serve(Script([(0.0, b"one"), (came[0], b"two"), (came[1], b"three")]))
    pieces: list[tuple[bytes, float]] = []
    sent: list[float] = []

    def receive(data: bytes, now: float) -> None:
        pieces.append((data, now))
        came[len(pieces) - 1].set()

    answer = post(server, receive=receive, on_send=sent.append)
    assert [data for data, _ in pieces] == [b"one", b"two", b"three"]
    assert (answer.status, answer.body) == (200, b"")
    exchange = server.log[0]
    moments = [
        sent[0],
        exchange.received,
        *(m for pair in zip(exchange.writes, pieces, strict=True) for m in (pair[0], pair[1][1])),
    ]
    assert moments == sorted(moments), "sent, received, then each piece written and then read"
    assert exchange.path == "/path?x=1"
    assert exchange.headers["Host"] == f"127.0.0.1:{server.port}"


@pytest.mark.parametrize("framing", ["Content-Length: 6", "Connection: close", "X-None: 1"])
def test_every_framing_of_a_body(serve: Serve, framing: str) -> None:
    assert post(serve(at_once(b"abc", b"def", framing=framing))).body == b"abcdef"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (at_once(b"abc", framing="Content-Length: 6"), "closed the connection before the answer was complete"),
        (at_once(b"abc", cut=True), "closed the connection before the answer was complete"),
        (at_once(framing="Content-Length: x"), "is no HTTP"),
    ],
)
def test_an_answer_that_is_not_whole_is_an_error(serve: Serve, script: Script, reason: str) -> None:
    with pytest.raises(BrokenAnswerError, match=reason):
        post(serve(script))


def test_what_the_receiver_raises_is_raised(serve: Serve) -> None:
    def receive(data: bytes, now: float) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        post(serve(Script([(0.0, b"one"), (0.01, b"two")])), receive=receive)


async def _ports(session: Session, server: SSEServer, pause: float = 0.0) -> None:
    for _ in range(3):
        await session.request("POST", server.url)
        await asyncio.sleep(pause)


def test_connections_are_kept_and_shared(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []
    connect = Session._connect

    async def counting(self: Session, origin: http_client.Origin) -> Any:
        opened.append(origin)
        return await connect(self, origin)

    monkeypatch.setattr(Session, "_connect", counting)
    monkeypatch.setattr(http_client, "KEEP_ALIVE_S", 600.0)
    server = serve(at_once(b"x"))
    with_session(lambda session: _ports(session, server))
    assert len(opened) == 1
    closing = serve(at_once(b"x", framing="Connection: close"))
    with_session(lambda session: _ports(session, closing))
    assert len(opened) == 4
    monkeypatch.setattr(http_client, "KEEP_ALIVE_S", 0.0)
    with_session(lambda session: _ports(session, server, 0.001))
    assert len(opened) == 7


def test_a_cancelled_request_closes_its_connection(serve: Serve) -> None:
    async def work(session: Session) -> int:
        task = asyncio.create_task(session.request("POST", server.url))
        while not server.log:
            await asyncio.sleep(0.001)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return len(session._in_use) + sum(map(len, session._idle.values()))

    server = serve(Script([(30.0, b"late")]))
    assert with_session(work) == 0


def test_a_request_that_takes_too_long(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "REQUEST_TIMEOUT_S", 0.05)
    with pytest.raises(TimeoutError):
        post(serve(Script([(30.0, b"late")])))


@pytest.mark.parametrize("url", ["127.0.0.1:8000/x", "ftp://127.0.0.1/x", "http:///x"])
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(ValueError, match="is no address of the form"):
        with_session(lambda session: session.request("POST", url))
    with pytest.raises(ServerCallError, match="is no address of the form"):
        with_session(lambda session: call(session, "GET", url))


def test_small_calls(serve: Serve) -> None:
    server = serve(at_once(b"broken", status=500))
    server.others["/found"] = {"a": 1}
    assert with_session(lambda session: call(session, "GET", server.url + "/found")) == {"a": 1}
    assert with_session(lambda session: call(session, "GET", server.url + "/nowhere")) is None
    with pytest.raises(ServerCallError, match=r"POST .*/x: HTTP 500: broken"):
        with_session(lambda session: call(session, "POST", server.url + "/x"))


def test_refusals_in_one_line() -> None:
    assert Answer(400, b'{"error": {"message": "too long"}}').refusal == "HTTP 400: too long"
    assert Answer(400, b'{"detail": "too long"}').refusal == "HTTP 400: too long"
    assert Answer(502, b"<html>\n").refusal == "HTTP 502: <html>"
    assert Answer(503).refusal == "HTTP 503: Service Unavailable"
    assert Answer(599).refusal == "HTTP 599: "
    assert len(Answer(500, b"x" * 1000).refusal) == len("HTTP 500: ") + 300
