"""Generation ends at every end token that any of the model's files names, over a real model and its files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from atom import LLMEngine, SamplingParams
from tests.fakes.byte_tokenizer import EOS, SPECIAL, byte_backend
from tests.models.tiny import make_model, save_model

OWN = SPECIAL[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    made = save_model(make_model("llama", vocab_size=259), tmp_path_factory.mktemp("model"))
    byte_backend().save(str(made / "tokenizer.json"))
    return made


def name_end_tokens(folder: Path, config: Any, generation: Any, tokenizer: str | None) -> None:
    raw = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(raw | {"eos_token_id": config}))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": generation}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": tokenizer}))


@pytest.mark.parametrize(
    ("config", "generation", "tokenizer", "ends"),
    [
        (None, [1, 106], OWN, [1, 106, EOS]),
        (77, None, None, [77]),
        (None, None, OWN, [EOS]),
        (5, [6, 7], OWN, [5, 6, 7, EOS]),
        ([8, 99_999], -1, None, [8]),
        (None, None, None, []),
    ],
)
def test_any_of_them_ends_the_answer(
    folder: Path, config: Any, generation: Any, tokenizer: str | None, ends: list[int]
) -> None:
    name_end_tokens(folder, config, generation, tokenizer)
    settings: dict[str, Any] = {"device": "cpu", "dtype": "float32", "kv_cache_memory": 1 << 20, "max_model_len": 64}
    with LLMEngine(str(folder), **settings) as engine:
        assert engine.config.eos_token_ids == tuple(ends)
        for token in [*ends, 33]:
            # Forbidden for two tokens, then far the likeliest.
            sampling = SamplingParams(temperature=0.0, max_tokens=6, min_tokens=2, logit_bias={token: 100.0})
            [answer] = engine.generate([[10, 11, 12]], sampling)
            if token in ends:
                assert answer["finish_reason"] == "stop" and len(answer["token_ids"]) == 2
                assert token not in answer["token_ids"]
            else:
                assert answer["finish_reason"] == "length" and answer["token_ids"] == [token] * 6
