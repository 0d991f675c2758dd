"""The terminal chat in a pseudo terminal, against a live server: what a person sees and what the keys do."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from atom.entrypoints.scripted.script import Script
from tests.chat.terminal import ALT_ENTER, CTRL_C, CTRL_D, ENTER, UP, Terminal, chat_terminal
from tests.chat.test_chat_pipe import CALL
from tests.entrypoints.live import PATIENCE, LiveServer, running, scripted

PASTE = "\x1b[200~{}\x1b[201~"


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def wait_until_idle(live: LiveServer) -> None:
    until(lambda: len(live.serving.work) == 0)


def leave(terminal: Terminal) -> None:
    terminal.wait_for(">")
    terminal.type(CTRL_D)
    assert terminal.end() == 0


def test_a_conversation_with_a_tool(tmp_path: Path) -> None:
    tools, saved = tmp_path / "tools.json", tmp_path / "saved.json"
    tools.write_text(json.dumps([{"type": "function", "function": {"name": "get_weather"}}]))
    with (
        running(scripted(f"<think>A tool fits.</think>{CALL}", "Fine.")) as live,
        chat_terminal("--base-url", live.url) as terminal,
    ):
        assert "scripted at" in terminal.wait_for(">")
        terminal.type(f"/tools {tools}{ENTER}")
        terminal.wait_for("tools: get_weather")
        terminal.type(f"Weather?{ENTER}")
        terminal.wait_for("A tool fits.")
        assert "╭─ get_weather" in terminal.wait_for('│ {"city":"Oslo"}')
        terminal.wait_for("result of get_weather>")
        terminal.type(f"18 degrees{ENTER}")
        terminal.wait_for("Fine.")
        terminal.type(f"/save {saved}{ENTER}")
        terminal.wait_for("saved to")
        leave(terminal)
        assert "\x1b[2mA" in terminal.raw
    messages = json.loads(saved.read_text())["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant"]
    assert messages[2]["content"] == "18 degrees"


def test_an_interrupt_ends_the_answer_at_the_server_and_keeps_the_session() -> None:
    slow = Script(text="word " * 5000, chunk=5, delay=0.05)
    late = Script(text="never seen", first_delay=60)
    with running(scripted(slow, late, "Second.")) as live, chat_terminal("--base-url", live.url) as terminal:
        terminal.wait_for(">")
        terminal.type(f"Go on.{ENTER}")
        terminal.wait_for("word word")
        terminal.type(CTRL_C)
        terminal.wait_for("interrupted")
        wait_until_idle(live)
        until(lambda: 'outcome="aborted"' in live.client.get("/metrics").text)
        terminal.wait_for(">")
        terminal.type(f"Again.{ENTER}")  # nothing comes of this one before it is interrupted
        until(lambda: len(live.serving.work) == 1)
        terminal.type(CTRL_C)
        terminal.wait_for("interrupted")
        wait_until_idle(live)
        terminal.wait_for(">")
        terminal.type(CTRL_C)  # at the prompt it empties the line
        terminal.type(f"And now?{ENTER}")
        terminal.wait_for("Second.")
        leave(terminal)


def test_history_and_text_of_several_lines(tmp_path: Path) -> None:
    saved = tmp_path / "saved.json"
    with running(scripted("One.", "Two.", "Three.")) as live, chat_terminal("--base-url", live.url) as terminal:
        terminal.wait_for(">")
        terminal.type(PASTE.format("def f():\n    return 1") + ENTER)
        terminal.wait_for("One.")
        terminal.wait_for(">")
        terminal.type(f"a{ALT_ENTER}b{ENTER}")
        terminal.wait_for("Two.")
        terminal.wait_for(">")
        terminal.type(UP)
        terminal.wait_for("a")
        terminal.type(ENTER)
        terminal.wait_for("Three.")
        terminal.wait_for(">")
        terminal.type(f"/save {saved}{ENTER}")
        terminal.wait_for("saved to")
        leave(terminal)
    questions = [message["content"] for message in json.loads(saved.read_text())["messages"][::2]]
    assert questions == ["def f():\n    return 1", "a\nb", "a\nb"]


def test_errors_keep_the_session() -> None:
    with (
        running(scripted(Script(text="No.", fault_after=0), "Yes.")) as live,
        chat_terminal("--base-url", live.url) as terminal,
    ):
        terminal.wait_for(">")
        terminal.type(f"/nonsense{ENTER}")
        terminal.wait_for("error: there is no /nonsense")
        terminal.type(f"first{ENTER}")
        terminal.wait_for("error: ")
        terminal.wait_for(">")
        terminal.type(f"second{ENTER}")
        terminal.wait_for("Yes.")
        leave(terminal)
