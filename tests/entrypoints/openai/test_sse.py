"""The writer of a stream: what goes the short way to the socket, and what may not."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, MutableMapping
from typing import Any, cast

import pytest
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from atom.entrypoints.openai import connection
from atom.entrypoints.openai.sse import FrameStream, SseWriter


class Transport(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))


def cycle_of(transport: Transport, method: str = "POST") -> RequestResponseCycle:
    scope = {"type": "http", "method": method, "path": "/"}
    logger = logging.getLogger("test")
    return RequestResponseCycle(
        scope=cast(Any, scope),
        transport=transport,
        flow=FlowControl(transport),
        logger=logger,
        access_logger=logger,
        access_log=False,
        default_headers=[],
        message_event=asyncio.Event(),
        expect_100_continue=False,
        keep_alive=True,
        on_response=lambda: None,
    )


async def frames(*chunks: bytes) -> AsyncGenerator[bytes, None]:
    for chunk in chunks:
        yield chunk


CHUNKS = (b"data: 1\n\n", b"data: 2\n\n", b"data: " + b"x" * 5000 + b"\n\n")


async def written(short_way: bool, method: str = "POST") -> list[bytes]:
    """What a stream of CHUNKS puts on the wire."""
    transport = Transport()
    cycle = cycle_of(transport, method)
    scope: dict[str, Any] = {connection._WRITE_CHUNK: lambda body: connection._write_chunk(cycle, body)}
    take = connection.chunk_writer(scope if short_way else {})
    assert not scope or not short_way  # nothing is left that keeps the request alive

    async def send(message: MutableMapping[str, Any]) -> None:
        await cycle.send(cast(Any, message))

    async with SseWriter(send, 0, take) as writer:
        await writer.write_all(FrameStream(frames(*CHUNKS)))
        await writer.close()
    return transport.written


@pytest.mark.parametrize("method", ["POST", "HEAD"])
def test_the_short_way_writes_the_same_bytes(method: str) -> None:
    short, long = asyncio.run(written(True, method)), asyncio.run(written(False, method))
    assert short == long
    assert (CHUNKS[1] in b"".join(short)) is (method == "POST")


def test_a_chunk_that_may_not_be_written_is_left_to_send() -> None:
    async def check() -> None:
        transport = Transport()
        cycle = cycle_of(transport)
        assert not connection._write_chunk(cycle, b"x")  # the head is not out: how bodies are written is not known
        await cycle.send({"type": "http.response.start", "status": 200, "headers": []})
        assert connection._write_chunk(cycle, b"x")
        assert not connection._write_chunk(cycle, b"")  # would end the body
        cycle.flow.pause_writing()
        assert not connection._write_chunk(cycle, b"x")
        cycle.flow.resume_writing()
        cycle.disconnected = True
        assert not connection._write_chunk(cycle, b"x")
        assert transport.written[1:] == [b"1\r\nx\r\n"]

    asyncio.run(check())


def test_frames_wait_behind_what_waits_already() -> None:
    """A keep-alive that the client does not take holds up the frames behind it; their order stays."""

    async def check() -> list[bytes]:
        taken: list[bytes] = []
        is_open = asyncio.Event()
        is_open.set()
        waits = asyncio.Event()

        async def send(message: MutableMapping[str, Any]) -> None:
            if not is_open.is_set():
                waits.set()
            await is_open.wait()
            taken.append(message.get("body", b"head"))

        def take(body: bytes) -> bool:
            taken.append(b"short " + body)
            return True

        writer = SseWriter(send, 0, take)
        await writer.write(b"1")
        is_open.clear()
        slow = asyncio.create_task(writer.write(b"2"))
        await waits.wait()
        rest = asyncio.create_task(writer.write_all(FrameStream(frames(b"3", b"4"))))
        await asyncio.sleep(0)
        is_open.set()
        await asyncio.gather(slow, rest)
        return taken

    assert asyncio.run(check()) == [b"head", b"1", b"2", b"3", b"short 4"]
