"""Checkpoints that fit, and the errors of those that do not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from atom.hf_config import HFConfig
from atom.model_loader.dummy import fill_dummy
from atom.model_loader.files import WeightsError, find_weight_files
from atom.model_loader.loader import load_model
from atom.model_loader.weight_names import checkpoint_slots, may_be_left_over
from atom.models.decoder import CausalLM
from atom.models.registry import MODELS, UnknownArchitectureError, build_model
from tests.model_ops.build import build_context

CONFIG = {
    "architectures": ["Qwen3ForCausalLM"],
    "vocab_size": 20,
    "hidden_size": 8,
    "intermediate_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 4,
    "tie_word_embeddings": True,
}


def model(dtype: torch.dtype = torch.float32, **changes: object) -> CausalLM:
    return build_model(HFConfig.from_dict({**CONFIG, **changes}), build_context(dtype=dtype))


def tensors(**changes: object) -> dict[str, torch.Tensor]:
    """A checkpoint that fits."""
    torch.manual_seed(4)
    built = model(**changes)  # type: ignore[arg-type]  # values of one Any dict
    slots = checkpoint_slots(built, built.packed)
    return {name: torch.randn(slot.checkpoint_shape) for name, slot in slots.items()}


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def write(found: dict[str, torch.Tensor], name: str = "model.safetensors") -> Path:
        save_file(found, tmp_path / name)
        return tmp_path

    return write


def test_names_are_the_checkpoints(write: Callable[..., Path]) -> None:
    names = set(tensors())
    layer = "model.layers.1"
    parts = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "self_attn.q_norm")
    parts += ("self_attn.k_norm", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj", "input_layernorm")
    assert {f"{layer}.{part}.weight" for part in (*parts, "post_attention_layernorm")} <= names
    assert {"model.embed_tokens.weight", "model.norm.weight"} <= names
    assert "lm_head.weight" not in names
    assert "lm_head.weight" in tensors(tie_word_embeddings=False)


@torch.inference_mode()
def test_tensors_land_in_their_parts(write: Callable[..., Path]) -> None:
    found = tensors()
    built = model()
    load_model(built, write(found), None)
    layer = built.model.layers[1]
    x = torch.randn(3, 8)
    names = [f"model.layers.1.self_attn.{name}_proj.weight" for name in "qkv"]
    wanted = torch.cat([x @ found[name].T for name in names], dim=-1)
    assert torch.allclose(layer.self_attn.qkv_proj(x), wanted, atol=1e-5)
    assert torch.equal(layer.self_attn.qk_norm.weight[1], found["model.layers.1.self_attn.q_norm.weight"])
    assert torch.equal(layer.self_attn.qk_norm.weight[2], found["model.layers.1.self_attn.k_norm.weight"])
    assert torch.allclose(built.compute_logits(x), x @ found["model.embed_tokens.weight"].T, atol=1e-5)


def test_another_dtype_is_converted_in_place(write: Callable[..., Path]) -> None:
    found = {name: tensor.to(torch.float16) for name, tensor in tensors().items()}
    built = model(torch.bfloat16)
    load_model(built, write(found), None)
    assert torch.equal(built.model.norm.weight, found["model.norm.weight"].to(torch.bfloat16))


def test_a_tied_head_and_stale_buffers_may_be_left_over(write: Callable[..., Path]) -> None:
    extra = {"lm_head.weight": torch.zeros(20, 8), "model.layers.0.self_attn.rotary_emb.inv_freq": torch.zeros(2)}
    load_model(model(), write({**tensors(), **extra}), None)
    assert not may_be_left_over("lm_head.weight", is_head_tied=False)


def test_missing_tensors(write: Callable[..., Path]) -> None:
    found = tensors()
    del found["model.layers.0.mlp.up_proj.weight"]
    with pytest.raises(WeightsError, match=r"lacks model\.layers\.0\.mlp\.up_proj\.weight$"):
        load_model(model(), write(found), None)


def test_many_missing_tensors_are_counted(write: Callable[..., Path]) -> None:
    with pytest.raises(WeightsError, match=r"lacks model\.layers\.0.* and 18 more"):
        load_model(model(), write({"model.embed_tokens.weight": torch.zeros(20, 8)}), None)


def test_unexpected_tensors(write: Callable[..., Path]) -> None:
    with pytest.raises(WeightsError, match=r"no place for: model\.layers\.2\.norm\.weight"):
        load_model(model(), write({**tensors(), "model.layers.2.norm.weight": torch.zeros(8)}), None)


def test_a_wrong_shape(write: Callable[..., Path]) -> None:
    found = tensors()
    found["model.layers.0.self_attn.k_proj.weight"] = torch.zeros(8, 8)
    with pytest.raises(WeightsError, match=r"k_proj\.weight has shape \[8, 8\], by config\.json it is \[4, 8\]"):
        load_model(model(), write(found), None)


def test_a_tensor_that_comes_twice(write: Callable[..., Path]) -> None:
    write(tensors(), "a.safetensors")
    folder = write({"model.norm.weight": torch.zeros(8)}, "b.safetensors")
    with pytest.raises(WeightsError, match=r"model\.norm\.weight comes a second time"):
        load_model(model(), folder, None)


def test_a_damaged_file(write: Callable[..., Path]) -> None:
    folder = write(tensors())
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(data[: len(data) // 2])
    with pytest.raises(WeightsError, match=r"model\.safetensors can not be read"):
        load_model(model(), folder, None)


def test_shards_by_index(write: Callable[..., Path]) -> None:
    found = tensors()
    names = sorted(found)
    halves = {"x-1.safetensors": names[::2], "x-2.safetensors": names[1::2]}
    for file, part in halves.items():
        folder = write({name: found[name] for name in part}, file)
    write({"stray": torch.zeros(1)}, "consolidated.safetensors")
    weight_map = {name: file for file, part in halves.items() for name in part}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    load_model(model(), folder, None)
    (folder / "x-2.safetensors").unlink()
    with pytest.raises(WeightsError, match=r"1 of 2 files that are not there: x-2\.safetensors"):
        load_model(model(), folder, None)


def test_no_weights_at_all(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=r"holds no safetensors$"):
        find_weight_files(tmp_path)
    (tmp_path / "pytorch_model.bin").touch()
    with pytest.raises(WeightsError, match=r"pytorch_model\.bin is in a format that is not read"):
        find_weight_files(tmp_path)
    (tmp_path / "model.safetensors.index.json").write_text("{}")
    with pytest.raises(WeightsError, match="is no index"):
        find_weight_files(tmp_path)


@torch.inference_mode()
def test_dummy_weights() -> None:
    built = model()
    slots = checkpoint_slots(built, built.packed)
    fill_dummy(slots, "zero")
    assert all(not slot.target.any() for slot in slots.values())
    fill_dummy(slots, "xavier")
    first = {name: slot.target.clone() for name, slot in slots.items()}
    assert torch.equal(first["model.norm.weight"], torch.ones(8))
    matrix = first["model.layers.0.mlp.up_proj.weight"]
    assert matrix.abs().max() <= (6 / (8 + 12)) ** 0.5
    assert matrix.std() > 0.2
    assert not torch.equal(matrix, first["model.layers.1.mlp.up_proj.weight"])
    fill_dummy(slots, "empty")
    fill_dummy(slots, "xavier")
    assert all(torch.equal(first[name], slot.target) for name, slot in slots.items())
    with pytest.raises(ValueError, match="'ones' is none of empty, zero, xavier"):
        fill_dummy(slots, "ones")
    load_model(built, Path("no such folder"), "zero")


def test_an_unknown_architecture_is_named_with_those_there_are() -> None:
    with pytest.raises(UnknownArchitectureError, match=r"'GPTJForCausalLM'.*LlamaForCausalLM.*Qwen3ForCausalLM"):
        model(architectures=["GPTJForCausalLM"])
    assert all(model(architectures=[name]) is not None for name in MODELS)
