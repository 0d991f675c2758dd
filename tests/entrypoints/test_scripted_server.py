"""The scripted server: what a script may say, and that it is played over real HTTP."""

from __future__ import annotations

import json
import logging
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from atom.entrypoints.openai import lifecycle
from atom.entrypoints.openai_server import address_of
from atom.entrypoints.scripted.script import Script, load_scripts
from atom.entrypoints.scripted.tokens import ScriptedTokenizer
from atom.entrypoints.scripted_server import build_serving, main
from tests.entrypoints.live import PATIENCE, LiveServer, error_of, running, script, server_config, stream_json
from tests.fakes.byte_tokenizer import byte_tokenizer

GLM = "Wait.<tool_call>get_weather<arg_key>city</arg_key><arg_value>Oslo</arg_value></tool_call>"
HARMONY = (
    "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather"
    ' <|constrain|>json<|message|>{"city":"Oslo"}<|call|>'
)
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}]
SCRIPTS = [
    Script(id="plain", text="Grüße, 😀!"),
    Script(id="bytes", text="Grüße, 😀!", byte_chunk=1),
    Script(id="cuts", text="abcdef", cuts=[1, 4]),
    Script(id="glm", text=GLM, format="glm", chunk=1),
    Script(id="open", text="still thinking</think>done", starts_in_reasoning=True),
    Script(id="no dialect", text="<think>x</think>y", dialect=None),
    Script(id="template", text="ok", chat_template="{% for m in messages %}[{{ m.content }}]{% endfor %}"),
    Script(id="harmony", text=HARMONY, format="harmony", dialect="harmony", chunk=7),
    Script(id="cut", text="abc", finish_reason="length"),
    Script(id="broken", text="abcdef", chunk=1, fault_after=2),
]


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with running(build_serving(SCRIPTS, server_config())) as live:
        yield live


def message(server: LiveServer, name: str, **fields: Any) -> dict[str, Any]:
    body: dict[str, Any] = server.chat(headers=script(name), **fields).json()
    return {**body["choices"][0]["message"], "finish_reason": body["choices"][0]["finish_reason"]}


def texts(server: LiveServer, name: str) -> list[str]:
    chunks = stream_json(server.complete(stream=True, headers=script(name)))
    return [text for chunk in chunks if (text := chunk["choices"][0]["text"])]


def test_texts_and_cuts(server: LiveServer) -> None:
    assert "".join(texts(server, "plain")) == "Grüße, 😀!" and 1 < len(texts(server, "plain")) < 10
    assert texts(server, "bytes") == list("Grüße, 😀!")
    assert texts(server, "cuts") == ["a", "bcd", "ef"]
    assert server.complete(headers=script("bytes")).json()["usage"]["completion_tokens"] == len("Grüße, 😀!".encode())


def test_formats_and_dialects_of_a_script(server: LiveServer) -> None:
    glm = message(server, "glm", tools=TOOLS)
    assert glm["content"] == "Wait." and glm["finish_reason"] == "tool_calls"
    assert glm["tool_calls"][0]["function"] == {"name": "get_weather", "arguments": '{"city":"Oslo"}'}
    opened = message(server, "open")
    assert (opened["reasoning_content"], opened["content"]) == ("still thinking", "done")
    assert message(server, "no dialect")["content"] == "<think>x</think>y"
    harmony = message(server, "harmony", tools=TOOLS)
    assert harmony["reasoning"] == "Hm." and json.loads(harmony["tool_calls"][0]["function"]["arguments"]) == {
        "city": "Oslo"
    }


def test_a_template_of_a_script(server: LiveServer) -> None:
    from atom.entrypoints.scripted.serving import ScriptedServing

    assert isinstance(server.serving, ScriptedServing)
    assert message(server, "template")["content"] == "ok"
    ids = server.serving.scripted_engine.requests[-1].prompt_token_ids
    assert server.serving.tokenizer.decode(ids) == "[hi]"


def test_ends_and_faults(server: LiveServer) -> None:
    assert message(server, "cut")["finish_reason"] == "length"
    assert error_of(server.chat(headers=script("broken")), 500)
    assert server.complete(stream=True, headers=script("broken")).text.count('"text":') == 2


def test_in_turn_and_by_name(server: LiveServer) -> None:
    with running(build_serving([Script(text="one"), Script(text="two")], server_config())) as own:
        answers = [own.complete().json()["choices"][0]["text"] for _ in range(3)]
    assert answers == ["one", "two", "one"]
    assert "plain" in error_of(server.chat(headers=script("nope")))["message"]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"text": "a", "txt": 1}', "txt"),
        ('{"text": 1}', "text"),
        ("{}", "text"),
        ('{"text": "a", "chunk": 0}', "chunk"),
        ('{"text": "a", "chunk": 1, "byte_chunk": 1}', "at most one"),
        ('{"text": "a", "cuts": [1]}', "cuts"),
        ('{"text": "a", "delay": -1}', "delay"),
        ('{"text": "a", "id": "x"}', "taken"),
        ("nonsense", "line 2"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, line: str, problem: str) -> None:
    file = tmp_path / "s.jsonl"
    file.write_text('{"text": "fine", "id": "x"}\n' + line)
    with pytest.raises(ValueError, match=problem):
        load_scripts(file)


@pytest.mark.parametrize("wrong", [{"format": "nope"}, {"dialect": "nope"}, {"chat_template": "{% if %}"}])
def test_names_that_do_not_exist(wrong: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"script s1: "):
        build_serving([Script(text="x", id="s1", **wrong)], server_config())


def test_pieces_are_ids_of_an_ordinary_tokenizer() -> None:
    tokenizer = byte_tokenizer(ScriptedTokenizer)
    ids = tokenizer.ids_of(Script(text="aé" * 3, byte_chunk=2))
    assert min(ids) >= tokenizer.vocab_size and tokenizer.decode(ids) == "aé" * 3
    assert tokenizer.ids_of(Script(text="aé" * 3, byte_chunk=2)) == ids
    assert tokenizer.ids_of(Script(text="ab")) == [97, 98]


def test_the_command(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    (tmp_path / "own.jinja").write_text("own template")
    file.write_text(json.dumps({"text": "scripted", "chat_template": "own.jinja"}) + "\n")
    command = [sys.executable, "-m", "atom.entrypoints.scripted_server", "--host", "127.0.0.1", "--script"]
    refused = subprocess.run([*command, str(tmp_path / "none.jsonl")], capture_output=True, text=True, timeout=PATIENCE)
    assert refused.returncode == 2 and "none.jsonl" in refused.stderr and "Traceback" not in refused.stderr
    process = subprocess.Popen([*command, str(file), "--port", "0"], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        line = next(line for line in process.stderr if "scripts at http" in line)
        with httpx.Client(base_url=line.split(" at ")[1].strip(), timeout=PATIENCE) as client:
            messages = [{"role": "user", "content": "x"}]
            body = client.post("/v1/chat/completions", json={"model": "scripted", "messages": messages}).json()
        assert body["choices"][0]["message"]["content"] == "scripted"
        process.terminate()
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def test_the_address_is_told_when_clients_can_connect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the server itself is not at work yet."""
    reached: list[str] = []

    class Client(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            host, port = record.getMessage().rpartition("http://")[2].split(":")
            socket.create_connection((host, int(port)), PATIENCE).close()
            reached.append(host)

    async def serve(*_: object) -> int:
        return 0

    file = tmp_path / "s.jsonl"
    file.write_text('{"text": "fine"}')
    client = Client()
    monkeypatch.setattr(lifecycle, "serve", serve)
    monkeypatch.setattr(logging.getLogger("atom.scripted"), "handlers", [client])
    monkeypatch.setattr(logging.getLogger("atom.scripted"), "level", logging.INFO)
    with pytest.raises(SystemExit) as stopped:
        main(["--script", str(file), "--host", "127.0.0.1", "--port", "0"])
    assert (stopped.value.code, reached) == (0, ["127.0.0.1"])


def test_addresses() -> None:
    with lifecycle.bind_socket("127.0.0.1", 0) as bound:
        assert address_of(bound).startswith("http://127.0.0.1:")
