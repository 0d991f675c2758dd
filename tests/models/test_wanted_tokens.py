"""The last layer's feed-forward is for tokens that something is sampled after; what comes out is tested elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from msgspec import structs

from atom.models.decoder import GatedMLP
from tests.models.drive import GREEDY, Driver, make_runner


@pytest.fixture
def num_rows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows every feed-forward layer was given since the list was cleared last."""
    seen: list[int] = []

    def counted(mlp: GatedMLP, x: torch.Tensor) -> torch.Tensor:
        seen.append(len(x))
        return mlp.forward(x)

    monkeypatch.setattr(GatedMLP, "__call__", counted)
    return seen


@pytest.mark.parametrize("variant", ["llama", "qwen2", "qwen3"])
def test_rows_of_every_feed_forward(variant: str, checkpoint: Callable[..., Any], num_rows: list[int]) -> None:
    driver = Driver(make_runner(checkpoint(variant)[1]))
    first, second, third = (driver.add(list(range(1, 1 + length))) for length in (5, 9, 20))
    driver.step([first, second])
    assert num_rows == [14, 14, 2]
    num_rows.clear()
    driver.step([first, second, third], chunk=7)
    assert num_rows == [9, 9, 2]
    num_rows.clear()
    driver.step([third], chunk=7)
    assert num_rows == [7, 7, 1]  # nothing samples
    num_rows.clear()
    driver.step([first, second])
    assert num_rows == [2, 2, 2]


def test_prompt_logprobs_want_every_token(checkpoint: Callable[..., Any], num_rows: list[int]) -> None:
    driver = Driver(make_runner(checkpoint("qwen3")[1]))
    scored = driver.add(list(range(1, 10)), structs.replace(GREEDY, prompt_logprobs=1))
    plain = driver.add(list(range(1, 10)))
    driver.step([scored, plain])
    assert num_rows == [18, 18, 18]
    assert len(scored.prompt_logprobs) == 8
    assert scored.output == plain.output
