"""The probes beside the project, one client each: what they check, with which engine, and what came of it.

Owns the list of probes and the table of results. Knows no server.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.clients.snippets import CLIENTS, ROOT

PROBES = Path(os.environ.get("ATOM_SHARED") or ROOT.parent / "shared") / "clients"
TOKENIZER = ROOT / "atom/builtin_model/atom_tiny"


@dataclass(frozen=True, slots=True)
class Probe:
    """A probe of one client. packages: what it drives, installed in `venv` or as node packages.

    engine: which of the servers it is run against. why: what the other one can not do.
    """

    name: str
    file: str
    packages: tuple[str, ...]
    venv: str = "venv"
    engine: str = "atom-tiny"
    why: str = ""


ROOM = "a prompt of 33,000 tokens and a context of 4,096"
LIST = (
    Probe("openai (Python)", "probe_openai.py", ("openai",)),
    Probe("anthropic (Python)", "probe_anthropic.py", ("anthropic",)),
    Probe("langchain", "probe_langchain.py", ("langchain-openai", "langchain-anthropic")),
    Probe("litellm", "probe_litellm.py", ("litellm",)),
    Probe(
        "instructor",
        "probe_instructor.py",
        ("instructor",),
        engine="scripted",
        why="`Mode.JSON` says the schema in words (atom-tiny: 5 of 6)",
    ),
    Probe("openai-agents", "probe_agents.py", ("openai-agents",)),
    Probe("pydantic-ai", "probe_pydantic_ai.py", ("pydantic-ai-slim",), "venv_pai"),
    Probe("lm-eval", "probe_lmeval.py", ("lm-eval",), "venv_lmeval"),
    Probe("openai (node)", "probe_openai.mjs", ("openai",), "node"),
    Probe("anthropic (node)", "probe_anthropic.mjs", ("@anthropic-ai/sdk",), "node"),
    Probe("guidellm", "probe_guidellm.sh", ("guidellm",), "venv_guide"),
    Probe("aiperf", "probe_aiperf.sh", ("aiperf",), "venv_aiperf"),
    Probe(
        "Claude Code, opencode, Codex",
        "probe_cli_agents.sh",
        ("@anthropic-ai/claude-code", "opencode-ai", "@openai/codex"),
        "cli",
        "scripted",
        ROOM,
    ),
)


@dataclass(frozen=True, slots=True)
class Result:
    """What a probe said: its lines, each beginning with PASS, FAIL or SKIP."""

    probe: Probe
    lines: tuple[str, ...]
    is_right: bool

    def count(self, word: str) -> int:
        """Lines that begin with it."""
        return sum(line.startswith(f"{word} ") for line in self.lines)


def run_probe(probe: Probe, url: str, model: str, seconds: float = 600.0) -> Result:
    """Run a probe against a server."""
    environment = dict(os.environ, BASE_URL=url, MODEL=model, TOKENIZER=str(TOKENIZER), CLI_DIR=str(CLIENTS / "cli"))
    environment |= {
        "GUIDELLM": str(CLIENTS / "venv_guide/bin/guidellm"),
        "AIPERF": str(CLIENTS / "venv_aiperf/bin/aiperf"),
    }
    command, folder = [f"./{probe.file}"], PROBES
    if probe.file.endswith(".py"):
        command = [str(CLIENTS / probe.venv / "bin/python"), probe.file]
    elif probe.file.endswith(".mjs"):
        folder = CLIENTS / "node"
        (folder / probe.file).write_bytes((PROBES / probe.file).read_bytes())
        command = ["node", probe.file]
    done = subprocess.run(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds
    )
    lines = tuple(line for line in done.stdout.splitlines() if re.match("(PASS|FAIL|SKIP) ", line))
    return Result(probe, lines, done.returncode == 0 and bool(lines))


def version_of(probe: Probe) -> str:
    """Versions of its packages."""
    if probe.venv in ("node", "cli"):
        files = [CLIENTS / probe.venv / "node_modules" / name / "package.json" for name in probe.packages]
        return ", ".join(str(json.loads(file.read_text(encoding="utf-8"))["version"]) for file in files)
    ask = "import sys; from importlib.metadata import version; print(', '.join(map(version, sys.argv[1:])))"
    python = CLIENTS / probe.venv / "bin/python"
    return subprocess.run(
        [python, "-c", ask, *probe.packages], capture_output=True, text=True, check=True
    ).stdout.strip()


def table(results: Sequence[Result]) -> str:
    """The results as Markdown; what was skipped is listed below."""
    lines = ["| client | version | checks | failed | skipped | engine |", "|---|---|---:|---:|---:|---|"]
    skipped: list[str] = []
    for result in results:
        probe = result.probe
        counts = [result.count(word) for word in ("PASS", "FAIL", "SKIP")]
        engine = f"{probe.engine}: {probe.why}" if probe.why else probe.engine
        checks = f"{counts[0]} of {sum(counts)}"
        lines.append(f"| {probe.name} | {version_of(probe)} | {checks} | {counts[1]} | {counts[2]} | {engine} |")
        skipped += [
            f"- {probe.name}: {line.removeprefix('SKIP ')}" for line in result.lines if line.startswith("SKIP ")
        ]
    return "\n".join(lines + (["", "Skipped:", "", *skipped] if skipped else []))
