"""Calls enforced on a model that knows nothing, in every format: read, valid, and streamed as they are whole."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from atom.model_engine.llm_engine import LLMEngine
from tests.fakes.enforced_calls import WAYS, Way, run_trials

# `make bench PART=structured` runs 200 of each.
NUMBER = int(os.environ.get("ENFORCED_CALLS", "4"))


@pytest.fixture(scope="module")
def engine() -> Iterator[LLMEngine]:
    with LLMEngine(
        "atom-tiny", load_dummy="zero", max_model_len=1024, kv_cache_memory="64M", max_num_seqs=64
    ) as running:
        yield running


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_every_enforced_call_is_right(engine: LLMEngine, way: Way) -> None:
    trials = list(run_trials(engine, way, NUMBER))
    assert [(trial.text, trial.problems) for trial in trials if trial.problems] == []
    assert all(trial.num_calls for trial in trials)


def test_a_call_cut_by_the_token_limit_is_json_and_says_so(engine: LLMEngine) -> None:
    trials = [trial for way in WAYS[:3] for trial in run_trials(engine, way, 4, seed=3, max_tokens=24)]
    cut = [trial for trial in trials if trial.finish_reason == "length"]
    assert cut
    assert all("differ" not in problem and "Expecting" not in problem for trial in cut for problem in trial.problems)
