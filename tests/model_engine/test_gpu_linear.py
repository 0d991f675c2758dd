"""The engine on a GPU with our own products of few tokens: graphs equal to eager, logits near the library's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed")

from atom.config import Config
from atom.model_ops.kernels.triton.early import starts_early
from tests.models.drive import Driver, make_runner

pytestmark = pytest.mark.gpu

_STEPS = 6


def logits(count: int, backend: str, **settings: Any) -> list[torch.Tensor]:
    """Of the last prompt tokens and the decode steps of `count` sequences of atom-tiny, each [count, V]."""
    runner = make_runner(
        Config.resolve("atom-tiny").model_path, dtype="bfloat16", max_model_len=256, block_size=16, device="cuda",
        kv_cache_memory=1 << 28, **settings,
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
    starts_early.cache_clear()
    yield
    starts_early.cache_clear()


@pytest.mark.parametrize("count", [1, 2, 4, 8, 16])
def test_own_products_in_graphs_and_eager(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bits in both, and when products start before the kernel before them ends."""
    by_library = logits(count, "reference", enforce_eager=True)
    monkeypatch.setenv("ATOM_KERNELS", "linear=triton")
    eager, in_graphs = logits(count, "triton", enforce_eager=True), logits(count, "triton")
    monkeypatch.setenv("ATOM_EARLY_START", "1")
    starts_early.cache_clear()
    early = logits(count, "triton", enforce_eager=True), logits(count, "triton")
    for others in (in_graphs, *early):
        assert len(eager) == len(others) == _STEPS
        assert all(torch.equal(one, other) for one, other in zip(eager, others, strict=True))
    # Later tokens depend on earlier choices, which near ties may have made otherwise.
    difference = (eager[0] - by_library[0]).norm() / by_library[0].norm()
    assert difference < 3e-2
