"""Answers by the model's own training code, which shares nothing with the engine.

Owns: greedy answers to text prompts. Does not know: lm-eval, scores.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from tokenizers import Tokenizer

from atom.builtin_model import resolve
from tools.builtin_model.greedy import generate
from tools.builtin_model.model import load_model
from tools.builtin_model.vocabulary import END_IDS

_BATCH = 50
_MAX_ANSWER_TOKENS = 128


def reference_texts(prompts: Sequence[str], dtype: str) -> list[str]:
    """The greedy answer to each prompt, without the token that ended it."""
    folder = resolve("atom-tiny").path
    model = load_model(folder, getattr(torch, dtype))
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    encoded = [tokenizer.encode(prompt).ids for prompt in prompts]
    answers: list[str] = []
    for start in range(0, len(encoded), _BATCH):
        answers += [
            tokenizer.decode(ids, skip_special_tokens=True)
            for ids in generate(model, encoded[start : start + _BATCH], END_IDS, _MAX_ANSWER_TOKENS)
        ]
    return answers
