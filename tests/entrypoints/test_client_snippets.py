"""The snippets of docs/clients.md for clients that are installed here, run as the page has them against a live server.

The others need clients of their own: `python -m tools.clients`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from atom.entrypoints.scripted.script import Script
from tests.entrypoints.live import MODEL, PATIENCE, LiveServer, running, scripted
from tools.clients.snippets import PAGE, Snippet, snippets

SNIPPETS = snippets(PAGE.read_text(encoding="utf-8"))
HERE = ("curl", "openai", "anthropic")
SAID = {"curl": 3, "openai": 3, "anthropic": 2}  # answers that a snippet shows in one piece


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with running(scripted(Script(text="<think>Carry one.</think>The answer is 42."))) as live:
        yield live


def test_every_section_has_its_snippet() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page.count("<!-- snippet:") == len(SNIPPETS) >= 17
    assert {snippet.client for snippet in SNIPPETS} >= {*HERE, "node", "litellm", "llm", "codex", "claude-code"}
    for snippet in SNIPPETS:
        assert "127.0.0.1:8000" in snippet.code, snippet.client


@pytest.mark.parametrize("snippet", [one for one in SNIPPETS if one.client in HERE], ids=lambda one: one.client)
def test_it_runs_as_it_stands(server: LiveServer, snippet: Snippet) -> None:
    code = snippet.code.replace("http://127.0.0.1:8000", server.url).replace("atom-tiny", MODEL)
    command = [sys.executable, "-c", code] if snippet.language == "python" else ["bash", "-euo", "pipefail", "-c", code]
    environment = {**os.environ, "NO_PROXY": "*"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("The answer is 42.") == SAID[snippet.client], done.stdout
    assert "Carry one." in done.stdout
