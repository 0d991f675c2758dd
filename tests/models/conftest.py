"""Checkpoints on disk, each made once a session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import transformers

from tests.models.tiny import make_model, save_model

Checkpoint = tuple[transformers.PreTrainedModel, Path]


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Checkpoint]:
    """checkpoint(variant, num_shards=1): transformers' model and the folder that it was saved to."""
    made: dict[tuple[str, int], Checkpoint] = {}

    def make(variant: str, num_shards: int = 1) -> Checkpoint:
        key = (variant, num_shards)
        if key not in made:
            model = make_model(variant)
            made[key] = model, save_model(model, tmp_path_factory.mktemp(variant), num_shards)
        return made[key]

    return make
