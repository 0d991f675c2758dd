"""The whole engine over tiny random models: however the work is cut up, the tokens are those of the model alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from atom import LLMEngine, SamplingParams
from atom.examples import simple_inference
from tests.fakes.byte_tokenizer import byte_tokenizer
from tests.models.tiny import make_model, save_model

NUM_TOKENS = 64
VOCAB = 259
GREEDY = SamplingParams(temperature=0.0, max_tokens=NUM_TOKENS, ignore_eos=True)
PROMPTS = [[(3 * index + 7 * at) % 255 + 1 for at in range(5 + 6 * index)] for index in range(8)]


def greedy(model: torch.nn.Module, prompt: list[int]) -> list[int]:
    """The model's own answer, the whole text computed again for each token."""
    ids = torch.tensor([prompt])
    with torch.inference_mode():
        for _ in range(NUM_TOKENS):
            ids = torch.cat([ids, model(ids).logits[:, -1].argmax(-1, keepdim=True)], 1)
    return ids[0, len(prompt) :].tolist()


@pytest.fixture(scope="module", params=["llama", "qwen2", "qwen3"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[list[int]]]:
    """A checkpoint with a tokenizer, and what it answers to PROMPTS."""
    torch.set_num_threads(1)
    made = make_model(request.param, vocab_size=VOCAB).eval()
    folder = save_model(made, tmp_path_factory.mktemp(request.param), 1)
    byte_tokenizer()._backend.save(str(folder / "tokenizer.json"))
    return folder, [greedy(made, prompt) for prompt in PROMPTS]


def engine_of(folder: Path, **settings: Any) -> LLMEngine:
    defaults = {"dtype": "float32", "device": "cpu", "max_num_seqs": 8, "kv_cache_memory": 2 << 20, "block_size": 4}
    return LLMEngine(str(folder), **{**defaults, **settings})


def tokens_of(engine: LLMEngine, prompts: list[list[int]], sampling: SamplingParams = GREEDY) -> list[list[int]]:
    return [answer["token_ids"] for answer in engine.generate(prompts, sampling)]


def test_alone_in_a_batch_and_with_cached_prefixes(model: tuple[Path, list[list[int]]]) -> None:
    folder, expected = model
    with engine_of(folder) as engine:
        assert tokens_of(engine, [PROMPTS[3]]) == [expected[3]]
        assert tokens_of(engine, PROMPTS) == expected
        before = engine.stats().cached_prompt_tokens
        assert tokens_of(engine, PROMPTS) == expected
        assert engine.stats().cached_prompt_tokens > before + 100


def test_in_chunks_of_seven_tokens(model: tuple[Path, list[list[int]]]) -> None:
    folder, expected = model
    with engine_of(folder, max_num_batched_tokens=7) as engine:
        assert tokens_of(engine, PROMPTS) == expected


def test_after_preemptions(model: tuple[Path, list[list[int]]]) -> None:
    folder, expected = model
    with engine_of(folder, kv_cache_memory=160 << 10, max_model_len=128, enable_prefix_caching=False) as engine:
        answers = tokens_of(engine, PROMPTS)
        assert engine.stats().preemptions > 0
        assert answers == expected


def test_seeded_samples_do_not_depend_on_the_batch(model: tuple[Path, list[list[int]]]) -> None:
    folder, _ = model
    params = [SamplingParams(temperature=1.0, seed=index, max_tokens=20, logprobs=1) for index in range(8)]
    with engine_of(folder) as engine:
        together = engine.generate(PROMPTS, params)
        alone = [engine.generate([prompt], [one])[0] for prompt, one in zip(PROMPTS, params, strict=True)]
    assert [answer["token_ids"] for answer in together] == [answer["token_ids"] for answer in alone]
    for one, other in zip(together, alone, strict=True):
        assert [entry.logprob for entry in one["logprobs"]] == pytest.approx(
            [entry.logprob for entry in other["logprobs"]], abs=1e-4
        )


def test_the_example_answers_its_prompts(
    model: tuple[Path, list[list[int]]], capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--model", str(model[0]), "--kv-cache-memory", "4MiB", "--device", "cpu", "--max-tokens", "5"]
    simple_inference.main([*arguments, "--temperature", "0"])
    output = capsys.readouterr().out
    assert output.count("prompt: ") == 4
    assert "prompt: 你好！" in output
    assert "20 tokens in " in output or "(stop)" in output


def test_the_example_says_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="error: "):
        simple_inference.main(["--model", str(tmp_path / "nothing")])
    with pytest.raises(SystemExit, match="error: temperature"):
        simple_inference.main(["--model", str(tmp_path), "--temperature", "-1"])
