"""What the sampler is told of a step's rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from atom.model_engine.batch import SlotAdmission
from atom.model_engine.sampling_state import SamplingState
from atom.model_ops.kernels.select import select_kernels
from atom.model_ops.sampler import Sampler
from atom.sampling_params import SamplingParams


def admit(state: SamplingState, slot: int, seed: int, **given: float) -> None:
    state.admit(SlotAdmission(slot, [1, 2], 2, [0], SamplingParams(**given), seed))


def test_rows_that_are_drawn_bring_their_own_parameters() -> None:
    state = SamplingState(6, 50, (), torch.device("cpu"))
    admit(state, 1, 7, temperature=0.5, top_k=3, top_p=0.25)
    admit(state, 4, -(2**63), temperature=2.0, min_p=0.125)
    admit(state, 5, 0, temperature=0.0)
    slots, random = state.rows(np.array([4, 5, 1]), np.array([10, 11, 12]))
    assert slots.tolist() == [4, 5, 1]
    assert random is not None
    assert random.rows is not None
    assert random.rows.tolist() == [0, 2]
    assert random.temperature.tolist() == [2.0, 0.5]
    assert (random.top_k.dtype, random.top_k.tolist()) == (torch.int32, [0, 3])
    assert random.top_p.tolist() == [1.0, 0.25]
    assert random.min_p.tolist() == [0.125, 0.0]
    assert random.seeds.tolist() == [-(2**63), 7]
    assert random.offsets.tolist() == [10, 12]
    columns = (slots, random.rows, random.temperature, random.top_k, random.top_p, random.min_p, random.seeds)
    assert all((column.data_ptr() - slots.data_ptr()) % 16 == 0 and column.is_contiguous() for column in columns)


def test_all_rows_or_none_are_drawn() -> None:
    state = SamplingState(3, 50, (), torch.device("cpu"))
    admit(state, 2, 7, temperature=0.5)
    admit(state, 0, 1, temperature=0.0)
    slots, random = state.rows(np.array([2]), np.array([0]))
    assert slots.tolist() == [2]
    assert random is not None
    assert random.rows is None
    slots, random = state.rows(np.array([0]), np.array([3]))
    assert slots.tolist() == [0]
    assert random is None


@pytest.mark.parametrize("temperature", [1e-4, 1e-38, 5e-324])
def test_however_low_the_temperature_the_likeliest_token_is_drawn(temperature: float) -> None:
    state = SamplingState(2, 50, (), torch.device("cpu"))
    admit(state, 1, 7, temperature=temperature, top_k=5)
    _, random = state.rows(np.array([1]), np.array([3]))
    logits = torch.linspace(-90.0, 90.0, 50).roll(20).unsqueeze(0)
    assert Sampler(select_kernels("cpu"))(logits, random).tolist() == [19]
