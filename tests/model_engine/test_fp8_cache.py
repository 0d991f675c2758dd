"""--kv-cache-dtype fp8: half the memory, a bounded error, and answers that do not depend on how the work is cut up."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from atom import LLMEngine, SamplingParams
from atom.config import Config
from atom.model_engine import kv_cache
from atom.model_engine.model_runner import ModelRunner
from tests.fakes.byte_tokenizer import byte_tokenizer
from tests.models.drive import GREEDY, Driver, make_runner
from tests.models.tiny import make_model, save_model

PROMPTS = [[(3 * index + 7 * at) % 190 + 1 for at in range(5 + 6 * index)] for index in range(6)]
LOGPROBS = SamplingParams(temperature=0.0, max_tokens=64, ignore_eos=True, logprobs=0, prompt_logprobs=0)
ANSWERS = Path(__file__).parents[2] / "tools" / "eval" / "data" / "answers.jsonl"


@pytest.fixture(scope="module")
def model() -> transformers.PreTrainedModel:
    torch.set_num_threads(1)
    return make_model("qwen3", vocab_size=259)


@pytest.fixture(scope="module")
def folder(model: transformers.PreTrainedModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = save_model(model, Path(tmp_path_factory.mktemp("model")))
    byte_tokenizer()._backend.save(str(made / "tokenizer.json"))
    return made


@pytest.fixture(scope="module")
def runner(folder: Path) -> ModelRunner:
    return make_runner(folder, max_model_len=128, kv_cache_dtype="fp8")


def differences(runner: ModelRunner, model: transformers.PreTrainedModel, chunk: int) -> torch.Tensor:
    """How far every log probability, of prompts and answers, is from transformers' own of the same tokens."""
    driver = Driver(runner)
    sequences = [driver.add(prompt, LOGPROBS) for prompt in PROMPTS]
    driver.generate(sequences, 20, chunk)
    parts = []
    for sequence in sequences:
        found = torch.tensor([entry.logprob for entry in (*sequence.prompt_logprobs, *sequence.logprobs)])
        tokens = torch.tensor(sequence.tokens)
        with torch.inference_mode():
            wanted = model(tokens[None]).logits[0, :-1].log_softmax(-1).gather(1, tokens[1:, None])[:, 0]
        assert len(found) == len(wanted)
        parts.append((found - wanted).abs())
    return torch.cat(parts)


@pytest.mark.parametrize("chunk", [99, 5])
def test_the_error_is_bounded_and_is_there(
    chunk: int, runner: ModelRunner, model: transformers.PreTrainedModel
) -> None:
    found = differences(runner, model, chunk)
    assert 1e-3 < found.mean() < 0.06
    assert found.max() < 0.4


def test_tokens_do_not_depend_on_chunks_company_or_preemption(runner: ModelRunner) -> None:
    alone = []
    for prompt in PROMPTS:
        driver = Driver(runner)
        sequence = driver.add(prompt, GREEDY)
        driver.generate([sequence], 24)
        alone.append(sequence.output)
    driver = Driver(runner, shuffle_seed=8)
    together = [driver.add(prompt, GREEDY) for prompt in PROMPTS]
    driver.generate(together, 12, chunk=3)
    for sequence in together[::2]:
        driver.preempt(sequence)
    driver.generate(together, 24, chunk=7)
    assert [sequence.output for sequence in together] == alone


def test_prefixes_are_cached_and_small_caches_preempt(folder: Path) -> None:
    sampling = SamplingParams(temperature=0.0, max_tokens=40, ignore_eos=True)
    settings = {"dtype": "float32", "device": "cpu", "max_num_seqs": 8, "block_size": 4, "kv_cache_dtype": "fp8"}

    def tokens_of(engine: LLMEngine) -> list[list[int]]:
        return [answer["token_ids"] for answer in engine.generate(PROMPTS, sampling)]

    with LLMEngine(str(folder), kv_cache_memory=2 << 20, **settings) as engine:
        expected = tokens_of(engine)
        assert tokens_of(engine) == expected
        assert engine.stats().cached_prompt_tokens > 60
    with LLMEngine(str(folder), kv_cache_memory=28 << 10, max_model_len=96, **settings) as engine:
        assert tokens_of(engine) == expected
        assert engine.stats().preemptions > 0


def test_a_block_costs_half_of_bfloat16(folder: Path) -> None:
    def blocks(**settings: Any) -> tuple[int, torch.dtype]:
        runner = make_runner(folder, max_model_len=128, kv_cache_memory=192 << 10, **settings)
        return runner.num_blocks, runner.cache_dtype

    half, quarter = blocks(dtype="bfloat16", kv_cache_dtype="fp8"), blocks(dtype="float32", kv_cache_dtype="fp8")
    assert half[1] == quarter[1] == torch.float8_e4m3fn
    assert half[0] == 2 * blocks(dtype="bfloat16")[0]
    assert quarter[0] == 4 * blocks(dtype="float32")[0]


def test_a_scale_keeps_large_values_from_saturating(folder: Path, tmp_path: Path) -> None:
    """Values 4,000 times as large, an output projection that undoes it: exact but for what the cache can hold."""
    weights = load_file(folder / "model.safetensors")
    for name in weights:
        if name.endswith("v_proj.weight"):
            weights[name] = weights[name] * 4000
        if name.endswith("o_proj.weight"):
            weights[name] = weights[name] / 4000
    config = (folder / "config.json").read_text()
    found = []
    for scale in (None, 32.0):
        target = tmp_path / str(scale)
        target.mkdir()
        (target / "config.json").write_text(config)
        layers = 3 if scale is not None else 0
        scales = {f"model.layers.{i}.self_attn.attn.v_scale": torch.tensor(scale) for i in range(layers)}
        save_file({**weights, **scales}, target / "model.safetensors")
        runner = make_runner(target, max_model_len=128, kv_cache_dtype="fp8")
        driver = Driver(runner)
        sequence = driver.add(PROMPTS[4], LOGPROBS)
        driver.generate([sequence], 2)
        found.append(torch.tensor([entry.logprob for entry in sequence.prompt_logprobs]))
    plain = Driver(make_runner(folder, max_model_len=128))
    sequence = plain.add(PROMPTS[4], LOGPROBS)
    plain.generate([sequence], 2)
    wanted = torch.tensor([entry.logprob for entry in sequence.prompt_logprobs])
    saturated, scaled = (float((x - wanted).abs().max()) for x in found)
    assert scaled < 0.25 < saturated


def test_a_gpu_without_fp8_names_the_flag(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = replace(Config.resolve(str(folder), max_model_len=96), kv_cache_dtype="fp8")
    gpu = torch.device("cuda")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 0))
    with pytest.raises(ValueError, match=r"--kv-cache-dtype fp8: .*8\.9 or newer, this one has 8\.0"):
        kv_cache.cache_dtype(config, torch.bfloat16, gpu)
    assert kv_cache.cache_dtype(replace(config, kv_cache_dtype="bf16"), torch.bfloat16, gpu) == torch.bfloat16
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    assert kv_cache.cache_dtype(config, torch.bfloat16, gpu) == torch.float8_e4m3fn


def test_the_shipped_model_answers_as_before() -> None:
    """Everything that atom-tiny has learned: what it answers right stays right, to the letter."""
    rows = [json.loads(line) for line in ANSWERS.read_text().splitlines()]
    rows = [row for row in rows if row["skill"] != "beyond"][::4]
    sampling = SamplingParams(temperature=0.0, max_tokens=96, stop_strings="<|im_end|>")
    with LLMEngine("atom-tiny", dtype="float32", device="cpu", max_num_seqs=48, kv_cache_dtype="fp8") as engine:
        answers = [answer["text"] for answer in engine.generate([row["prompt"] for row in rows], sampling)]
    assert len(rows) > 40
    assert answers == [row["answer"] for row in rows]
