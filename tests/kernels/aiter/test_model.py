"""A model in the real runner over AITER: its logits are those of the reference, prompts in one or in chunks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from atom.model_engine import model_runner
from tests.kernels.aiter.stand_in import installed
from tests.models.drive import Driver, make_runner
from tests.models.tiny import SIZES, make_model, save_model

NUM_TOKENS = 6
# Triton runs no kernel on a CPU.
SAMPLING = "greedy_sample=reference,sample=reference,philox_uniform=reference,mask_logits=reference"


def generate(folder: Path, block_size: int, chunk: int) -> tuple[list[int], torch.Tensor, dict[str, str]]:
    """Greedy tokens of three prompts one after the other, their logits, and the choice of kernels."""
    runner = make_runner(folder, dtype="bfloat16", block_size=block_size, max_model_len=128, max_num_seqs=4)
    seen: list[torch.Tensor] = []
    compute = runner.model.compute_logits
    runner.model.compute_logits = lambda hidden: seen.append(compute(hidden)) or seen[-1]  # type: ignore  # watched by the test
    driver = Driver(runner)
    random = np.random.default_rng(5)
    tokens = []
    for length in (40, 3, 17):
        sequence = driver.add(random.integers(1, SIZES["vocab_size"], length).tolist())
        driver.generate([sequence], NUM_TOKENS, chunk)
        tokens += sequence.output
    return tokens, torch.cat(seen).float(), runner.kernels.choice


@pytest.mark.parametrize("chunk", [1 << 20, 11])
@pytest.mark.parametrize(
    ("variant", "block_size", "head_dim"), [("qwen3", 16, 128), ("qwen3", 16, 64), ("qwen2-window", 32, 128)]
)
def test_logits_are_the_references(
    variant: str, block_size: int, head_dim: int, chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = save_model(make_model(variant, head_dim=head_dim), tmp_path)
    wanted_tokens, wanted, _ = generate(folder, block_size, chunk)
    monkeypatch.setattr(model_runner, "platform_of", lambda device: "rocm")
    monkeypatch.setenv("ATOM_KERNELS", SAMPLING)
    with installed() as stand_in:
        tokens, found, choice = generate(folder, block_size, chunk)
    assert {choice[op] for op in ("linear", "add_rms_norm", "silu_and_mul", "attention_prefill")} == {"aiter"}
    assert ("aiter.pa_fwd_asm" in stand_in.names()) == (block_size == 16 and head_dim == 128)
    compared = 0
    for start in range(0, len(tokens), NUM_TOKENS):
        for place in range(start, start + NUM_TOKENS):
            # Rounding to 8 bits in other places, through three layers.
            assert (found[place] - wanted[place]).abs().max() < 0.03 * wanted[place].abs().max()
            compared += 1
            if tokens[place] != wanted_tokens[place]:
                break  # two logits were nearly the same; from here on the contexts differ
    assert compared > NUM_TOKENS


def test_a_window_over_blocks_of_16_is_refused_at_the_first_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = save_model(make_model("qwen2-window", head_dim=128), tmp_path)
    monkeypatch.setattr(model_runner, "platform_of", lambda device: "rocm")
    with installed(), pytest.raises(ValueError, match=r"no sliding windows.*--block-size 32"):
        generate(folder, 16, 1 << 20)
