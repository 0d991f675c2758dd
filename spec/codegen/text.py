"""Turning tables into source text: the header, ruff's formatting, literals. Knows no contract."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

LINE_LENGTH = 120


def python_header(sources: str, docstring: str) -> str:
    """First lines of a generated module. `sources`: the spec files it derives from, as a reader would name them."""
    return f'# Derived from {sources} by spec/codegen; edit that and run `make generate`.\n"""{docstring}"""\n\n'


def markdown_header(sources: str) -> str:
    """First lines of a generated page."""
    return f"<!-- Derived from {sources} by spec/codegen; edit that and run `make generate`. -->\n\n"


def format_python(text: str) -> str:
    """`text` as ruff formats it (line length 120), the same on every machine with the pinned ruff."""
    # The console script stands beside the interpreter; `python -m ruff` looks in more places and is slower.
    beside = Path(sys.executable).with_name("ruff")
    command = [str(beside)] if beside.exists() else [sys.executable, "-m", "ruff"]
    arguments = ["format", "--isolated", "--line-length", str(LINE_LENGTH), "--target-version", "py311", "-"]
    done = subprocess.run(
        [*command, *arguments], input=text, capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"}
    )
    if done.returncode != 0:
        raise RuntimeError(f"ruff can not format generated code: {done.stderr.strip()}")
    return done.stdout


def markdown_table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table; `|` in a cell is escaped, a newline becomes a space."""
    lines = ["| " + " | ".join(header) + " |"]
    lines.append("|" + "---|" * (lines[0].count(" | ") + 1))
    lines += ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
