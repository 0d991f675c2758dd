"""What 16 bits do to the shipped model's choices: by how much the lead of the likeliest token over the second differs
from float32's, on the CPU, and on a GPU where there is one.

Twenty prompts of the evaluation, each with the first tokens of its float32 answer behind it, are scored as one prompt.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import torch

from atom import LLMEngine, SamplingParams
from atom.builtin_model import resolve
from atom.tokenizer import Tokenizer

_QUESTIONS = Path(__file__).parents[1] / "tools" / "eval" / "data" / "answers.jsonl"
_NUM_PROMPTS, _NUM_TOKENS = 20, 32
# Likeliest tokens that are asked for, so that the first two of float32 are among those of 16 bits.
_LISTED = 5

# The log probabilities of a position's likeliest tokens.
Tops = dict[int, float]


def run() -> list[dict[str, Any]]:
    """Standard deviation and median, a device."""
    prompts = _prompts()
    with _engine("cpu", "float32") as engine:
        greedy = SamplingParams(temperature=0.0, max_tokens=_NUM_TOKENS, ignore_eos=True)
        answers = [answer["token_ids"] for answer in engine.generate(prompts, greedy)]
        wanted = _tops(engine, prompts, answers)
    rows = []
    for device in ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",):
        with _engine(device, "bfloat16") as engine:
            errors = _errors(_tops(engine, prompts, answers), wanted)
        name = f"error of the first token's lead, bfloat16 on {device}, {len(errors)} positions"
        rows.append({"name": f"{name}, standard deviation", "value": statistics.pstdev(errors), "unit": "nats"})
        median = statistics.median(abs(error) for error in errors)
        rows.append({"name": f"{name}, median of sizes", "value": median, "unit": "nats"})
    return rows


def _engine(device: str, dtype: str) -> LLMEngine:
    return LLMEngine("atom-tiny", device=device, dtype=dtype, max_model_len=512, kv_cache_memory=1 << 27)


def _prompts() -> list[list[int]]:
    """Token ids, of all skills that the model has learned."""
    tokenizer = Tokenizer.load(resolve("atom-tiny").path)
    rows = [json.loads(line) for line in _QUESTIONS.read_text(encoding="utf-8").splitlines()]
    texts = [row["prompt"] for row in rows if row["skill"] != "beyond"]
    return [tokenizer.encode(text) for text in texts[:: len(texts) // _NUM_PROMPTS][:_NUM_PROMPTS]]


def _tops(engine: LLMEngine, prompts: list[list[int]], answers: list[list[int]]) -> list[Tops]:
    """Of every position that an answer's token is at."""
    whole = [prompt + answer for prompt, answer in zip(prompts, answers, strict=True)]
    scored = engine.generate(whole, SamplingParams(temperature=0.0, max_tokens=1, prompt_logprobs=_LISTED))
    found = []
    for prompt, one in zip(prompts, scored, strict=True):
        entries = one["prompt_logprobs"][len(prompt) :]
        found += [dict(zip(entry.top_ids, entry.top_logprobs, strict=True)) for entry in entries]
    return found


def _errors(found: list[Tops], wanted: list[Tops]) -> list[float]:
    errors = []
    for mine, theirs in zip(found, wanted, strict=True):
        first, second = sorted(theirs, key=lambda token: -theirs[token])[:2]
        if first in mine and second in mine:
            errors.append((mine[first] - mine[second]) - (theirs[first] - theirs[second]))
    return errors
