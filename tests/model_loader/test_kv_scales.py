"""Scales of an fp8 KV cache: every name that quantisers give them, and what is no scale."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from atom.hf_config import HFConfig
from atom.model_loader.files import WeightsError
from atom.model_loader.loader import load_model
from atom.model_loader.weight_names import checkpoint_slots
from atom.models.decoder import CausalLM
from atom.models.registry import build_model
from tests.model_ops.build import build_context

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": 20,
    "hidden_size": 16,
    "intermediate_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}
LAYER = "model.layers.1.self_attn."
ONES = [[1.0, 1.0], [1.0, 1.0]]


def loaded(folder: Path, **scales: torch.Tensor) -> list[list[list[float]]]:
    """The scales of both layers of a model whose checkpoint has `scales` in the second."""
    model: CausalLM = build_model(HFConfig.from_dict(CONFIG), build_context())
    slots = checkpoint_slots(model, model.packed)
    tensors = {name: torch.zeros(slot.checkpoint_shape) for name, slot in slots.items()}
    save_file({**tensors, **{LAYER + name: tensor for name, tensor in scales.items()}}, folder / "model.safetensors")
    load_model(model, folder, None)
    return [layer.kv_scales.tolist() for layer in model.attention_layers()]


@pytest.mark.parametrize("prefix", ["", "attn.", "k_proj."])
def test_names_of_keys_and_values(prefix: str, tmp_path: Path) -> None:
    given = {f"{prefix}k_scale": torch.tensor(0.5), f"{prefix.replace('k_', 'v_')}v_scale": torch.tensor([0.25])}
    assert loaded(tmp_path, **given) == [ONES, [[0.5, 0.5], [0.25, 0.25]]]


def test_the_names_of_outputs_and_of_queries(tmp_path: Path) -> None:
    given = {
        name: torch.tensor(2.0) for name in ("v_proj.output_scale", "q_proj.output_scale", "q_scale", "prob_scale")
    }
    assert loaded(tmp_path, **given) == [ONES, [[1.0, 1.0], [2.0, 2.0]]]


def test_one_scale_for_both(tmp_path: Path) -> None:
    assert loaded(tmp_path, kv_scale=torch.tensor(3.0, dtype=torch.bfloat16)) == [ONES, [[3.0, 3.0], [3.0, 3.0]]]


def test_a_scale_a_head(tmp_path: Path) -> None:
    found = loaded(tmp_path, k_scale=torch.tensor([0.5, 2.0]), v_scale=torch.tensor([[[4.0]], [[8.0]]]))
    assert found == [ONES, [[0.5, 2.0], [4.0, 8.0]]]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([0.0], "positive number"),
        ([-1.0], "positive number"),
        ([float("nan")], "positive number"),
        ([1.0, 1.0, 1.0], "has 3 values, wanted is 1 or one for each of 2 key/value heads"),
        ([], "has 0 values"),
    ],
)
def test_what_is_no_scale_names_the_tensor(values: list[float], words: str, tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=rf"{LAYER}k_scale .*{words}"):
        loaded(tmp_path, k_scale=torch.tensor(values))


def test_two_scales_of_the_same_keys_must_be_one(tmp_path: Path) -> None:
    same = {"k_scale": torch.tensor([2.0]), "k_proj.k_scale": torch.tensor(2.0)}
    assert loaded(tmp_path, **same) == [ONES, [[2.0, 2.0], [1.0, 1.0]]]
    for name in ("k_proj.k_scale", "kv_scale"):
        with pytest.raises(WeightsError, match=r"k_?v?_scale differs from .*scale, a scale of the same keys or values"):
            loaded(tmp_path, **{"k_scale": torch.tensor(2.0), name: torch.tensor(3.0)})


def test_each_rank_takes_the_scales_of_its_heads() -> None:
    build = replace(build_context(), tp_rank=1, tp_size=2)
    (layer, _) = build_model(HFConfig.from_dict(CONFIG), build).attention_layers()
    layer.set_kv_scale(0, torch.tensor([0.5, 2.0]))
    assert layer.kv_scales.tolist() == [[2.0], [1.0]]
