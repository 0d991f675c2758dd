"""The shape of the code: small files, short functions, a docstring that says what a module owns."""

from __future__ import annotations

import ast
import os
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("atom", "benchmarks", "conformance", "spec", "tests", "tools")
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
MAX_MEDIAN_LINES = 160


def _files() -> list[Path]:
    return [path for folder in SOURCES for path in sorted((ROOT / folder).rglob("*.py")) if path.stat().st_size]


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def oversized(path: Path) -> list[str]:
    """What is too large in one file: one line a finding."""
    text = path.read_text(encoding="utf-8")
    lines = text.count("\n")
    found = [f"{path}: {lines} lines (at most {MAX_FILE_LINES})"] if lines > MAX_FILE_LINES else []
    for node in _functions(ast.parse(text)):
        length = (node.end_lineno or node.lineno) - node.lineno + 1
        if length > MAX_FUNCTION_LINES:
            found.append(f"{path}:{node.lineno}: {node.name} has {length} lines (at most {MAX_FUNCTION_LINES})")
    return found


def test_no_file_and_no_function_is_too_long() -> None:
    assert [finding for path in _files() for finding in oversized(path)] == []


def test_the_check_sees_a_long_file_and_a_long_function(tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    body = "\n".join("    x = 1" for _ in range(MAX_FUNCTION_LINES))
    bad.write_text(f"def f():\n{body}\n" + "y = 2\n" * MAX_FILE_LINES)
    assert len(oversized(bad)) == 2


def test_files_are_short_on_the_median() -> None:
    lengths = [path.read_text(encoding="utf-8").count("\n") for path in _files() if "tests" not in path.parts]
    assert statistics.median(lengths) <= MAX_MEDIAN_LINES


@pytest.mark.parametrize("folder", ["atom", "benchmarks", "conformance", "spec", "tools"])
def test_every_module_says_what_it_owns(folder: str) -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in _files()
        if path.relative_to(ROOT).parts[0] == folder and not ast.get_docstring(ast.parse(path.read_text("utf-8")))
    ]
    assert silent == []


def test_no_machine_path_and_no_registry_in_committed_text() -> None:
    needles = ("/wo" + "rk/", "/ro" + "ot/", "/ho" + "me/")
    suffixes = {".py", ".md", ".yaml", ".toml", ".json", ".jinja", ".html", ".js", ".txt"}
    caches = {".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", ".cache"}
    skipped = {".venv", ".git", "tokenizer.json", *caches}
    found = []
    for folder, folders, names in os.walk(ROOT):  # which forgives what other tests make and remove meanwhile
        folders[:] = [name for name in folders if name not in skipped]
        for path in (Path(folder, name) for name in names if Path(name).suffix in suffixes and name not in skipped):
            text = path.read_text(encoding="utf-8", errors="replace")
            found += [f"{path.relative_to(ROOT)}: {needle}" for needle in needles if needle in text]
    assert found == []
