"""The engine on a GPU with products of few tokens, the library's and our own: graphs and kernels that start early give
the same bits, and our logits are near the library's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed")

from atom.config import Config
from atom.model_ops.kernels.triton.early import can_start_early
from tests.models.drive import Driver, make_runner

pytestmark = pytest.mark.gpu

_STEPS = 6


def logits(count: int, backend: str, **settings: Any) -> list[torch.Tensor]:
    """Of the last prompt tokens and the decode steps of `count` sequences of atom-tiny, each [count, V].

    Prompts are never in graphs, where other kernels attend to them than in eager steps.
    """
    runner = make_runner(
        Config.resolve("atom-tiny").model_path, dtype="bfloat16", max_model_len=256, block_size=16, device="cuda",
        kv_cache_memory=1 << 28, cudagraph_prefill_sizes=(), **settings,
    )  # fmt: skip
    assert runner.kernels.choice["linear"] == backend
    seen: list[torch.Tensor] = []
    sample = runner._sample

    def watched(raw: torch.Tensor, *rest: Any, **named: Any) -> None:
        seen.append(raw.float().clone())
        sample(raw, *rest, **named)

    runner._sample = watched  # type: ignore[method-assign]  # watched by the test
    driver = Driver(runner)
    sequences = [driver.add([7 + 3 * i, 300, 20 + i]) for i in range(count)]
    driver.generate(sequences, _STEPS)
    return seen


@pytest.fixture(autouse=True)
def _own_choice() -> Iterator[None]:
    can_start_early.cache_clear()
    yield
    can_start_early.cache_clear()


@pytest.mark.parametrize("count", [1, 2, 4, 8, 16])
def test_products_in_graphs_and_eager_early_and_late(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    first: dict[str, torch.Tensor] = {}
    for backend in ("reference", "triton"):
        monkeypatch.setenv("ATOM_KERNELS", f"linear={backend}")
        ways = []
        for is_early in ("0", "1"):
            monkeypatch.setenv("ATOM_EARLY_START", is_early)
            can_start_early.cache_clear()
            ways += [logits(count, backend, enforce_eager=True), logits(count, backend)]
        for way in ways:
            assert len(way) == _STEPS
            assert all(torch.equal(one, other) for one, other in zip(ways[0], way, strict=True))
        first[backend] = ways[0][0]
    # Of the first step alone: later tokens depend on earlier choices, which near ties may have made otherwise.
    difference = (first["triton"] - first["reference"]).norm() / first["reference"].norm()
    assert difference < 3e-2
