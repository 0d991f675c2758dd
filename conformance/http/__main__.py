"""`python -m conformance.http`: schemathesis over the contract, against a live server with the shipped model.

Exits 1 on a failure, on a warning of schemathesis, on a streaming operation without a stream, and on a warning or an
error in the server's log; 2 when the server or schemathesis did not run.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from conformance.http.run import Draw, Verdict, run_all
from conformance.http.server import started
from conformance.http.streams import ORDERS

DEFAULT_SEED = 20_240_613
REPORT_FOLDER = Path(__file__).parents[1] / "report"

# Boundary values of every field: 5,500 requests, all of them with --long. Short of that, not those of the chat
# endpoint, which are half of them and mostly of fields that other endpoints have too, and not those of count_tokens,
# which has the fields of /v1/messages.
_LEFT_OUT = ("--exclude-operation-id", "createChatCompletion", "--exclude-operation-id", "countTokens")
_SHORT_BOUNDARIES = Draw("coverage", ("coverage",), filters=_LEFT_OUT)
SHORT = (Draw("fuzzing", ("examples", "fuzzing"), 30), _SHORT_BOUNDARIES)
LONG = (Draw("fuzzing", ("examples", "fuzzing"), 500), Draw("coverage", ("coverage",)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; the exit status."""
    options = _parser().parse_args(arguments)
    options.report.mkdir(parents=True, exist_ok=True)
    draws = LONG if options.long else SHORT
    try:
        if options.url is not None:
            return _report(run_all(options.url, draws, options.seed, options.report), (), options.report)
        with tempfile.TemporaryDirectory() as folder, started(Path(folder)) as server:
            verdict = run_all(server.url, draws, options.seed, options.report)
            return _report(verdict, server.faults(), options.report)
    except RuntimeError as error:
        print(f"conformance.http: {error}", file=sys.stderr)
        return 2


def _report(verdict: Verdict, faults: Sequence[str], folder: Path) -> int:
    findings = [*verdict.findings, *(f"server log: {line}" for line in faults)]
    findings += [f"{operation} has not streamed once" for operation in ORDERS if not verdict.streams.get(operation)]
    for finding in findings:
        print(finding)
    if verdict.findings:
        print(f"requests and answers: {folder}/http_*.log")
    print("refusals met: " + ", ".join(f"{name} {num}" for name, num in sorted(verdict.refusals.items())))
    print(f"http: {verdict.summary()}")
    return int(bool(findings) or not verdict.is_green)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m conformance.http", description=__doc__)
    parser.add_argument("--long", action="store_true", help="more drawn requests, and all boundary values")
    parser.add_argument("--seed", type=int, default=DEFAULT_SEED, help="draw other cases (default: %(default)s)")
    parser.add_argument("--url", help="a server that runs, instead of one of our own; its answers must be cheap")
    parser.add_argument("--report", type=Path, default=REPORT_FOLDER, metavar="DIR", help="where the reports go")
    return parser


if __name__ == "__main__":
    sys.exit(main())
