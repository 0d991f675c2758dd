"""Health, models, tokenizer, metrics and pages, over a live server."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.resources import files
from pathlib import Path

import httpx
import pytest
from atom_spec.metrics import METRICS
from prometheus_client.parser import text_string_to_metric_families

from atom.entrypoints.scripted.script import Script
from atom.entrypoints.scripted.serving import ScriptedServing
from tests.entrypoints.live import MODEL, PATIENCE, LiveServer, error_of, running, script, scripted


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    scripts = [Script(id="ok", text="fine"), Script(id="slow", text="x" * 100_000, delay=0.01)]
    serving = scripted(*scripts)
    serving.served_model_names = (MODEL, "org/other name")
    with running(serving) as live:
        yield live


def samples(server: LiveServer) -> dict[str, float]:
    """Every sample of a scrape, by name and labels."""
    text = server.client.get("/metrics").text
    families = text_string_to_metric_families(text)
    return {
        sample.name + "".join(f"|{value}" for value in sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
    }


def test_health(server: LiveServer) -> None:
    assert server.client.get("/health").json() == {"status": "ok"}
    assert server.client.get("/health?deep=1").json() == {"status": "ok"}
    assert server.client.head("/health").status_code == 200
    assert error_of(server.client.get("/health?deep=x"))["param"] == "deep"


def test_a_deep_check_generates(server: LiveServer) -> None:
    assert isinstance(server.serving, ScriptedServing)
    before = len(server.serving.scripted_engine.requests)
    server.client.get("/health?deep=1")
    assert len(server.serving.scripted_engine.requests) == before + 1
    assert server.serving.scripted_engine.requests[-1].sampling.max_tokens == 1


def test_models(server: LiveServer) -> None:
    listed = server.client.get("/v1/models").json()
    assert listed["object"] == "list" and [entry["id"] for entry in listed["data"]] == [MODEL, "org/other name"]
    for path in (f"/v1/models/{MODEL}", "/v1/models/org/other name", "/v1/models/org%2Fother%20name"):
        entry = server.client.get(path).json()
        assert (
            entry["object"] == "model"
            and entry["max_model_len"] == 4096
            and entry["id"] in path.replace("%2F", "/").replace("%20", " ")
        )
    assert error_of(server.client.get("/v1/models/nope"), 404)["code"] == "model_not_found"


def test_tokenizer(server: LiveServer) -> None:
    ids = server.post("/tokenize", {"prompt": "Grüße<|end|>", "add_special_tokens": False}).json()
    assert ids["tokens"] == [*"Grüße".encode(), 256] and ids["count"] == len(ids["tokens"])
    assert server.post("/detokenize", {"tokens": ids["tokens"]}).json() == {"prompt": "Grüße<|end|>"}
    assert server.post("/tokenize", {"prompt": ""}).json()["tokens"] == []
    assert error_of(server.post("/detokenize", {"tokens": [99999]}))["param"] == "tokens"
    assert error_of(server.post("/tokenize", {"prompt": 1}))
    assert error_of(server.post("/tokenize", {"prompt": "x", "model": "nope"}), 404)
    info = server.client.get("/tokenizer_info").json()
    assert info["eos_token"] == "<|end|>" and info["bos_token"] is None and "messages" in info["chat_template"]


def test_drafts(server: LiveServer) -> None:
    stats = server.client.get("/debug/mtp_stats").json()
    assert stats["enabled"] is False and stats["total_draft_tokens"] == 0 and stats["acceptance_rate"] == 0


def test_pages(server: LiveServer) -> None:
    contract = server.client.get("/openapi.json")
    assert contract.content == files("atom_spec").joinpath("openapi.json").read_bytes()
    docs = server.client.get("/docs").text
    assert all(path in docs for path in json.loads(contract.content)["paths"])
    page = server.client.get("/")
    assert page.headers["content-type"].startswith("text/html") and MODEL in page.text and "http" not in page.text
    for path in ("/", "/metrics"):
        head = server.client.head(path)
        assert head.status_code == 200 and head.content == b""


def test_every_metric_of_the_table_is_scraped(server: LiveServer) -> None:
    server.chat(headers=script("ok"))
    response = server.client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain")
    found = {family.name: family.type for family in text_string_to_metric_families(response.text)}
    assert found == {metric.name: metric.kind for metric in METRICS}


def test_counts_of_a_request(server: LiveServer) -> None:
    before = samples(server)
    server.chat(headers=script("ok"))
    server.complete(headers=script("ok"), stream=True, max_tokens=2)
    server.client.get("/nothing")
    after = samples(server)

    def grown(name: str) -> float:
        return after.get(name, 0) - before.get(name, 0)

    chat, completions = "/v1/chat/completions", "/v1/completions"
    assert grown(f"atom:requests_total|{chat}|stop") == grown(f"atom:requests_total|{completions}|length") == 1
    assert grown(f"atom:requests_received_total|{chat}") == 1
    assert grown(f"atom:http_responses_total|{chat}|200") == grown("atom:http_responses_total|other|404") == 1
    assert grown("atom:generation_tokens_total") == 4 + 2
    assert grown(f"atom:request_generation_tokens_sum|{completions}") == 2
    assert grown(f"atom:time_to_first_token_seconds_count|{chat}") == 1
    assert grown(f"atom:inter_token_latency_seconds_count|{chat}") == 3
    assert grown(f"atom:request_latency_seconds_count|{chat}") == 1
    assert after["atom:requests_in_progress"] == 0 and after["atom:engine_up"] == 1
    assert after["atom:stream_longest_silence_seconds"] == 0


def test_gauges_while_a_stream_is_open(server: LiveServer) -> None:
    body = {"prompt": "x", "stream": True, "max_tokens": 3000}
    with server.client.stream("POST", "/v1/completions", json=body, headers=script("slow")) as response:
        lines = response.iter_lines()  # kept: a dropped iterator would close the connection
        next(lines)
        during = samples(server)
        assert during["atom:requests_running"] == during["atom:requests_in_progress"] == 1
        assert during["atom:stream_longest_silence_seconds"] > 0
    deadline = time.monotonic() + PATIENCE
    while samples(server)["atom:requests_in_progress"]:
        assert time.monotonic() < deadline


def test_undeclared_calls_are_counted(server: LiveServer) -> None:
    assert isinstance(server.serving, ScriptedServing)
    text = "<tool_call>\n<function=other>\n</function>\n</tool_call>"
    server.serving.scripts = (*server.serving.scripts, Script(id="undeclared", text=text, format="qwen"))
    tools = [{"type": "function", "function": {"name": "known"}}]
    before = samples(server)["atom:undeclared_tool_calls_total"]
    assert server.chat(tools=tools, headers=script("undeclared")).json()["choices"][0]["message"]["content"] == text
    assert samples(server)["atom:undeclared_tool_calls_total"] == before + 1


def test_the_request_log(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    with running(scripted("hi", request_log=file)) as live:
        live.chat(headers={"x-request-id": "a"})
        live.complete(stream=True, headers={"x-request-id": "b"})
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    kinds = {name: [line["type"] for line in lines if line["request_id"] == name] for name in "ab"}
    assert kinds["a"] == ["request", "response"]
    assert kinds["b"][:2] == ["request", "stream_chunk"] and kinds["b"][-1] == "stream_done"
    assert lines[0]["data"]["messages"][0]["content"] == "hi" and lines[0]["timestamp"] > 0
    assert lines[1]["data"]["choices"][0]["message"]["content"] == "hi"


@pytest.mark.parametrize("post", [LiveServer.chat, LiveServer.complete])
def test_long_work_on_a_text_leaves_the_event_loop(
    server: LiveServer, post: Callable[..., httpx.Response], monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a prompt is being tokenized, the server answers others."""
    encoding, go_on = threading.Event(), threading.Event()
    tokenizer = server.serving.tokenizer
    for name in ("encode", "encode_batch"):  # a prompt may be read in parts

        def slow(texts: str | list[str], *arguments: object, original: Callable[..., object], **more: object) -> object:
            if sum(map(len, texts)) > 10_000:
                encoding.set()
                assert go_on.wait(PATIENCE)
            return original(texts, *arguments, **more)

        monkeypatch.setattr(tokenizer, name, partial(slow, original=getattr(tokenizer, name)))
    results: list[int] = []
    thread = threading.Thread(target=lambda: results.append(post(server, "word " * 4_000).status_code))
    thread.start()
    assert encoding.wait(PATIENCE)
    assert server.client.get("/health").status_code == 200
    assert server.complete("short", headers=script("ok")).status_code == 200
    go_on.set()
    thread.join(PATIENCE)
    assert results == [400]
