from __future__ import annotations

import itertools
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builtin_model.fixtures import FOLDER, model
from tools.builtin_model.feeder import TRAINED_BIT, Feeder, encoded_documents, max_documents, pack, packed_rows
from tools.builtin_model.greedy import generate
from tools.builtin_model.model import Shape, TinyModel
from tools.builtin_model.optimizer import Optimizer, orthogonalize
from tools.builtin_model.step import TrainingStep
from tools.builtin_model.train import Schedule

TOKENIZER = FOLDER / "tokenizer.json"


@given(st.lists(st.integers(1, 40), min_size=1, max_size=12), st.integers(16, 200))
@settings(max_examples=60, deadline=None)
def test_packing_keeps_the_documents_and_their_bounds(lengths: list[int], batch_tokens: int) -> None:
    documents = [np.full(length, index + 1, np.int32) for index, length in enumerate(lengths)]
    row = pack(documents, batch_tokens)
    tokens, bounds = row[: batch_tokens + 1], row[batch_tokens + 1 :]
    assert len(bounds) == max_documents(batch_tokens) + 2
    assert bounds[-1] == batch_tokens
    stream = np.concatenate(documents)[: batch_tokens + 1]
    assert (tokens[: len(stream)] == stream).all()
    assert not tokens[len(stream) :].any()
    for index, (start, end) in enumerate(itertools.pairwise(bounds[: len(lengths) + 1])):
        assert (tokens[start:end] == index + 1).all()


def test_generated_rows_hold_trained_tokens_and_no_padding() -> None:
    rows = packed_rows(encoded_documents(TOKENIZER, "test"), 2048)
    row = next(rows)[:2049]
    assert 0.1 < (row >= TRAINED_BIT).mean() < 0.7
    assert (row & (TRAINED_BIT - 1)).max() < 3072


def test_the_feeder_delivers_rows_and_leaves_nothing_behind() -> None:
    feeder = Feeder(TOKENIZER, 256, num_workers=1)
    try:
        first, second = feeder.next_row(), feeder.next_row()
    finally:
        feeder.close()
    assert first.shape == second.shape == (256 + 1 + max_documents(256) + 2,)
    assert not np.array_equal(first, second)
    assert not Path(feeder._folder).exists()


def test_a_worker_needs_no_torch() -> None:
    script = "import sys, tools.builtin_model.feeder; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_steps_on_one_batch_lower_its_loss() -> None:
    torch.manual_seed(0)
    small = TinyModel(Shape(layers=1))
    optimizer = Optimizer(small, 0.02, 0.003, is_compiled=False)
    step = TrainingStep(small, optimizer, 256, is_compiled=False)
    step.load(next(packed_rows(encoded_documents(TOKENIZER, "loss"), 256)))
    losses = []
    for _ in range(6):
        optimizer.set_scale(1.0)
        step.run()
        losses.append(float(step.loss))
    assert losses[-1] < losses[0] - 1.0


def test_documents_of_a_batch_do_not_see_each_other() -> None:
    """The loss of a batch of two is the weighted mean of the losses alone."""
    documents = list(itertools.islice(encoded_documents(TOKENIZER, "alone"), 2))
    small = model()
    losses, weights = [], []
    for group in ([documents[0]], [documents[1]], documents):
        size = sum(map(len, group))
        step = TrainingStep(small, Optimizer(small, 0.0, 0.0, is_compiled=False), size, is_compiled=False)
        step.load(pack(group, size))
        with torch.no_grad():
            losses.append(float(step.forward()))
        weights.append(sum(int((document[1:] >= TRAINED_BIT).sum()) for document in group))
    together = (losses[0] * weights[0] + losses[1] * weights[1]) / weights[2]
    assert losses[2] == pytest.approx(together, abs=1e-5)


def test_the_update_is_near_orthogonal() -> None:
    torch.manual_seed(0)
    for shape in ((3, 64, 48), (2, 32, 96)):
        singular = torch.linalg.svdvals(orthogonalize(torch.randn(shape)))
        assert ((singular > 0.5) & (singular < 1.4)).all()


def test_the_schedule_warms_up_holds_and_decays() -> None:
    schedule = Schedule(seconds=100.0, decay_from=0.5)
    assert schedule.scale(0, 0.0) == pytest.approx(1 / 200)
    assert schedule.scale(500, 40.0) == 1.0
    assert schedule.scale(9000, 75.0) == pytest.approx(0.5)
    assert schedule.scale(9000, 100.0) == pytest.approx(0.005)


def test_generation_in_a_batch_is_generation_alone() -> None:
    rng = random.Random(2)
    prompts = [[rng.randrange(23, 3072) for _ in range(length)] for length in (3, 40, 17)]
    together = generate(model(), prompts, [2], 12)
    assert together == [generate(model(), [prompt], [2], 12)[0] for prompt in prompts]
