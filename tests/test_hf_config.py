"""config.json in its many spellings (case B92)."""

from __future__ import annotations

import math
from typing import Any

import pytest

from atom.hf_config import HFConfig, ModelConfigError
from tests.test_config import TINY


def read(**changes: Any) -> HFConfig:
    merged = TINY | changes
    return HFConfig.from_dict({key: value for key, value in merged.items() if value is not ...})


def test_shapes_and_fallbacks() -> None:
    hf = read()
    assert (hf.architecture, hf.num_layers, hf.num_heads, hf.num_kv_heads, hf.head_dim) == (
        "Qwen3ForCausalLM",
        2,
        4,
        2,
        8,
    )
    assert read(head_dim=..., num_key_value_heads=None).head_dim == 8
    assert read(num_key_value_heads=None).num_kv_heads == 4
    assert read(architectures=..., model_type="llama").architecture == "LlamaForCausalLM"
    assert read(sliding_window=64).sliding_window is None
    assert read(sliding_window=64, use_sliding_window=True).sliding_window == 64
    assert read(max_position_embeddings=...).max_position_embeddings == 8192
    assert hf.raw["model_type"] == "qwen3"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"hidden_size": ...}, "hidden_size is missing"),
        ({"hidden_size": "32"}, "hidden_size must be a number"),
        ({"num_hidden_layers": 0}, "num_hidden_layers must be a positive whole number"),
        ({"head_dim": 7}, "head_dim 7 is odd"),
        ({"num_key_value_heads": 3}, "no multiple of num_key_value_heads"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings must be a bool"),
        ({"architectures": None, "model_type": "mamba"}, "names no architecture"),
        ({"rope_scaling": {"type": "unknown"}}, "rope type 'unknown' is not supported"),
        ({"rope_scaling": {"rope_type": "longrope", "factor": 2.0}}, "rope type 'longrope' is not supported"),
        ({"rope_scaling": {"type": "linear"}}, "needs a factor"),
        ({"rope_scaling": {"type": "llama3", "factor": 8.0}}, "low_freq_factor is missing"),
        ({"rope_scaling": {"type": "linear", "factor": 0.5}}, "factor must be at least 1"),
        ({"rope_parameters": {"full_attention": {"rope_type": "default"}}}, "differ by layer type"),
        ({"rope_scaling": 3}, "must be an object"),
        ({"rope_theta": "big"}, "rope_theta must be a number"),
    ],
)
def test_what_can_not_be_used_is_named(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelConfigError, match=words):
        read(**changes)


LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}


@pytest.mark.parametrize(
    ("changes", "kind", "theta"),
    [
        ({"rope_scaling": None}, "default", 10000.0),
        ({"rope_scaling": None, "rope_theta": 5e5}, "default", 5e5),
        ({"rope_scaling": {"rope_type": "default", "rope_theta": 1e6}}, "default", 1e6),
        ({"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}, "default", 1e6),
        ({"rope_parameters": {"rope_theta": 1e6}, "rope_theta": 2.0}, "default", 1e6),
        ({"rope_scaling": LLAMA3, "rope_theta": 5e5}, "llama3", 5e5),
        ({"rope_parameters": {**LLAMA3, "rope_theta": 5e5}}, "llama3", 5e5),
        ({"rope_scaling": {"type": "dynamic", "factor": 2.0}}, "dynamic", 10000.0),
        ({"rope_scaling": {"type": "yarn", "factor": 2}}, "yarn", 10000.0),
    ],
)
def test_both_generations_of_rope_keys(changes: dict[str, Any], kind: str, theta: float) -> None:
    rope = read(**changes).rope
    assert (rope.kind, rope.theta) == (kind, theta)


def test_llama3_keeps_its_numbers() -> None:
    rope = read(rope_scaling={**LLAMA3, "original_max_position_embeddings": 64}).rope
    assert (rope.factor, rope.low_freq_factor, rope.high_freq_factor, rope.original_max_position) == (8.0, 1.0, 4.0, 64)


def test_a_factor_that_no_type_uses_warns(caplog: pytest.LogCaptureFixture) -> None:
    assert read(rope_scaling={"type": "default", "factor": 1.0}).rope.kind == "default" and not caplog.text
    assert read(rope_scaling={"factor": 2.0}).rope.kind == "default"
    assert "positions are not scaled" in caplog.text


def test_yarn_without_an_original_length_warns(caplog: pytest.LogCaptureFixture) -> None:
    hf = read(rope_scaling={"type": "yarn", "factor": 2.0})
    assert (hf.rope.original_max_position, hf.max_context) == (256, 512)
    assert "without original_max_position_embeddings" in caplog.text


@pytest.mark.parametrize(
    ("changes", "context"),
    [
        ({}, 256),
        ({"rope_scaling": {"type": "linear", "factor": 4.0}}, 1024),
        ({"rope_scaling": {"type": "dynamic", "factor": 2.0}}, 512),
        ({"rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 256}}, 1024),
        ({"rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}}, 256),
        ({"rope_scaling": {**LLAMA3, "original_max_position_embeddings": 64}}, 256),
    ],
)
def test_the_context_that_scaling_gives(changes: dict[str, Any], context: int) -> None:
    assert read(**changes).max_context == context


def test_yarn_attention_factor() -> None:
    yarn = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
    assert read(rope_scaling=yarn).rope.attention_factor == pytest.approx(0.1 * math.log(4) + 1)
    both = {**yarn, "mscale": 1.0, "mscale_all_dim": 1.0}
    assert read(rope_scaling=both).rope.attention_factor == 1.0
    assert read(rope_scaling={**yarn, "attention_factor": 0.5}).rope.attention_factor == 0.5
    assert read(rope_scaling={**yarn, "factor": None, "original_max_position_embeddings": 32}).rope.factor == 8.0


def test_yarn_context_is_what_transformers_reads() -> None:
    """The same normalised parameters as transformers' own configuration class gives."""
    from transformers import Qwen3Config

    for rope in (
        {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64},
        {**LLAMA3, "original_max_position_embeddings": 64},
        {"rope_type": "linear", "factor": 2.0},
        {"rope_type": "default"},
    ):
        ours = read(rope_parameters={**rope, "rope_theta": 1e6}).rope
        theirs = Qwen3Config(**{**TINY, "rope_parameters": {**rope, "rope_theta": 1e6}}).rope_parameters
        assert (ours.kind, ours.theta) == (theirs["rope_type"], theirs["rope_theta"])
        assert ours.factor == theirs.get("factor", 1.0)
        if ours.kind in ("yarn", "llama3"):
            assert ours.original_max_position == theirs["original_max_position_embeddings"]
