"""The engine's process never outlives its parent, and the terminal's signals are the parent's to handle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import psutil
import pytest

from atom.model_engine.engine_process import ChildProcess, resolve

# Seconds after which something that has to happen has failed to; far more than any machine needs.
PATIENCE = 120.0
ROOT = Path(__file__).resolve().parents[2]


def sleep_forever(note: str) -> None:
    Path(note).write_text(str(os.getpid()))
    time.sleep(600)


def exit_with(code: int) -> None:
    raise SystemExit(code)


def written(note: Path) -> int:
    deadline = time.monotonic() + PATIENCE
    while not note.exists() or not note.read_text():
        assert time.monotonic() < deadline, "the child did not start"
        time.sleep(0.005)
    return int(note.read_text())


def is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def gone(pid: int, seconds: float) -> bool:
    """Whether the process ends within so many seconds."""
    deadline = time.monotonic() + seconds
    while not is_gone(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_the_child_dies_with_its_parent(tmp_path: Path, how: signal.Signals) -> None:
    note = tmp_path / "pid"
    script = textwrap.dedent(
        f"""
        import time
        from atom.model_engine.engine_process import ChildProcess
        child = ChildProcess("tests.model_engine.test_engine_process:sleep_forever", ({str(note)!r},), print)
        time.sleep(600)
        """
    )
    parent = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT)
    child = written(note)
    assert not gone(child, 0.05)
    parent.send_signal(how)
    parent.wait(PATIENCE)
    assert gone(child, PATIENCE)


def test_the_child_ignores_the_terminals_signals_and_dies_when_killed(tmp_path: Path) -> None:
    codes: list[int] = []
    exited = threading.Event()
    note = tmp_path / "pid"
    entry = "tests.model_engine.test_engine_process:sleep_forever"
    child = ChildProcess(entry, (str(note),), lambda code: (codes.append(code), exited.set())[0])
    assert written(note) == child.pid
    for ignored in (signal.SIGINT, signal.SIGTERM):
        os.kill(child.pid, ignored)
    assert not gone(child.pid, 0.2)
    assert child.is_running
    child.kill()
    assert exited.wait(PATIENCE)
    child.close()
    assert (codes, child.is_running) == ([-signal.SIGKILL], False)


def test_the_exit_code_is_reported() -> None:
    codes: list[int] = []
    exited = threading.Event()
    entry = "tests.model_engine.test_engine_process:exit_with"
    child = ChildProcess(entry, (4,), lambda code: (codes.append(code), exited.set())[0])
    assert exited.wait(PATIENCE)
    child.close()
    assert codes == [4]


def test_the_child_imports_neither_the_parents_main_module_nor_torch() -> None:
    script = "import sys, json; import atom.model_engine.engine_process; print('torch' in sys.modules)"
    output = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert output.strip() == "False"


@pytest.mark.parametrize("module", ["engine_client", "engine_core", "scheduler", "block_manager", "llm_engine"])
def test_the_torch_free_side_is_torch_free(module: str) -> None:
    script = f"import sys; import atom.model_engine.{module}; print('torch' in sys.modules)"
    output = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert output.strip() == "False"


@pytest.mark.parametrize("name", ["os", ":path", "os:"])
def test_a_dotted_string_names_module_and_attribute(name: str) -> None:
    with pytest.raises(ValueError, match="not of the form module:attribute"):
        resolve(name)
    assert resolve("os:getpid") is os.getpid
