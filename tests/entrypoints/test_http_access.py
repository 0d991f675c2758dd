"""API keys and cross-origin requests, over a live server."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.entrypoints.live import PATIENCE, LiveServer, error_of, running, scripted

KEYS = ("first-key", "second-key")
PREFLIGHT = {"origin": "http://localhost:3000", "access-control-request-method": "POST"}


@pytest.fixture(scope="module")
def guarded() -> Iterator[LiveServer]:
    with running(scripted(api_key=KEYS, allowed_origins=("http://localhost:3000",))) as live:
        yield live


@pytest.fixture(scope="module")
def open_server() -> Iterator[LiveServer]:
    with running(scripted(api_key=KEYS, metrics_without_api_key=True, allowed_origins=("*",))) as live:
        yield live


@pytest.mark.parametrize("header", ["Bearer {}", "bearer {}", "BEARER  {}"])
@pytest.mark.parametrize("key", KEYS)
def test_bearer_keys(guarded: LiveServer, header: str, key: str) -> None:
    assert guarded.chat(headers={"authorization": header.format(key)}).status_code == 200


@pytest.mark.parametrize("key", KEYS)
def test_x_api_key(guarded: LiveServer, key: str) -> None:
    assert guarded.chat(headers={"x-api-key": key}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer nope"},
        {"authorization": "Bearer"},
        {"authorization": "Basic first-key"},
        {"authorization": "first-key"},
        {"x-api-key": "first-ke"},
        {"x-api-key": "first-key2"},
        {"x-api-key": ""},
    ],
)
def test_without_a_key(guarded: LiveServer, headers: dict[str, str]) -> None:
    for response in (guarded.chat(headers=headers), guarded.client.get("/v1/models", headers=headers)):
        assert error_of(response, 401)["code"] == "invalid_api_key"
        assert response.headers["www-authenticate"] == "Bearer"


def test_a_key_of_other_bytes(guarded: LiveServer) -> None:
    with httpx.Client(base_url=guarded.url, timeout=PATIENCE) as client:
        response = client.get("/v1/models", headers=[(b"x-api-key", b"\xff\xfe")])
    assert error_of(response, 401)


def test_health_is_open_and_metrics_by_flag(guarded: LiveServer, open_server: LiveServer) -> None:
    assert guarded.client.get("/health").status_code == 200
    assert guarded.client.get("/metrics").status_code == 401
    assert open_server.client.get("/metrics").status_code == 200
    assert open_server.client.get("/v1/models").status_code == 401


def test_a_preflight_needs_no_key(guarded: LiveServer) -> None:
    asked = {**PREFLIGHT, "access-control-request-headers": "authorization,content-type"}
    response = guarded.client.options("/v1/chat/completions", headers=asked)
    assert response.status_code in (200, 204)
    assert response.headers["access-control-allow-origin"] == PREFLIGHT["origin"]
    assert "POST" in response.headers["access-control-allow-methods"]
    assert "authorization" in response.headers["access-control-allow-headers"]


def test_a_preflight_from_elsewhere(guarded: LiveServer) -> None:
    response = guarded.client.options("/v1/models", headers={**PREFLIGHT, "origin": "http://evil.example"})
    assert error_of(response, 403) and "access-control-allow-origin" not in response.headers


def test_responses_carry_the_origin_errors_too(guarded: LiveServer, open_server: LiveServer) -> None:
    origin = {"origin": PREFLIGHT["origin"]}
    for response in (guarded.client.get("/health", headers=origin), guarded.client.get("/v1/models", headers=origin)):
        assert response.headers["access-control-allow-origin"] == PREFLIGHT["origin"]
        assert "x-request-id" in response.headers["access-control-expose-headers"]
    assert open_server.client.get("/health", headers=origin).headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-origin" not in guarded.client.get("/health", headers={"origin": "http://x"}).headers


def test_options_without_a_preflight(guarded: LiveServer) -> None:
    assert error_of(guarded.client.options("/v1/models"), 405)
