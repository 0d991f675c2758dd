"""`python -m tools.clients`: run the snippets of docs/clients.md and the probes, and write the page's table.

Owns the servers that they talk to: atom-tiny at the port that the page names, and scripted ones.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tools.clients.probes import LIST, Result, run_probe, table
from tools.clients.snippets import NEEDS_ROOM, PAGE, Snippet, run_snippet, snippets

PORT = 8000  # the page's
CALL = "<tool_call>\n<function=City>\n<parameter=city>\nParis\n</parameter>\n"
CALL += "<parameter=population>\n2100000\n</parameter>\n</function>\n</tool_call>"
JSON = '{"city": "Paris", "population": 2100000}'
# In the order of the probe: tools, JSON, JSON of a schema, strict tools, a partial stream, Anthropic's tools.
SCRIPTS = {"instructor": (CALL, JSON, JSON, CALL, CALL.replace("City", "PartialCity"), CALL)}
ROOMY = ("--max-model-len", "200000")


def main() -> int:
    """The command; 0 when nothing failed."""
    parser = argparse.ArgumentParser(prog="python -m tools.clients", description=__doc__)
    parser.add_argument("--only", default="", help="run what has this in its client's name, and leave the table alone")
    parser.add_argument("--part", choices=("snippets", "probes"), help="one of the two")
    arguments = parser.parse_args()
    chosen = [one for one in snippets(PAGE.read_text(encoding="utf-8")) if arguments.only in one.client]
    wrong = 0
    if arguments.part != "probes":
        wrong += _snippets([one for one in chosen if one.client not in NEEDS_ROOM], _atom_tiny())
        agents = [one for one in chosen if one.client in NEEDS_ROOM]
        wrong += _snippets(agents, _scripted(("Hello there.",), "--model-name", "my-model", *ROOMY))
    if arguments.part != "snippets":
        results = _probes(arguments.only)
        wrong += sum(not result.is_right for result in results)
        if not arguments.only:
            _write(table(results))
    return 1 if wrong else 0


def _snippets(chosen: Sequence[Snippet], command: Sequence[str]) -> int:
    """Run them; the number of those that failed."""
    wrong = 0
    if not chosen:
        return 0
    with _serving(command), tempfile.TemporaryDirectory() as home:
        for snippet in chosen:
            done = run_snippet(snippet, Path(home))
            is_right = done.returncode == 0 and bool(done.stdout.strip())
            wrong += not is_right
            said = done.stdout.strip()[-300:] if is_right else done.stdout[-1000:] + done.stderr[-2000:]
            print(
                f"{'PASS' if is_right else 'FAIL'} snippet {snippet.client} ({snippet.language})\n{said}\n", flush=True
            )
    return wrong


def _probes(only: str) -> list[Result]:
    results: dict[str, Result] = {}
    chosen = [probe for probe in LIST if only in probe.name]
    for engine in ("atom-tiny", "scripted"):
        for probe in chosen:
            if probe.engine != engine:
                continue
            texts = SCRIPTS.get(probe.name, ("Hello there.",))
            command = _atom_tiny() if engine == "atom-tiny" else _scripted(texts, *ROOMY)
            with _serving(command):
                result = run_probe(probe, f"http://127.0.0.1:{PORT}", engine)
            results[probe.name] = result
            print(f"== {probe.name} ({engine})", *result.lines, sep="\n", flush=True)
            if not result.is_right:
                print(f"FAIL {probe.name}", flush=True)
    return [results[probe.name] for probe in chosen]


def _atom_tiny() -> list[str]:
    return ["atom.entrypoints.openai_server", "--model", "atom-tiny", "--server-port", str(PORT)]


def _scripted(texts: Sequence[str], *flags: str) -> list[str]:
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", delete=False) as file:
        file.writelines(json.dumps({"text": text}) + "\n" for text in texts)
    return ["atom.entrypoints.scripted_server", "--script", file.name, "--server-port", str(PORT), *flags]


@contextmanager
def _serving(command: Sequence[str]) -> Iterator[None]:
    """A server at the page's port."""
    run = [sys.executable, "-m", *command, "--host", "127.0.0.1", "--disable-uvicorn-access-log"]
    if _is_up():
        raise RuntimeError(f"another server answers at port {PORT}; the page's snippets would talk to that one")
    process = subprocess.Popen(run, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 120
        while not _is_up():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"no server at port {PORT}: {' '.join(run)}")
            time.sleep(0.2)
        yield
    finally:
        process.terminate()
        process.wait(60)


def _is_up() -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health", timeout=5):
            return True
    except OSError:
        return False


def _write(results: str) -> None:
    begin, end = "<!-- results -->\n", "<!-- /results -->"
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(begin)
    PAGE.write_text(before + begin + results + "\n" + end + rest.partition(end)[2], encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
