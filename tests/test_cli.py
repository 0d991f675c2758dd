"""The `atom` command."""

from __future__ import annotations

import subprocess
import sys

import pytest

from atom.cli import main, serve_arguments


def test_a_leading_model_is_the_model_flag() -> None:
    assert serve_arguments(["atom-tiny", "--host", "x"]) == ["--model", "atom-tiny", "--host", "x"]
    assert serve_arguments(["--model", "m"]) == ["--model", "m"]
    assert serve_arguments([]) == []


@pytest.mark.parametrize("argv", [[], ["nonsense"]])
def test_a_command_is_needed(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(argv)
    assert stopped.value.code == 2 and "atom serve" in capsys.readouterr().err


def test_serve_is_the_module() -> None:
    commands = (
        ["-m", "atom.cli", "serve", "--no-such-flag"],
        ["-m", "atom.entrypoints.openai_server", "--no-such-flag"],
    )
    results = [subprocess.run([sys.executable, *command], capture_output=True, text=True) for command in commands]
    assert results[0].returncode == results[1].returncode == 2
    assert results[0].stderr == results[1].stderr and "--no-such-flag" in results[0].stderr
