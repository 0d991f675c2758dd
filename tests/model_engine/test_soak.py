"""Mixed load: no block, request or memory stays taken, and every greedy answer is the one that its prompt gets alone.

Five minutes of it on a GPU are `make soak-gpu`; ATOM_SOAK_SECONDS makes that shorter or longer. A CPU runs seconds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import torch

from atom.config import Config
from atom.model_engine.engine_core import EngineCore
from atom.model_engine.messages import TokenDelta
from tests.model_engine.soak import Soak, SoakReport

_SETTINGS: dict[str, Any] = {"dtype": "float32", "block_size": 16, "enable_prefix_caching": True}


def start(**settings: Any) -> EngineCore:
    return EngineCore.create(Config.resolve("atom-tiny", **_SETTINGS, **settings))


def small(core: EngineCore) -> Soak:
    """Short prompts and answers, for an engine on a CPU."""
    torch.set_num_threads(1)
    return Soak(core, "cpu", seed=11, longest_prompt=120, longest_answer=40)


def check(report: SoakReport) -> None:
    print(report)
    assert report.wrong == []
    assert report.leaks == {}
    assert min(report.preemptions, report.num_aborted, report.num_compared - report.num_aborted) > 0


@pytest.fixture
def core() -> Iterator[EngineCore]:
    """A cache that a dozen of the short sequences overflow."""
    made = start(
        device="cpu", kv_cache_memory=2 << 20, max_model_len=192, max_num_seqs=16, max_num_batched_tokens=64
    )  # fmt: skip
    yield made
    made.shutdown()


def test_seconds_of_load_on_a_cpu(core: EngineCore) -> None:
    check(small(core).run(0.0, 60, pool_size=4, width=16))


def test_what_is_wrong_is_found(core: EngineCore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step keeps a tensor, and under load every token is another one."""
    kept, step, load = [], core.step, small(core)

    def spoiled() -> list[TokenDelta]:
        kept.append(torch.zeros(1))
        deltas = step()
        return [
            msgspec.structs.replace(d, token_ids=[7] * len(d.token_ids)) if d.request_id.isdigit() else d
            for d in deltas
        ]

    monkeypatch.setattr(core, "step", spoiled)
    report = load.run(0.0, 20, pool_size=2, width=4)
    assert report.wrong
    assert list(report.leaks) == ["tensors"]


@pytest.mark.gpu
@pytest.mark.soak
def test_minutes_of_load_on_a_gpu() -> None:
    seconds = float(os.environ.get("ATOM_SOAK_SECONDS", "300"))
    core = start(
        device="cuda", kv_cache_memory=64 << 20, max_model_len=1024, max_num_seqs=64, max_num_batched_tokens=512
    )  # fmt: skip
    try:
        load = Soak(core, "cuda", seed=11, longest_prompt=600, longest_answer=160)
        check(load.run(seconds, 100, pool_size=60, width=64))
    finally:
        core.shutdown()
