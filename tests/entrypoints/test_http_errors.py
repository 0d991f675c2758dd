"""Errors: status, shape and headers, whoever raises them, over a live server."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
from collections.abc import Iterator

import httpx
import pytest
from atom_spec.routes import ROUTES
from starlette.requests import Request

from atom.entrypoints.openai.app import HANDLERS, bind
from atom.entrypoints.openai.endpoint import read_body
from atom.entrypoints.openai.errors import ApiError
from atom.entrypoints.scripted.script import Script
from tests.entrypoints.live import LiveServer, error_of, frames_of, running, script, scripted

GENERATING = ["/v1/chat/completions", "/v1/completions"]


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    scripts = [
        Script(id="ok", text="fine"),
        Script(id="refused", text="x", fault_after=0),
        Script(id="fault", text="abcdef", fault_after=3),
    ]
    with running(scripted(*scripts, max_request_bytes=100_000)) as live:
        live.client.headers["x-script-id"] = "ok"
        yield live


@pytest.mark.parametrize("path", GENERATING)
@pytest.mark.parametrize(
    "body",
    [
        "[]",
        "null",
        "42",
        '"text"',
        "true",
        "{",
        "",
        '{"model": null}',
        '{"messages": "hi"}',
        '{"messages": [42]}',
        '{"messages": [{"role": "user"}]}',
        '{"prompt": {}}',
        "\x00",
        '{"a": 1}}',
        "{'a': 1}",
    ],
)
def test_bodies_that_are_no_request(server: LiveServer, path: str, body: str) -> None:
    headers = {"content-type": "application/json"}
    error = error_of(server.client.post(path, content=body, headers=headers))
    assert error["type"] == "invalid_request_error"
    assert "atom." not in error["message"] and "msgspec" not in error["message"]


def test_bytes_that_are_no_utf8(server: LiveServer) -> None:
    headers = {"content-type": "application/json"}
    error_of(server.client.post("/v1/completions", content=b'{"prompt": "\xff\xfe"}', headers=headers))


@pytest.mark.parametrize("path", ["/", "/nothing", "/v1", "/v1/chat", "/v1/completions/", "/health/", "/%00"])
def test_no_such_path(server: LiveServer, path: str) -> None:
    if path == "/":
        return
    assert error_of(server.client.get(path), 404)["code"] == "not_found"


def test_messages_errors_have_the_other_shape(server: LiveServer) -> None:
    assert error_of(server.post("/v1/messages/nothing", {}), 404)["type"] == "not_found_error"


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_wrong_methods_say_which_are_right(server: LiveServer, route: object) -> None:
    path = route.path.replace("{model}", "x")  # type: ignore[attr-defined]  # a plain route
    declared = {other.method for other in ROUTES if other.path == route.path}  # type: ignore[attr-defined]  # a plain route
    allowed = declared | ({"HEAD"} if "GET" in declared else set())
    for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY"} - allowed:
        response = server.client.request(method, path)
        assert f"{method} is not allowed" in error_of(response, 405)["message"]
        assert set(response.headers["allow"].split(", ")) == allowed


def test_every_route_is_bound() -> None:
    with pytest.raises(LookupError, match="createCompletion"):
        bind(ROUTES, {name: handler for name, handler in HANDLERS.items() if name != "createCompletion"})
    with pytest.raises(LookupError, match="unheardOf"):
        bind(ROUTES, {**HANDLERS, "unheardOf": HANDLERS["getHealth"]})


def test_a_body_over_the_limit(server: LiveServer) -> None:
    assert error_of(server.complete("x" * 100_001), 413)["code"] == "request_too_large"


def test_the_limit_holds_for_a_body_of_unknown_length(server: LiveServer) -> None:
    headers = {"content-type": "application/json"}
    response = server.client.post("/v1/completions", content=iter([b" " * 50_000] * 40), headers=headers)
    assert error_of(response, 413)
    assert server.complete().status_code == 200


def test_no_more_of_a_body_is_read_than_the_limit_allows() -> None:
    num_read = 0

    async def receive() -> dict[str, object]:
        nonlocal num_read
        num_read += 1
        return {"type": "http.request", "body": b"x" * 10, "more_body": True}

    request = Request({"type": "http", "method": "POST", "path": "/", "headers": []}, receive)
    with pytest.raises(ApiError, match="larger than 25"):
        asyncio.run(read_body(request, 25))
    assert num_read == 3


def test_bytes_that_are_no_http(server: LiveServer) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=120) as client:
        client.sendall(b"NONSENSE\r\n\r\n")
        received = b""
        while chunk := client.recv(4096):
            received += chunk
    head, _, body = received.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400") and b"application/json" in head
    assert json.loads(body)["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_another_content_type(server: LiveServer, content_type: str) -> None:
    headers = {"content-type": content_type} if content_type else {}
    response = server.client.post("/v1/completions", content=b'{"prompt": "hi"}', headers=headers)
    assert error_of(response, 415)["code"] == "unsupported_media_type"


@pytest.mark.parametrize("content_type", ["application/json; charset=utf-8", "Application/JSON"])
def test_json_by_other_spellings(server: LiveServer, content_type: str) -> None:
    headers = {"content-type": content_type}
    assert server.client.post("/v1/completions", content=b'{"prompt": "hi"}', headers=headers).status_code == 200


def test_a_compressed_body(server: LiveServer) -> None:
    def send(encoding: str, body: bytes) -> httpx.Response:
        headers = {"content-type": "application/json", "content-encoding": encoding}
        return server.client.post("/v1/completions", content=body, headers=headers)

    refused = send("gzip", gzip.compress(b'{"prompt": "hi"}'))
    assert error_of(refused, 415)["code"] == "unsupported_media_type" and "'gzip'" in error_of(refused, 415)["message"]
    assert refused.headers["accept-encoding"] == "identity"
    assert send("identity", b'{"prompt": "hi"}').status_code == 200


@pytest.mark.parametrize("path", GENERATING)
def test_an_early_error_of_a_stream_is_plain_json(server: LiveServer, path: str) -> None:
    body = {"stream": True, "messages": [{"role": "user", "content": "x"}], "prompt": None}
    if path == "/v1/completions":
        body = {"stream": True, "prompt": "x"}
    error_of(server.post(path, {**body, "temperature": -1}))
    assert "fault" in error_of(server.post(path, body, headers=script("refused")))["message"]


@pytest.mark.parametrize("path", GENERATING)
def test_a_late_error_of_a_stream_is_a_frame(server: LiveServer, path: str) -> None:
    body = {"stream": True, "messages": [{"role": "user", "content": "x"}]}
    if path == "/v1/completions":
        body = {"stream": True, "prompt": "x"}
    response = server.post(path, body, headers=script("fault"))
    assert response.status_code == 200
    frames = frames_of(response)
    error = json.loads(frames[-1])["error"]
    assert set(error) == {"message", "type", "param", "code"} and "Traceback" not in error["message"]
    assert "[DONE]" not in frames
    assert all('"finish_reason":null' in frame for frame in frames[:-1])


def test_a_late_error_of_a_whole_answer_is_500(server: LiveServer) -> None:
    error_of(server.chat(headers=script("fault")), 500)
    assert server.client.get("/health").json() == {"status": "ok"}


def test_an_error_of_ours_shows_no_internals(server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object) -> None:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(server.serving.tokenizer, "encode", broken)
    error = error_of(server.complete(), 500)
    assert "secret" not in error["message"] and error["code"] == "internal_error"


def test_an_error_of_ours_in_mid_stream(server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    from atom.entrypoints.openai import frames as frames_module

    calls = 0
    original = frames_module.ChunkFrames.text

    def broken(self: frames_module.ChunkFrames, *arguments: object) -> bytes:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise ZeroDivisionError("secret detail")
        return original(self, *arguments)  # type: ignore[arg-type]  # a wrapper with the wrapped one's arguments

    monkeypatch.setattr(frames_module.ChunkFrames, "text", broken)
    frames = frames_of(server.complete(stream=True))
    assert len(frames) == 2 and json.loads(frames[-1])["error"]["code"] == "internal_error"
    assert "secret" not in frames[-1]


def test_request_ids(server: LiveServer) -> None:
    assert server.client.get("/health", headers={"x-request-id": "mine-1"}).headers["x-request-id"] == "mine-1"
    made_up = [server.client.get("/health").headers["x-request-id"] for _ in range(2)]
    assert made_up[0] != made_up[1]
    for bad in ("with blank", "x" * 1000):
        assert server.client.get("/health", headers={"x-request-id": bad}).headers["x-request-id"] != bad
    assert server.client.get("/nothing").headers["x-request-id"]
    assert server.client.put("/health").headers["x-request-id"]
    assert server.chat(stream=True, headers={"x-request-id": "mine-2"}).headers["x-request-id"] == "mine-2"
