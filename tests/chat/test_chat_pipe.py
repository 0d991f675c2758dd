"""The terminal chat without a terminal: one question from a pipe, against a live server."""

from __future__ import annotations

import io
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from atom.chat.main import main
from atom.entrypoints.scripted.script import Script
from tests.entrypoints.live import PATIENCE, running, scripted

CALL = "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n</function>\n</tool_call>"


def ask(monkeypatch: pytest.MonkeyPatch, url: str, *flags: str, question: str = "hi\n") -> int:
    """The exit code of `echo QUESTION | atom chat`, run in this process."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(question))
    try:
        main(["--base-url", url, *flags])
    except SystemExit as stopped:
        return int(stopped.code or 0)
    return 0


def test_a_pipe_of_the_shell(tmp_path: Path) -> None:
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps([{"type": "function", "function": {"name": "get_weather"}}]))
    with running(scripted(Script(text=f"<think>Hm.</think>Looking — now. {CALL}", byte_chunk=1))) as live:
        command = [sys.executable, "-m", "atom.cli", "chat", "--base-url", live.url, "--tools", str(tools)]
        done = subprocess.run(
            command, input=b"weather?\n", capture_output=True, timeout=PATIENCE, env=os.environ | {"PYTHONUTF8": "1"}
        )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.decode().splitlines()
    assert lines[0].rstrip() == "Looking — now."
    assert json.loads(lines[1]) == {"name": "get_weather", "arguments": {"city": "Oslo"}}
    assert done.stderr.decode() == "Hm.\n"


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_bytes_that_are_no_text(locale: str) -> None:
    with running(scripted()) as live:
        command = [sys.executable, "-m", "atom.cli", "chat", "--base-url", live.url]
        env = {name: value for name, value in os.environ.items() if name != "PYTHONUTF8"} | {"LC_ALL": locale}
        done = subprocess.run(command, input=b"caf\xe9?\n", capture_output=True, timeout=PATIENCE, env=env)
    assert done.returncode == 1 and b"standard input is no text in utf-8" in done.stderr


def test_no_server(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody answers here
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        assert ask(monkeypatch, url) == 1
    said = capsys.readouterr().err
    assert url in said and "refused" in said and "atom serve" in said


def test_keys(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with running(scripted("Hello.", api_key=("secret",))) as live:
        assert ask(monkeypatch, live.url) == 1
        assert "--api-key" in capsys.readouterr().err
        assert ask(monkeypatch, live.url, "--api-key", "secret") == 0
        monkeypatch.setenv("OPENAI_API_KEY", "secret")
        assert ask(monkeypatch, live.url) == 0
    assert capsys.readouterr().out == "Hello.\nHello.\n"


def test_refusals_and_faults(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    broken = Script(text="This will not end well.", chunk=4, fault_after=3)
    with running(scripted(broken)) as live:
        assert ask(monkeypatch, live.url, "--model", "absent") == 1
        said = capsys.readouterr().err
        assert "absent" in said and "scripted" in said
        assert ask(monkeypatch, live.url, question=" \n") == 1
        assert "nothing was asked" in capsys.readouterr().err
        assert ask(monkeypatch, live.url) == 1
        captured = capsys.readouterr()
        assert captured.out.startswith("This will no") and "error" in captured.err
        assert ask(monkeypatch, live.url + "/docs") == 1
        assert "--base-url" in capsys.readouterr().err


def test_a_limit_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with running(scripted(Script(text="One two three four", chunk=4))) as live:
        assert ask(monkeypatch, live.url, "--max-tokens", "2") == 0
    captured = capsys.readouterr()
    assert captured.out == "One two \n" and "cut off at the token limit" in captured.err
