"""Tiny checkpoints with fp8 weights, as the tools that write them do, and transformers' model with the same numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import save_file
from torch import nn

from tests.models.tiny import make_model

BLOCK = 128
LARGEST = 448.0
# Sizes that no block divides: of q, k and v the rows are 160, 32 and 32; of gate and up 300.
SIZES: dict[str, Any] = {
    "hidden_size": 160, "intermediate_size": 300, "num_hidden_layers": 2, "num_attention_heads": 5,
    "num_key_value_heads": 1, "head_dim": 32, "initializer_range": 0.08,
}  # fmt: skip

_ROWS = {"num_bits": 8, "type": "float", "symmetric": True, "dynamic": False}
_TOKENS = {**_ROWS, "strategy": "token", "dynamic": True}


def compressed_tensors(strategy: str, ignore: list[str]) -> dict[str, Any]:
    """quantization_config of llm-compressor."""
    group = {"targets": ["Linear"], "weights": {**_ROWS, "strategy": strategy}, "input_activations": _TOKENS}
    return {
        "quant_method": "compressed-tensors", "format": "float-quantized", "quantization_status": "compressed",
        "config_groups": {"group_0": group}, "ignore": ["lm_head", *ignore],
    }  # fmt: skip


def fine_grained(ignore: list[str]) -> dict[str, Any]:
    """quantization_config of transformers."""
    return {
        "quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [BLOCK, BLOCK], "fmt": "e4m3",
        "modules_to_not_convert": ["lm_head", *ignore],
    }  # fmt: skip


def by_row(weight: torch.Tensor) -> torch.Tensor:
    """A scale an output [N, 1]."""
    return weight.abs().amax(1, keepdim=True) / LARGEST


def by_tensor(weight: torch.Tensor) -> torch.Tensor:
    """One scale [1]."""
    return weight.abs().amax().view(1) / LARGEST


def by_block(weight: torch.Tensor) -> torch.Tensor:
    """A scale for 128 x 128 weights."""
    rows, columns = (-(-size // BLOCK) for size in weight.shape)
    parts = [
        [weight[r * BLOCK : (r + 1) * BLOCK, c * BLOCK : (c + 1) * BLOCK] for c in range(columns)] for r in range(rows)
    ]
    return torch.stack([torch.stack([part.abs().amax() for part in row]) for row in parts]) / LARGEST


def _spread(scales: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Scales of any kind for each weight."""
    if scales.dim() == 2 and scales.shape[1] > 1:
        scales = scales.repeat_interleave(BLOCK, 0).repeat_interleave(BLOCK, 1)
        return scales[: weight.shape[0], : weight.shape[1]]
    return scales.expand_as(weight)


Scales = Callable[[torch.Tensor], torch.Tensor]

# Scales, their name, the configuration, and the values of an input that share a scale (None: all of a token's).
KINDS: dict[str, tuple[Scales, str, Callable[[list[str]], dict[str, Any]], int | None]] = {
    "blocks": (by_block, "weight_scale_inv", fine_grained, BLOCK),
    "channel": (by_row, "weight_scale", lambda ignore: compressed_tensors("channel", ignore), None),
    "tensor": (by_tensor, "weight_scale", lambda ignore: compressed_tensors("tensor", ignore), None),
}


def linears(model: nn.Module, ignored: list[str]) -> dict[str, nn.Linear]:
    """The linears that are quantised."""
    found = {name: module for name, module in model.named_modules() if isinstance(module, nn.Linear)}
    return {name: linear for name, linear in found.items() if name != "lm_head" and name not in ignored}


def quantize_in_place(model: nn.Module, scales_of: Scales, group: int | None, ignored: list[str]) -> dict[str, Any]:
    """Give the model's linears fp8's numbers, and their inputs on the way; returns values and scales by name."""
    made: dict[str, Any] = {}
    for name, linear in linears(model, ignored).items():
        scales = scales_of(linear.weight.data).float()
        spread = _spread(scales, linear.weight.data)
        values = (linear.weight.data / spread).clamp(-LARGEST, LARGEST).to(torch.float8_e4m3fn)
        linear.weight.data = values.float() * spread
        made[name] = (values, scales)
        linear.register_forward_pre_hook(lambda _, given: tuple(_rounded(x, group) for x in given))
    return made


def _rounded(x: torch.Tensor, group: int | None) -> torch.Tensor:
    parts = []
    for part in x.split(group or x.shape[-1], dim=-1):
        scale = part.abs().amax(-1, keepdim=True).clamp_min(2.0**-100) / LARGEST
        parts.append((part / scale).clamp(-LARGEST, LARGEST).to(torch.float8_e4m3fn).float() * scale)
    return torch.cat(parts, dim=-1)


def make_checkpoint(
    folder: Path, variant: str, kind: str, ignored: list[str], **overrides: Any
) -> transformers.PreTrainedModel:
    """Write a checkpoint of the kind to `folder`; transformers' model with the numbers that are meant."""
    scales_of, scale_name, config_of, group = KINDS[kind]
    model = make_model(variant, **{**SIZES, **overrides})
    tensors = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    if model.config.tie_word_embeddings:
        del tensors["lm_head.weight"]
    for name, (values, scales) in quantize_in_place(model, scales_of, group, ignored).items():
        tensors[f"{name}.weight"] = values
        tensors[f"{name}.{scale_name}"] = scales
    folder.mkdir(exist_ok=True)
    save_file(tensors, folder / "model.safetensors")
    config = {**model.config.to_dict(), "dtype": "float32", "quantization_config": config_of(ignored)}
    (folder / "config.json").write_text(json.dumps(config))
    return model
