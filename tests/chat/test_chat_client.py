"""The terminal chat before servers that do not do as they should: a message and exit 1, whatever they send."""

from __future__ import annotations

import io
import json
import socket
import sys
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from atom.chat import main as command
from atom.chat.main import main

MODELS = json.dumps({"data": [{"id": "m"}]}).encode()
OK = "HTTP/1.1 200 OK\r\nConnection: close\r\n"


def plain(body: bytes, head: str = OK, length: int | None = None) -> bytes:
    return f"{head}Content-Length: {len(body) if length is None else length}\r\n\r\n".encode() + body


def stream(*chunks: Any) -> bytes:
    lines = [json.dumps(chunk).encode() if not isinstance(chunk, bytes) else chunk for chunk in chunks]
    return f"{OK}Content-Type: text/event-stream\r\n\r\n".encode() + b"".join(b"data: %b\n\n" % line for line in lines)


def choice(**delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta}]}


@contextmanager
def server(*answers: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """A server that sends these bytes, one a connection, whatever it is asked; its URL, and the requests' heads."""
    heads: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            for answer in answers:
                try:
                    connection = listening.accept()[0]
                except OSError:  # nobody came
                    return
                with connection, connection.makefile("rb") as asked:
                    lines = [*iter(asked.readline, b"\r\n")]
                    lengths = [int(line[15:]) for line in lines if line.lower().startswith(b"content-length:")]
                    asked.read(sum(lengths))
                    heads.append(b"".join(lines))
                    connection.sendall(answer)
            listening.close()  # and refuses what comes then

        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield url, heads
        with suppress(OSError):  # it is closed already
            listening.shutdown(socket.SHUT_RDWR)  # which ends the wait for a connection that does not come
        thread.join(120)


def ask(monkeypatch: pytest.MonkeyPatch, *flags: str, stdin: bytes = b"hi\n") -> int:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), "utf-8"))
    try:
        main(flags)
    except SystemExit as stopped:
        return int(stopped.code or 0)
    return 0


@pytest.mark.parametrize(
    "answer",
    [
        plain(b"", "nonsense\r\n"),
        plain(b"{}"),
        plain(b"[]"),
        plain(b'{"data": [1]}'),
        plain(b"[" * 100_000),
        plain(b'{"data"', length=100),
        plain(b'{"error"', "HTTP/1.1 500 No\r\n", length=100),
        plain(b"[" * 100_000, "HTTP/1.1 500 No\r\n"),
        plain(b'{"error": null}', "HTTP/1.1 401 No\r\n"),
    ],
    ids=range(9),
)
def test_models_that_are_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], answer: bytes
) -> None:
    with server(answer) as (url, _):
        assert ask(monkeypatch, "--base-url", url) == 1
    assert "atom chat: error: " in capsys.readouterr().err


@pytest.mark.parametrize(
    "chunk",
    [
        b"nonsense",
        b"[" * 100_000,
        b"1",
        b"null",
        b"[]",
        b'"error"',
        {"choices": 1},
        {"choices": [1]},
        choice(content=["a"]),
        choice(content={"text": "a"}),
        choice(reasoning=1),
        choice(tool_calls={}),
        choice(tool_calls=["f"]),
        choice(tool_calls=[{"index": "0"}]),
        choice(tool_calls=[{"function": {"name": "f", "arguments": {}}}]),
        {"choices": [], "usage": {"completion_tokens": 1, "ttft_s": "soon"}},
        {"error": "no"},
        {"error": {"code": 1}},
    ],
    ids=range(18),
)
def test_chunks_that_are_none(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], chunk: Any) -> None:
    with server(plain(MODELS), stream(choice(content="Half"), chunk, b"[DONE]")) as (url, _):
        assert ask(monkeypatch, "--base-url", url) == 1
    captured = capsys.readouterr()
    assert captured.out == "Half\n" and "atom chat: error: " in captured.err


def test_fields_of_other_servers_are_passed_over(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = {**choice(content="Hel", role="assistant", refusal=None), "error": None, "usage": None, "x": [1]}
    with server(plain(MODELS), stream(first, {"choices": None}, choice(content="lo"), b"[DONE]")) as (url, _):
        assert ask(monkeypatch, "--base-url", url) == 0
    assert capsys.readouterr().out == "Hello\n"


def test_a_key_does_not_follow_to_another_server(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with server(plain(MODELS)) as (elsewhere, reached):
        found = plain(b"", f"HTTP/1.1 302 Found\r\nLocation: {elsewhere}/v1/models\r\n")
        with server(found) as (url, heads):
            assert ask(monkeypatch, "--base-url", url, "--api-key", "secret") == 1
    assert b"Bearer secret" in heads[0] and reached == []
    assert "302" in capsys.readouterr().err


def test_an_address_that_can_not_be(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(monkeypatch, "--base-url", "http://a..b") == 1
    assert "No server answers" in capsys.readouterr().err


def test_input_that_is_no_text(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with server(plain(MODELS)) as (url, _):
        assert ask(monkeypatch, "--base-url", url, stdin=b"\xff\xfe") == 1
    assert "utf-8" in capsys.readouterr().err


def test_an_interrupt_in_a_pipe_ends_the_program(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupted:
        def __init__(self, base: str, api_key: str | None) -> None:
            pass

        def models(self) -> list[str]:
            return ["m"]

        def stream(self, request: dict[str, Any]) -> Generator[dict[str, Any], None, None]:
            yield choice(content="Half")
            raise KeyboardInterrupt

    monkeypatch.setattr(command, "ChatClient", Interrupted)
    assert ask(monkeypatch) == 130
    captured = capsys.readouterr()
    assert captured.out == "Half\n" and "interrupted" in captured.err
