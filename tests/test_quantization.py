"""quantization_config as its writers spell it, and the errors that name what is not supported."""

from __future__ import annotations

from typing import Any

import pytest

from atom.hf_config import ModelConfigError
from atom.quantization import Quantization, read_quantization

FP8: dict[str, Any] = {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}
WEIGHTS = {"num_bits": 8, "type": "float", "strategy": "channel", "symmetric": True, "dynamic": False}
INPUTS = {"num_bits": 8, "type": "float", "strategy": "token", "symmetric": True, "dynamic": True}


def compressed(weights: dict[str, Any], inputs: dict[str, Any] | None, **changes: Any) -> dict[str, Any]:
    """A compressed-tensors configuration of one group, with the keys that its writer leaves at null."""
    group = {
        "targets": ["Linear"],
        "weights": {**WEIGHTS, "group_size": None, "block_structure": None, "observer": "minmax", **weights},
        "input_activations": None if inputs is None else {**INPUTS, "actorder": None, "observer_kwargs": {}, **inputs},
        "output_activations": None,
    }
    return {
        "quant_method": "compressed-tensors",
        "format": "float-quantized",
        "quantization_status": "compressed",
        "config_groups": {"group_0": group},
        "ignore": ["lm_head"],
        "kv_cache_scheme": None,
        "global_compression_ratio": 1.2,
        **changes,
    }


BLOCKS = ({"strategy": "block", "block_structure": [128, 128]}, {"strategy": "group", "group_size": 128})


@pytest.mark.parametrize("config", [None, {}])
def test_a_checkpoint_that_is_not_quantised(config: object) -> None:
    assert read_quantization(config, None) is None
    asked = read_quantization(config, "fp8")
    assert asked == Quantization(is_online=True)
    assert asked is not None
    assert asked.covers("model.layers.0.mlp.up_proj")


def test_scales_of_the_kv_cache_alone() -> None:
    config = compressed({}, {}, format="dense", config_groups={}, kv_cache_scheme={"num_bits": 8, "type": "float"})
    assert read_quantization(config, None) is None
    assert read_quantization(config, "fp8") == Quantization(is_online=True)
    for changes in ({"kv_cache_scheme": None}, {"config_groups": {"group_0": {}}}):
        with pytest.raises(ModelConfigError, match="format 'dense' is not supported"):
            read_quantization({**config, **changes}, None)


def test_fp8_in_blocks() -> None:
    written = {**FP8, "fmt": "e4m3", "scale_fmt": "float", "dequantize": False, "modules_to_convert": None}
    found = read_quantization({**written, "modules_to_not_convert": ["lm_head", "model.layers.1"]}, None)
    assert found == Quantization(True, scale_name="weight_scale_inv", ignored=("lm_head", "model.layers.1"))
    assert read_quantization(written, "fp8") == Quantization(True, scale_name="weight_scale_inv")


def test_fp8_without_blocks() -> None:
    config = {**FP8, "weight_block_size": None, "ignored_layers": ["lm_head"], "kv_cache_scheme": "static"}
    assert read_quantization(config, None) == Quantization(ignored=("lm_head",))


@pytest.mark.parametrize("strategy", ["channel", "tensor"])
def test_compressed_tensors_by_row(strategy: str) -> None:
    assert read_quantization(compressed({"strategy": strategy}, {}), None) == Quantization(ignored=("lm_head",))


def test_compressed_tensors_in_blocks() -> None:
    assert read_quantization(compressed(*BLOCKS), None) == Quantization(True, ignored=("lm_head",))
    older = {**BLOCKS[0], "block_structure": "128x128"}
    assert read_quantization(compressed(older, BLOCKS[1]), None) == Quantization(True, ignored=("lm_head",))


def test_which_linears() -> None:
    found = read_quantization(
        {**FP8, "modules_to_not_convert": ["model.layers.1", "o_proj", r"model.layers.\d.mlp"]}, None
    )
    assert found is not None
    assert found.covers("model.layers.11.self_attn.q_proj")
    assert not found.covers("model.layers.1.self_attn.q_proj")
    assert not found.covers("model.layers.0.self_attn.o_proj")
    assert not found.covers("model.layers.0.mlp.up_proj")
    assert found.covers("model.layers.10.mlp.up_proj")

    config = compressed({}, {}, ignore=["re:.*layers[.]0[.].*"])
    config["config_groups"]["group_0"]["targets"] = ["re:.*down_proj$", "gate_proj"]
    found = read_quantization(config, None)
    assert found is not None
    assert [
        name for name in ("q_proj", "gate_proj", "up_proj", "down_proj") if found.covers(f"model.layers.1.x.{name}")
    ] == [
        "gate_proj",
        "down_proj",
    ]
    assert not found.covers("model.layers.0.x.down_proj")


WRONG: dict[str, tuple[Any, str]] = {
    "another method": ({"quant_method": "gptq", "bits": 4}, "quant_method 'gptq' is not supported; known are fp8"),
    "no method": ({"bits": 4}, "quant_method None"),
    "no object": ("fp8", "must be an object, got 'fp8'"),
    "static activations": ({**FP8, "activation_scheme": "static"}, "activation_scheme 'static' .* must be 'dynamic'"),
    "other blocks": ({**FP8, "weight_block_size": [1, 32]}, r"weight_block_size \[1, 32\] is not supported"),
    "other scales": ({**FP8, "scale_fmt": "ue8m0"}, "scale_fmt 'ue8m0'"),
    "another type": ({**FP8, "fmt": "e5m2"}, "fmt 'e5m2'"),
    "an unknown key": ({**FP8, "smooth": 1}, r"smooth \(1\) is not supported"),
    "no list": ({**FP8, "modules_to_not_convert": "lm_head"}, "modules_to_not_convert must be a list of names"),
    "no expression": ({**FP8, "modules_to_not_convert": ["a(b"]}, "no regular expression"),
    "another format": (compressed({}, {}, format="pack-quantized"), "format 'pack-quantized'"),
    "calibration": (compressed({}, {}, quantization_status="calibration"), "quantization_status 'calibration'"),
    "sparse": (compressed({}, {}, sparsity_config={"format": "dense"}), "sparsity_config"),
    "no groups": (compressed({}, {}, config_groups={}), "config_groups must be an object of groups"),
    "4 bits": (compressed({"num_bits": 4}, {}), "group_0, weights: num_bits 4 is not supported; it must be 8"),
    "integers": (compressed({"type": "int"}, {}), "type 'int'"),
    "static inputs": (compressed({}, {"dynamic": False}), "input_activations: dynamic False is not supported"),
    "weights alone": (compressed({}, None), "neither alone is supported"),
    "blocks, inputs by token": (compressed(BLOCKS[0], {}), "input_activations: strategy 'token'"),
    "outputs": (
        compressed({}, {}, config_groups={"g": {"weights": {}, "input_activations": {}, "output_activations": {}}}),
        "g: output_activations {} is not",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_not_supported_is_named(name: str) -> None:
    config, message = WRONG[name]
    for asked in (None, "fp8"):
        with pytest.raises(ModelConfigError, match=message):
            read_quantization(config, asked)


def test_groups_that_differ() -> None:
    config = compressed({}, {})
    config["config_groups"]["group_1"] = compressed(*BLOCKS)["config_groups"]["group_0"]
    with pytest.raises(ModelConfigError, match="the groups group_0, group_1 differ"):
        read_quantization(config, None)
