"""Every architecture against transformers, in float32: logits, and 64 greedy tokens however the work is cut up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from atom.config import Config
from atom.model_engine.engine_core import EngineCore
from atom.model_engine.messages import EngineRequest
from atom.model_engine.model_runner import ModelRunner
from atom.sampling_params import SamplingParams
from tests.models.drive import Driver, make_runner
from tests.models.tiny import SIZES, VARIANTS

NUM_TOKENS = 64
MAX_LEN = 256
_LENGTHS = (23, 1, 7, 40, 14, 3, 61, 30)


def prompts() -> list[list[int]]:
    """Eight prompts of different lengths."""
    random = np.random.default_rng(5)
    return [random.integers(1, SIZES["vocab_size"], length).tolist() for length in _LENGTHS]


def runner_for(folder: Any, **overrides: Any) -> ModelRunner:
    return make_runner(folder, max_model_len=MAX_LEN, **overrides)


def expected(model: Any, prompt: list[int]) -> list[int]:
    """64 greedy tokens by transformers, cached on the model."""
    known = model.__dict__.setdefault("_expected", {})
    if tuple(prompt) not in known:
        with torch.inference_mode():
            ids = model.generate(
                torch.tensor([prompt]), max_new_tokens=NUM_TOKENS, do_sample=False, eos_token_id=None, pad_token_id=0
            )
        known[tuple(prompt)] = ids[0, len(prompt) :].tolist()
    return known[tuple(prompt)]


def watch_logits(runner: ModelRunner) -> list[torch.Tensor]:
    """Every tensor of logits that the runner computes from now on."""
    seen: list[torch.Tensor] = []
    compute = runner.model.compute_logits

    def watched(hidden: torch.Tensor) -> torch.Tensor:
        seen.append(compute(hidden))
        return seen[-1]

    runner.model.compute_logits = watched  # type: ignore[method-assign]  # watched by the test
    return seen


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("chunk", [1 << 20, 7])
def test_logits(variant: str, chunk: int, checkpoint: Callable[..., Any]) -> None:
    model, folder = checkpoint(variant)
    runner = runner_for(folder)
    seen = watch_logits(runner)
    prompt = prompts()[6]
    driver = Driver(runner)
    sequence = driver.add(prompt)
    driver.generate([sequence], 4, chunk)
    ours = torch.cat(seen)
    with torch.inference_mode():
        theirs = model(torch.tensor([sequence.tokens[:-1]])).logits[0, len(prompt) - 1 :]
    assert ours.shape == theirs.shape
    assert (ours - theirs).abs().max() < 1e-4


@pytest.mark.parametrize("variant", VARIANTS)
def test_greedy_tokens(variant: str, checkpoint: Callable[..., Any]) -> None:
    """Alone, in a batch of 8, in chunks of 7, after a preemption: always transformers' tokens."""
    model, folder = checkpoint(variant)
    driver = Driver(runner_for(folder))
    everything = prompts()
    alone = driver.add(everything[0])
    driver.generate([alone], NUM_TOKENS)
    assert alone.output == expected(model, everything[0])

    batch = [driver.add(prompt) for prompt in everything]
    driver.generate(batch[:3], 5)
    driver.generate(batch, NUM_TOKENS, chunk=7)
    for sequence, prompt in zip(batch, everything, strict=True):
        assert sequence.output[:NUM_TOKENS] == expected(model, prompt)


@pytest.mark.parametrize("variant", ["llama", "qwen2-window", "qwen3"])
def test_greedy_tokens_after_a_preemption(variant: str, checkpoint: Callable[..., Any]) -> None:
    model, folder = checkpoint(variant)
    driver = Driver(runner_for(folder))
    sequences = [driver.add(prompt) for prompt in prompts()[:3]]
    driver.generate(sequences, 20)
    driver.preempt(sequences[1])
    driver.generate(sequences, NUM_TOKENS, chunk=7)
    for sequence, prompt in zip(sequences, prompts(), strict=False):
        assert sequence.output == expected(model, prompt)


@pytest.mark.parametrize(("variant", "num_shards"), [("llama", 3), ("qwen2-tied", 2), ("qwen3", 5), ("qwen3-tied", 4)])
def test_sharded_checkpoints(variant: str, num_shards: int, checkpoint: Callable[..., Any]) -> None:
    model, folder = checkpoint(variant, num_shards)
    assert len(list(folder.glob("*.safetensors"))) > 1
    driver = Driver(runner_for(folder))
    sequence = driver.add(prompts()[2])
    driver.generate([sequence], NUM_TOKENS)
    assert sequence.output == expected(model, prompts()[2])


def run_core(folder: Any, requests: list[list[int]], **overrides: Any) -> tuple[dict[str, list[int]], Any, list[int]]:
    """Tokens by request id, final statistics, cached prompt tokens by request: through scheduler and executor."""
    settings = {"dtype": "float32", "device": "cpu", "block_size": 4, "max_num_seqs": 8, "max_model_len": 128}
    config = Config.resolve(str(folder), **{**settings, "kv_cache_memory": 4 << 20, **overrides})
    core = EngineCore.create(config)
    sampling = SamplingParams(temperature=0.0, max_tokens=NUM_TOKENS, ignore_eos=True)
    outputs: dict[str, list[int]] = {}
    cached: dict[str, int] = {}
    try:
        for index, prompt in enumerate(requests):
            core.add(EngineRequest(str(index), prompt, sampling))
        while core.has_work:
            for delta in core.step():
                assert delta.error is None
                outputs.setdefault(delta.request_id, []).extend(delta.token_ids)
                cached[delta.request_id] = max(delta.num_cached_tokens, cached.get(delta.request_id, 0))
        return outputs, core.stats(), [cached[str(index)] for index in range(len(requests))]
    finally:
        core.shutdown()


@pytest.mark.parametrize("variant", ["llama", "qwen2", "qwen3"])
@pytest.mark.parametrize("overrides", [{}, {"max_num_batched_tokens": 9}], ids=["whole", "chunked"])
def test_engine_in_a_batch(variant: str, overrides: dict[str, Any], checkpoint: Callable[..., Any]) -> None:
    model, folder = checkpoint(variant)
    outputs, _, _ = run_core(folder, prompts(), **overrides)
    for index, prompt in enumerate(prompts()):
        assert outputs[str(index)] == expected(model, prompt)


@pytest.mark.parametrize("variant", ["llama", "qwen2", "qwen3"])
def test_engine_with_a_prefix_hit(variant: str, checkpoint: Callable[..., Any]) -> None:
    """One sequence at a time, so that the second finds the first one's blocks."""
    model, folder = checkpoint(variant)
    first = prompts()[3]
    requests = [first, first[:21] + prompts()[2], first]
    outputs, _, cached = run_core(folder, requests, max_num_seqs=1)
    assert cached[0] == 0
    assert cached[1] == 20
    assert cached[2] == 36
    for index, prompt in enumerate(requests):
        assert outputs[str(index)] == expected(model, prompt)


@pytest.mark.parametrize("variant", ["llama", "qwen2", "qwen3"])
def test_engine_after_preemptions(variant: str, checkpoint: Callable[..., Any]) -> None:
    """A cache that holds about two and a half of eight sequences."""
    model, folder = checkpoint(variant)
    config = Config.resolve(str(folder), device="cpu")
    block_bytes = 2 * config.hf.num_layers * config.hf.num_kv_heads * config.hf.head_dim * 4 * 4
    outputs, stats, _ = run_core(
        folder, prompts(), kv_cache_memory=70 * block_bytes, enable_prefix_caching=False, max_num_batched_tokens=32
    )
    assert stats.preemptions > 0
    for index, prompt in enumerate(prompts()):
        assert outputs[str(index)] == expected(model, prompt)
