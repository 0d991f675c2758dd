"""The snippets of docs/clients.md: taken out of the page, and run with the client that each is about.

Owns the page's marks and where each client is installed. Knows no server.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/clients.md"
CLIENTS = Path(os.environ.get("CLIENTS_DIR") or Path.home() / ".cache/atom-clients")  # as the probes' install.sh has it
AGENTS = {  # by command: agents, which need a large context; the program inside the folder of packages
    "claude": "@anthropic-ai/claude-code-linux-x64/claude",
    "codex": "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
    "opencode": "opencode-linux-x64/bin/opencode",
}
NEEDS_ROOM = ("claude-code", "codex", "opencode")
_VENVS = {"pydantic-ai": "venv_pai", "lm-eval": "venv_lmeval", "guidellm": "venv_guide", "aiperf": "venv_aiperf"}
_SNIPPET = re.compile(r"<!-- snippet: (\S+) -->\n```(\w+)\n(.*?)```\n", re.DOTALL)
_QUIET = {
    "DO_NOT_TRACK": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_AUTOUPDATER": "1",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
}
_QUIET |= {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1", "NO_PROXY": "*"}


@dataclass(frozen=True, slots=True)
class Snippet:
    """A block of code, the client that it is about, and its language: python, js or bash."""

    client: str
    language: str
    code: str


def snippets(page: str) -> list[Snippet]:
    """The marked blocks of the page, in order."""
    return [Snippet(*found) for found in _SNIPPET.findall(page)]


def run_snippet(snippet: Snippet, home: Path, seconds: float = 120.0) -> subprocess.CompletedProcess[str]:
    """Run it as it stands, with its client, a home folder of its own, and no other settings. It must end with 0."""
    venv = CLIENTS / _VENVS.get(snippet.client, "venv") / "bin"
    environment = {"HOME": str(home), "PATH": f"{venv}:{agent_commands(home)}:/usr/bin:/bin", "TERM": "dumb", **_QUIET}
    folder = home if snippet.client in NEEDS_ROOM else ROOT
    if snippet.language == "js":
        node = _command_of("node")
        return _run([node, "--input-type=module", "-e", snippet.code], CLIENTS / "node", environment, seconds)
    if snippet.language == "python":
        return _run([str(venv / "python"), "-c", snippet.code], folder, environment, seconds)
    return _run(["bash", "-euo", "pipefail", "-c", snippet.code], folder, environment, seconds)


def agent_commands(home: Path) -> Path:
    """A folder with the agents under the names that people call them by."""
    folder = home / "bin"
    folder.mkdir(exist_ok=True)
    for name, program in AGENTS.items():
        link = folder / name
        if not link.is_symlink():
            link.symlink_to(CLIENTS / "cli/node_modules" / program)
    return folder


def _command_of(name: str) -> str:
    found = subprocess.run(["which", name], capture_output=True, text=True, check=False).stdout.strip()
    return found or name


def _run(
    command: list[str], folder: Path, environment: Mapping[str, str], seconds: float
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds
    )
