"""What a runner does before its first request: batches that fit, and slots that are as they were."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from atom.config import Config
from atom.model_engine.batch import ScheduledBatch
from atom.model_engine.device_copies import pack
from atom.model_engine.model_runner import ModelRunner
from atom.model_engine.sampling_state import OFF
from atom.model_engine.warm_up import first_batches, gpu_batches
from atom.sampling_params import SamplingParams
from tests.models.drive import Driver, make_runner
from tests.models.tiny import make_model, save_model

# Sequences, tokens of a sequence, of a step, and of a block.
SIZES = [(1, 2, 64, 16), (1, 128, 64, 4), (3, 4, 5, 1), (16, 128, 16, 16), (300, 256, 4096, 64), (40, 3, 40, 4)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    torch.set_num_threads(1)
    return save_model(make_model("qwen3"), Path(tmp_path_factory.mktemp("model")))


def config(folder: str, sizes: tuple[int, int, int, int]) -> Config:
    seqs, length, tokens, block = sizes
    return Config.resolve(
        folder, device="cpu", max_num_seqs=seqs, max_model_len=length, max_num_batched_tokens=tokens, block_size=block,
    )  # fmt: skip


@pytest.mark.parametrize("sizes", SIZES)
def test_batches_fit(folder: str, sizes: tuple[int, int, int, int]) -> None:
    made = config(folder, sizes)
    batches = [*first_batches(made), *gpu_batches(made, num_blocks=3)]
    assert batches
    blocks: dict[int, list[int]] = {}
    for batch in batches:
        check(batch, made, blocks)
    counts = {batch.num_decodes for batch in batches if batch.num_decodes == batch.num_rows}
    assert {1, 2, 3} - counts == set(range(made.max_num_seqs + 1, 4)) or made.max_model_len == 2


def check(batch: ScheduledBatch, config: Config, blocks: dict[int, list[int]]) -> None:
    """AssertionError where a scheduler would not have made the batch."""
    assert 0 < batch.num_tokens <= config.max_num_batched_tokens
    assert len(set(batch.slots.tolist())) == batch.num_rows <= config.max_num_seqs
    blocks.update({admission.slot: admission.block_ids for admission in batch.admissions})
    for slot, length in zip(batch.slots.tolist(), (batch.context_lens + batch.query_lens).tolist(), strict=True):
        assert length <= config.max_model_len
        assert -(-length // config.block_size) <= len(blocks[slot])
        assert max(blocks[slot]) < 3
    assert len(batch.prefill_token_ids) == batch.query_lens[batch.num_decodes :].sum()


def answers(runner: ModelRunner) -> list[list[int]]:
    driver = Driver(runner)
    ways = SamplingParams(ignore_eos=True, temperature=0.0), SamplingParams(ignore_eos=True, top_p=0.9)
    sequences = [driver.add([7, 8, 9 + i], way, seed=5) for i, way in enumerate(ways)]
    driver.generate(sequences, 6)
    return [sequence.output for sequence in sequences]


def test_slots_are_as_they_were(folder: str) -> None:
    settings = {"max_num_seqs": 12, "max_model_len": 128, "max_num_batched_tokens": 64}
    runner = make_runner(folder, **settings)
    wanted = answers(make_runner(folder, **settings))
    for batch in gpu_batches(runner.config, runner.num_blocks):
        runner.run(batch, in_graphs=False).result()
    state = runner.state
    assert {OFF} == {*state.penalty_rows.tolist(), *state.num_logprobs.tolist(), *state.num_prompt_logprobs.tolist()}
    assert not state.needs_edits(np.arange(12), np.zeros(12, dtype=np.int64))
    assert not state.is_random.any()
    assert answers(runner) == wanted


@pytest.mark.parametrize("settings", ["", "kv_cache_dtype=fp8 quantization=fp8"])
def test_no_kernel_is_left_to_compile(settings: str) -> None:
    pytest.importorskip("triton", reason="Triton is not installed")
    command = [sys.executable, "-m", "tests.model_engine.kernel_variants", *settings.split()]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    *new, last = ran.stdout.splitlines()
    assert new == []
    at_start, served = (int(word) for word in last.split())
    assert at_start >= served > 10


def test_packed_arrays_lie_where_kernels_like_them() -> None:
    arrays = [np.arange(count, dtype=np.int64) + 1 for count in (1, 3, 0, 4, 5)]
    packed, places = pack(arrays)
    assert [packed[place].tolist() for place in places] == [array.tolist() for array in arrays]
    assert all(place.start * packed.itemsize % 16 == 0 for place in places)
