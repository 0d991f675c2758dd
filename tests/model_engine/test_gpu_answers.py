"""The shipped model's greedy answers are the same on every device and in every type: 20 prompts that it has learned."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from atom import LLMEngine, SamplingParams

QUESTIONS = Path(__file__).parents[2] / "tools" / "eval" / "data" / "answers.jsonl"
NUM_PROMPTS = 20
# What 16 bits must get right, of each answer.
FIRST_TOKENS = 32


def learned_prompts() -> list[str]:
    """Twenty, spread over the skills; sums of three digits were never learned."""
    rows = [json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    rows = [row for row in rows if row["skill"] != "beyond"]
    return [row["prompt"] for row in rows[:: len(rows) // NUM_PROMPTS][:NUM_PROMPTS]]


def answers(max_tokens: int, ignore_eos: bool, **settings: Any) -> list[list[int]]:
    """Greedy tokens of the prompts, all at once."""
    sampling = SamplingParams(temperature=0.0, max_tokens=max_tokens, ignore_eos=ignore_eos)
    with LLMEngine("atom-tiny", max_model_len=512, max_num_seqs=32, kv_cache_memory=128 << 20, **settings) as engine:
        return [answer["token_ids"] for answer in engine.generate(learned_prompts(), sampling)]


def first_differences(found: list[list[int]], wanted: list[list[int]]) -> dict[int, int]:
    """Prompt to the place of its first other token; none where the answers are equal."""
    places = {}
    for prompt, (mine, theirs) in enumerate(zip(found, wanted, strict=True)):
        if mine != theirs:
            equal = [one == other for one, other in zip(mine, theirs, strict=False)]
            places[prompt] = [*equal, False].index(False)
    return places


@pytest.fixture(scope="module")
def in_float32() -> list[list[int]]:
    """By the reference on the CPU; longer than the answers are, so that what the model never learned counts too."""
    torch.set_num_threads(1)
    return answers(96, True, device="cpu", dtype="float32")


def test_the_prompts_are_twenty_of_several_kinds(in_float32: list[list[int]]) -> None:
    assert len(learned_prompts()) == len(set(learned_prompts())) == NUM_PROMPTS
    assert all(len(tokens) == 96 for tokens in in_float32)
    assert len({tuple(tokens[:8]) for tokens in in_float32}) > NUM_PROMPTS // 2


def test_differences_are_found() -> None:
    assert first_differences([[1, 2, 3], [1, 2], [4]], [[1, 5, 3], [1, 2, 3], [4]]) == {0: 1, 1: 2}


@pytest.mark.gpu
@pytest.mark.parametrize("eager", [False, True])
def test_float32_on_the_gpu_gives_the_same_tokens(eager: bool, in_float32: list[list[int]]) -> None:
    found = answers(96, True, device="cuda", dtype="float32", enforce_eager=eager)
    assert first_differences(found, in_float32) == {}


DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.mark.parametrize("device", DEVICES)
def test_bfloat16_gives_the_same_answers(device: str, in_float32: list[list[int]]) -> None:
    """All of them to their end, of 9 to 47 tokens."""
    found = answers(96, False, device=device, dtype="bfloat16")
    assert first_differences(found, [wanted[: len(one)] for one, wanted in zip(found, in_float32, strict=True)]) == {}
    assert all(5 < len(one) < 96 for one in found)


@pytest.mark.parametrize("device", DEVICES)
def test_bfloat16_goes_on_as_float32_does(device: str, in_float32: list[list[int]], record_property: Any) -> None:
    """Past the end of an answer, too, where the model never learned to go on. Differences further on are counted and
    printed (`-rP`), and no failure.
    """
    found = answers(96, True, device=device, dtype="bfloat16")
    places = first_differences(found, in_float32)
    record_property("first_differences", places)
    print(f"bfloat16 on {device}: {len(places)} of {len(found)} answers of 96 tokens differ, from token {places}")
    assert {prompt: place for prompt, place in places.items() if place < FIRST_TOKENS} == {}


@pytest.mark.parametrize("device", DEVICES)
def test_an_fp8_cache_gives_the_same_answers(device: str, in_float32: list[list[int]]) -> None:
    """To their end, which the model has learned."""
    found = answers(96, False, device=device, dtype="bfloat16", kv_cache_dtype="fp8")
    assert first_differences(found, [wanted[: len(one)] for one, wanted in zip(found, in_float32, strict=True)]) == {}
    assert all(5 < len(one) < 96 for one in found)
