"""Rotary tables against transformers', for every kind and every spelling that config.json knows."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import torch
import transformers
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from atom.hf_config import HFConfig, ModelConfigError
from atom.model_ops.rope import RotaryEmbedding, inverse_frequencies, rope_table
from tests.model_ops.build import build_context

BASE: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 32,
    "hidden_size": 256,
    "intermediate_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "max_position_embeddings": 512,
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 128,
}
YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 128}

PARAMETERS: dict[str, dict[str, Any]] = {
    "default": {"rope_type": "default", "rope_theta": 1e6},
    "linear": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0},
    "dynamic": {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0},
    "llama3": LLAMA3,
    "yarn": YARN,
    "yarn, betas": {**YARN, "beta_fast": 16.0, "beta_slow": 2.0},
    "yarn, attention factor": {**YARN, "attention_factor": 1.3},
    "yarn, mscale": {**YARN, "mscale": 0.7, "mscale_all_dim": 1.2},
    "yarn, not truncated": {**YARN, "truncate": False},
    "yarn, narrow band": {**YARN, "rope_theta": 1e9, "beta_fast": 1.0, "beta_slow": 1.0},
}


def theirs(raw: dict[str, Any], num_positions: int) -> torch.Tensor:
    """transformers' table [num_positions, R], cosines then sines, in float32."""
    config = transformers.LlamaConfig(**raw)
    rotary = LlamaRotaryEmbedding(config)
    cos, sin = rotary(torch.zeros(1, 1), torch.arange(num_positions).unsqueeze(0))
    half = cos.shape[-1] // 2
    return torch.cat((cos[0, :, :half], sin[0, :, :half]), dim=-1)


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.parametrize("num_positions", [300, 512])
def test_tables_equal_transformers(name: str, num_positions: int) -> None:
    raw = {**BASE, "rope_parameters": PARAMETERS[name]}
    hf = HFConfig.from_dict(raw)
    ours = rope_table(hf.rope, hf.head_dim, num_positions)
    assert (ours - theirs(raw, num_positions)).abs().max() < 1e-5


def test_dynamic_beyond_the_original_context() -> None:
    raw = {**BASE, "rope_parameters": PARAMETERS["dynamic"]}
    hf = HFConfig.from_dict(raw)
    ours = rope_table(hf.rope, hf.head_dim, 900)
    assert (ours - theirs(raw, 900)).abs().max() < 1e-5
    plain = inverse_frequencies(hf.rope, hf.head_dim, 512)
    assert not torch.allclose(inverse_frequencies(hf.rope, hf.head_dim, 900), plain)


@pytest.mark.parametrize(
    ("changes", "same_as"),
    [
        ({"rope_scaling": None, "rope_theta": 2e4}, {"rope_type": "default", "rope_theta": 2e4}),
        ({"rope_scaling": {"rope_type": "default", "rope_theta": 1e6}}, {"rope_type": "default", "rope_theta": 1e6}),
        ({}, {"rope_type": "default", "rope_theta": 10000.0}),
        ({"rope_scaling": {"type": "linear", "factor": 4.0}}, PARAMETERS["linear"]),
        ({"rope_scaling": {**LLAMA3, "rope_theta": None}, "rope_theta": 500000.0}, LLAMA3),
    ],
)
def test_older_spellings(changes: dict[str, Any], same_as: dict[str, Any]) -> None:
    hf = HFConfig.from_dict({**BASE, **changes})
    assert (rope_table(hf.rope, 64, 300) - theirs({**BASE, "rope_parameters": same_as}, 300)).abs().max() < 1e-5


def test_yarn_without_the_original_length(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        hf = HFConfig.from_dict({**BASE, "rope_scaling": {"type": "yarn", "factor": 2.0}})
    assert "original_max_position_embeddings" in caplog.text
    same_as = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 2.0, "original_max_position_embeddings": 512}
    assert (rope_table(hf.rope, 64, 300) - theirs({**BASE, "rope_parameters": same_as}, 300)).abs().max() < 1e-5


def test_an_unknown_kind_is_refused_by_name() -> None:
    with pytest.raises(ModelConfigError, match="unknown-kind"):
        HFConfig.from_dict({**BASE, "rope_scaling": {"type": "unknown-kind", "factor": 2.0}})


def test_a_partial_rotation_has_a_smaller_table() -> None:
    raw = {**BASE, "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.25}}
    hf = HFConfig.from_dict(raw)
    assert rope_table(hf.rope, 64, 10).shape == (10, 16)


def test_the_embedding_holds_the_table_in_the_models_dtype() -> None:
    hf = HFConfig.from_dict(BASE)
    rotary = RotaryEmbedding(hf.rope, 64, build_context(dtype=torch.bfloat16, max_positions=33))
    assert rotary.cos_sin.shape == (33, 64)
    assert torch.equal(rotary.cos_sin, rope_table(hf.rope, 64, 33).to(torch.bfloat16))
