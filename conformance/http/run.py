"""Runs of schemathesis over the contract against a server, and their verdict.

Owns the command line and the reading of the reports. Knows nothing of how the server was started.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

_HERE = Path(__file__).parent
ROOT = _HERE.parents[1]
CONFIG = _HERE / "schemathesis.toml"
CONTRACT = ROOT / "spec" / "openapi.yaml"
_COUNTS_VARIABLE = "CONFORMANCE_COUNTS"  # hooks.py reads it; importing that imports schemathesis


@dataclass(frozen=True, slots=True)
class Draw:
    """What one run draws. filters: more options of schemathesis, such as --include-path."""

    name: str
    phases: tuple[str, ...]
    num_examples: int = 1
    filters: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a run. findings: a line each for failures, errors and warnings. streams: checked ones by operation.

    refusals: how often each entry of x-refusals was met.
    """

    num_operations: int
    num_tested: int
    num_cases: int
    num_failures: int
    seed: int
    seconds: float
    findings: tuple[str, ...]
    streams: Mapping[str, int]
    refusals: Mapping[str, int]

    @property
    def is_green(self) -> bool:
        """Every operation tested, nothing found."""
        return not self.findings and self.num_failures == 0 and 0 < self.num_tested == self.num_operations

    def summary(self) -> str:
        """What was done, in a line."""
        return (
            f"{self.num_tested} of {self.num_operations} operations, {self.num_cases} cases,"
            f" {sum(self.streams.values())} streams, {self.num_failures} failures, seed {self.seed},"
            f" {self.seconds:.0f} s: {'ok' if self.is_green else 'RED'}"
        )


def run(url: str, draw: Draw, seed: int, folder: Path) -> Verdict:
    """Run schemathesis against `url`. What it printed is `folder`/http_NAME.log, its report http_NAME.json.

    Raises RuntimeError when it ends without a report.
    """
    report, counts, printed = (
        folder.absolute() / f"http_{draw.name}{end}" for end in (".json", "_counts.json", ".log")
    )
    for path in (report, counts):
        path.unlink(missing_ok=True)
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(CONFIG), "run", str(CONTRACT), "-u", url]
    command += ["--phases", ",".join(draw.phases), "-n", str(draw.num_examples), "--seed", str(seed)]
    # One worker: hypothesis parses the sources of strategies, and ast.parse in several threads fails in Python 3.11.
    command += ["--workers", "1", "--no-color", "--report-json-path", str(report), *draw.filters]
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), _COUNTS_VARIABLE: str(counts)}
    # It keeps caches where it runs.
    with TemporaryDirectory() as here, printed.open("w", encoding="utf-8") as stream:
        done = subprocess.run(command, stdout=stream, stderr=subprocess.STDOUT, cwd=here, env=environment)
    if not all(path.exists() and path.stat().st_size for path in (report, counts)):
        raise RuntimeError(f"schemathesis ended with {done.returncode}:\n{printed.read_text(encoding='utf-8')}")
    return read_verdict(_read(report), _read(counts))


def _read(path: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return value


def read_verdict(report: dict[str, Any], counts: dict[str, dict[str, int]]) -> Verdict:
    """The verdict of a JSON report of schemathesis and the counts of our checks."""
    operations, cases = report["operations"] or {"selected": 0, "tested": 0}, report["test_cases"]
    findings = [f"{f['title']} ({f['count']}): {', '.join(f['operations'])}" for f in report["failures"]]
    findings += [f"{error['title']} ({error['count']})" for error in report["errors"]]
    findings += [f"warning {kind}: {', '.join(map(str, who))}" for kind, who in report["warnings"].items() if who]
    if report["exit_code"] != 0 and not findings:
        findings.append(f"schemathesis ended with {report['exit_code']}")
    return Verdict(
        num_operations=operations["selected"],
        num_tested=operations["tested"],
        num_cases=cases["generated"],
        num_failures=cases["with_failures"],
        seed=report["seed"],
        seconds=report["running_time"] or 0.0,
        findings=tuple(findings),
        streams=counts["streams"],
        refusals=counts["refusals"],
    )


def run_all(url: str, draws: Sequence[Draw], seed: int, folder: Path) -> Verdict:
    """Several runs at once, as one."""
    with ThreadPoolExecutor(len(draws)) as pool:
        return joined([*pool.map(lambda draw: run(url, draw, seed, folder), draws)])


def joined(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict of several runs at once with one seed, as one. The first run selects all operations."""
    return Verdict(
        num_operations=verdicts[0].num_operations,
        num_tested=verdicts[0].num_tested,
        num_cases=sum(verdict.num_cases for verdict in verdicts),
        num_failures=sum(verdict.num_failures for verdict in verdicts),
        seed=verdicts[0].seed,
        seconds=max(verdict.seconds for verdict in verdicts),
        findings=tuple(finding for verdict in verdicts for finding in verdict.findings),
        streams=sum((Counter(verdict.streams) for verdict in verdicts), Counter()),
        refusals=sum((Counter(verdict.refusals) for verdict in verdicts), Counter()),
    )
