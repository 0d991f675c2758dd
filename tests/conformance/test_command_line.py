"""The command: what it runs, what it writes, how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance.__main__ import main

RIGHT = {
    "id": "right",
    "format": "hermes",
    "tools": [{"type": "function", "function": {"name": "now", "parameters": {}}}],
    "text": 'So: <tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>',
    "starts_in_reasoning": False,
    "engine_finish": "stop",
    "expect": {
        "content": "So: ",
        "reasoning_content": None,
        "tool_calls": [{"name": "now", "arguments": {}}],
        "finish_reason": "tool_calls",
    },
    "why": "one call behind text",
    "splits": [6, 20],
}
WRONG = {**RIGHT, "id": "wrong", "expect": {**RIGHT["expect"], "content": "So:"}}


def _vectors(folder: Path, *rows: object) -> str:
    (folder / "hermes.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return str(folder)


def test_exact_vectors_end_with_0_and_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "report"
    assert main(["--corpus", _vectors(tmp_path, RIGHT), "--report", str(report)]) == 0
    assert "| hermes | 1 | 1/1 | 0/0 | 8 |" in capsys.readouterr().out
    assert sorted(path.name for path in report.iterdir()) == ["conformance.html", "conformance.json", "conformance.md"]
    assert json.loads((report / "conformance.json").read_text(encoding="utf-8"))["green"] is True


def test_a_miss_ends_with_1_and_shows_both_texts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--corpus", _vectors(tmp_path, RIGHT, WRONG), "--report", str(tmp_path / "report")]) == 1
    out = capsys.readouterr().out
    assert "| hermes | 2 | 1/2 | 0/0 | 16 |" in out
    assert "miss wrong at whole" in out
    assert "wanted content 'So:'" in out
    assert "got    content 'So: '" in out


def test_a_bad_vector_ends_with_2_and_names_the_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--corpus", _vectors(tmp_path, RIGHT, {"id": "bad"}), "--report", str(tmp_path / "report")]) == 2
    assert "hermes.jsonl:2" in capsys.readouterr().err


def test_a_vector_of_an_unknown_format_ends_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--corpus", _vectors(tmp_path, {**RIGHT, "format": "morse"}), "--report", str(tmp_path)]) == 2
    assert "'morse'" in capsys.readouterr().err


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(SystemExit, match=r"'morse' is none of .*hermes"):
        main(["--format", "morse"])


def test_one_subject_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--format", "reasoning think", "--jobs", "1", "--seed", "5", "--report", str(tmp_path)]
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert out.startswith("reasoning think")
    assert "seed 5" in out
