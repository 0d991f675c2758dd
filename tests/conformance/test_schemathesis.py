"""Schemathesis over the contract: the shipped model answers without a finding, and planted faults are found."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import msgspec
import pytest
from atom_spec.routes import ROUTES

from atom.entrypoints.openai import decoding, frames
from atom.entrypoints.openai.request_rules import RuleError
from atom.entrypoints.scripted.script import Script
from conformance.http import __main__ as command
from conformance.http import run as runs
from conformance.http.hooks import COUNTS_VARIABLE
from conformance.http.refusals import find_refusal, read_refusals
from conformance.http.run import Draw, read_verdict, run
from conformance.http.server import started
from conformance.http.streams import ORDERS
from tests.entrypoints.live import running, scripted

SEED = 20_240_613
ONE_OPERATION = Draw("planted", ("examples",), filters=("--include-operation-id", "createCompletion"))
EMPTY_REPORT: dict[str, Any] = {
    "operations": {"selected": 2, "tested": 2},
    "test_cases": {"generated": 9, "with_failures": 0},
    "failures": [],
    "errors": [],
    "warnings": {"missing_auth": []},
    "exit_code": 0,
    "seed": 1,
    "running_time": 1.0,
}
NO_COUNTS: dict[str, dict[str, int]] = {"streams": {}, "refusals": {}}


@pytest.mark.slow
def test_the_shipped_model_answers_as_the_contract_says(tmp_path: Path) -> None:
    with started(tmp_path) as server:
        verdict = run(server.url, Draw("fuzzing", ("examples", "fuzzing"), 5), SEED, tmp_path)
        assert verdict.findings == ()
        assert server.faults() == []
    assert verdict.is_green and verdict.num_operations == len(ROUTES), verdict.summary()
    assert set(verdict.streams) == set(ORDERS), "an operation that streams has not been seen to"
    print(verdict.summary())


def break_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        frames, "_encode", lambda value: msgspec.json.encode(value).replace(b"text_completion", b"text")
    )


def refuse_without_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(request: Any) -> None:
        raise RuleError("not today", "prompt")

    monkeypatch.setattr(decoding, "check_rules", refuse)


@pytest.mark.parametrize(
    ("plant", "finding"),
    [
        (break_schema, "SSE event violates schema"),
        (refuse_without_reason, "`declared_refusal`"),
        (lambda monkeypatch: None, "`stream_order`"),  # the script fails after its second token
    ],
)
def test_a_planted_fault_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], finding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with running(scripted(Script(text="abcdef", fault_after=2 if finding == "`stream_order`" else None))) as server:
        verdict = run(server.url, ONE_OPERATION, SEED, tmp_path)
    assert not verdict.is_green
    assert any(finding in found for found in verdict.findings), verdict.findings


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        ({"failures": [{"title": "Bad", "count": 3, "operations": ["GET /"]}]}, "Bad (3): GET /"),
        ({"errors": [{"title": "Broken", "count": 1}]}, "Broken (1)"),
        ({"warnings": {"missing_auth": ["GET /"]}}, "warning missing_auth: GET /"),
        ({"exit_code": 2}, "schemathesis ended with 2"),
    ],
)
def test_everything_that_a_report_complains_about_is_a_finding(change: dict[str, Any], finding: str) -> None:
    assert read_verdict(EMPTY_REPORT, NO_COUNTS).is_green
    verdict = read_verdict({**EMPTY_REPORT, **change}, NO_COUNTS)
    assert verdict.findings == (finding,) and not verdict.is_green


def test_an_operation_that_was_not_tested_is_no_success() -> None:
    untested = {**EMPTY_REPORT, "operations": {"selected": 2, "tested": 1}}
    assert not read_verdict(untested, NO_COUNTS).is_green


def test_the_runner_and_the_hooks_mean_the_same_file() -> None:
    assert runs._COUNTS_VARIABLE == COUNTS_VARIABLE


def test_a_refusal_is_known_by_operation_status_and_message() -> None:
    entry = {"status": 400, "operations": ["tokenize"], "when": "", "message": "^no .* here$"}
    refusals = read_refusals({"x-refusals": {"images": entry}})
    found = find_refusal(refusals, "tokenize", 400, "no images here")
    assert found is not None and found.name == "images"
    assert find_refusal(refusals, "tokenize", 404, "no images here") is None
    assert find_refusal(refusals, "detokenize", 400, "no images here") is None
    assert find_refusal(refusals, "tokenize", 400, "no images") is None


@pytest.mark.parametrize(
    ("found", "faults", "streams", "status"),
    [
        ((), (), dict.fromkeys(ORDERS, 1), 0),
        (("Bad (1): GET /",), (), dict.fromkeys(ORDERS, 1), 1),
        ((), ("WARNING something",), dict.fromkeys(ORDERS, 1), 1),
        ((), (), {**dict.fromkeys(ORDERS, 1), "createMessage": 0}, 1),
    ],
)
def test_the_command_ends_with_1_on_anything_that_is_not_right(
    found: tuple[str, ...],
    faults: tuple[str, ...],
    streams: dict[str, int],
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    verdict = replace(read_verdict(EMPTY_REPORT, {"streams": streams, "refusals": {}}), findings=found)
    monkeypatch.setattr(command, "run_all", lambda url, draws, seed, folder: verdict)
    monkeypatch.setattr(command, "started", lambda folder: nullcontext(SimpleNamespace(url="", faults=lambda: faults)))
    assert command.main(["--report", str(tmp_path)]) == status
    assert "2 of 2 operations, 9 cases" in capsys.readouterr().out


def test_a_server_that_does_not_start_is_status_2(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(folder: Path) -> NoReturn:
        raise RuntimeError("the server did not start: no kernel")

    monkeypatch.setattr(command, "started", fail)
    assert command.main(["--report", str(tmp_path)]) == 2
    assert "no kernel" in capsys.readouterr().err
