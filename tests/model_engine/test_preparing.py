"""Requests whose grammar is being compiled: they hold up nobody, and are queued, refused or dropped."""

from __future__ import annotations

from concurrent.futures import Future
from typing import ClassVar

import pytest

from atom.model_engine.engine_core import EngineCore
from atom.model_engine.messages import EngineRequest, TokenDelta
from atom.sampling_params import AnswerGrammar, SamplingParams
from tests.fakes.uniform_executor import UniformConfig, UniformExecutor

GRAMMAR = AnswerGrammar('start: "a"')


class SlowCompiler(UniformExecutor):
    """Grammars are ready when the test says so."""

    futures: ClassVar[list[Future[None]]] = []

    def prepare(self, grammar: AnswerGrammar) -> Future[None]:
        self.futures.append(Future())
        return self.futures[-1]


@pytest.fixture
def core() -> EngineCore:
    SlowCompiler.futures = []
    return EngineCore.create(UniformConfig(), f"{__name__}:SlowCompiler")


def request(request_id: str, grammar: AnswerGrammar | None = None) -> EngineRequest:
    return EngineRequest(request_id, [1, 2, 3], SamplingParams(max_tokens=2, grammar=grammar))


def run(core: EngineCore, steps: int = 6) -> list[TokenDelta]:
    return [delta for _ in range(steps) for delta in core.step()]


def test_others_run_while_a_grammar_is_compiled(core: EngineCore) -> None:
    core.add_when_ready(request("slow", GRAMMAR))
    core.add_when_ready(request("plain"))
    assert core.is_preparing and core.request_ids == ["slow", "plain"]
    assert {delta.request_id for delta in run(core)} == {"plain"}
    SlowCompiler.futures[0].set_result(None)
    deltas = run(core)
    assert {delta.request_id for delta in deltas} == {"slow"} and deltas[-1].finish_reason == "length"
    assert not core.is_preparing


def test_a_grammar_that_can_not_be_compiled_refuses_its_request(core: EngineCore) -> None:
    core.add_when_ready(request("bad", GRAMMAR))
    SlowCompiler.futures[0].set_exception(ValueError("no such rule"))
    [delta] = run(core, 2)
    assert (delta.request_id, delta.finish_reason, delta.error) == ("bad", "error", "no such rule")


def test_a_request_that_is_aborted_meanwhile_never_runs(core: EngineCore) -> None:
    core.add_when_ready(request("gone", GRAMMAR))
    core.abort(["gone"])
    SlowCompiler.futures[0].set_result(None)
    assert [(delta.request_id, delta.finish_reason) for delta in run(core)] == [("gone", "abort")]


def test_an_id_that_is_in_use_is_refused(core: EngineCore) -> None:
    core.add_when_ready(request("one", GRAMMAR))
    with pytest.raises(ValueError, match="in use"):
        core.add_when_ready(request("one", GRAMMAR))


def test_an_executor_without_grammars_says_so() -> None:
    core = EngineCore.create(UniformConfig(), "tests.fakes.uniform_executor:UniformExecutor")
    with pytest.raises(ValueError, match="can not enforce"):
        core.add(request("x", GRAMMAR))
