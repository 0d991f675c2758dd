"""Every HTTP case beside the checkout, against running servers; the table of them is docs/http-cases.md."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import httpx
import pytest

from atom.entrypoints.scripted.script import Script
from conformance.http.server import Server, started
from tests.entrypoints.cases.registry import CASES, Given
from tests.entrypoints.cases.table import PAGE, page
from tests.entrypoints.live import PATIENCE, LiveServer, running, scripted
from tests.shared_data import shared_path

BOS_TEMPLATE = "<|begin|>{% for message in messages %}{{ message.content }}{% endfor %}"
PLAIN_TEMPLATE = "{% for message in messages %}{{ message.role }}: {{ message.content or '' }}\n{% endfor %}"
SCRIPTS = (
    Script(id="ok", text="fine"),
    Script(id="empty", text=""),
    Script(id="thinks", text="<think>one</think>two"),
    Script(id="compass", text="\U0001f9ed"),
    Script(id="BOS", text="fine", chat_template=BOS_TEMPLATE),
    Script(id="plain template", text="fine", chat_template=PLAIN_TEMPLATE),
)


@cache
def inputs() -> dict[str, dict[str, Any]]:
    lines = shared_path("cases", "cases.jsonl").read_text(encoding="utf-8").splitlines()
    cases = map(json.loads, filter(None, lines))
    return {case["id"]: case["input"] for case in cases if case["kind"] == "http"}


def scripts() -> Iterator[Script]:
    yield from SCRIPTS
    own = {script.id for case in CASES.values() for script in case.scripts}
    yield from (script for case in CASES.values() for script in case.scripts)
    for case_id, given in inputs().items():
        if "scripted_model_output" in given and case_id not in own:
            yield Script(id=case_id, text=given["scripted_model_output"])
    yield Script(id="B35", text="some text that is long enough to be cut into many tokens", chunk=4)


@dataclass
class Servers:
    scripted: LiveServer
    model: httpx.Client
    process: Server


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with (
        started(tmp_path_factory.mktemp("cases"), flags=("--max-num-seqs", "9")) as server,
        httpx.Client(base_url=server.url, timeout=PATIENCE, limits=httpx.Limits(keepalive_expiry=None)) as model,
        running(scripted(*scripts())) as player,
    ):
        yield Servers(player, model, server)


@pytest.mark.shared
@pytest.mark.parametrize("case_id", CASES)
def test_the_case_holds(case_id: str, servers: Servers) -> None:
    CASES[case_id].check(Given(case_id, inputs()[case_id], servers.scripted, servers.model, servers.process))


@pytest.mark.shared
def test_no_case_is_missing() -> None:
    assert set(inputs()) == set(CASES)


def test_the_page_is_the_table() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m tests.entrypoints.cases writes it"
