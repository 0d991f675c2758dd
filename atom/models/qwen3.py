"""Qwen3ForCausalLM: a norm on every query and key head before the rotation. Wiring only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch

from atom.hf_config import HFConfig
from atom.model_ops.attention import Attention
from atom.model_ops.context import BuildContext
from atom.model_ops.linear import QKVLinear, RowLinear
from atom.model_ops.norm import HeadNorms
from atom.model_ops.rope import RotaryEmbedding
from atom.model_ops.step import StepInputs
from atom.models.decoder import CausalLM, DecoderLayer, GatedMLP, SelfAttention, layer_window


class Qwen3Attention(SelfAttention):
    """Projection, head norms, attention, projection."""

    def __init__(self, hf: HFConfig, index: int, rotary: RotaryEmbedding, build: BuildContext) -> None:
        super().__init__()
        bias, eps = hf.attention_bias, hf.rms_norm_eps
        self.qkv_proj = QKVLinear(hf.hidden_size, hf.head_dim, hf.num_heads, hf.num_kv_heads, bias, build)
        self.o_proj = RowLinear(hf.num_heads * hf.head_dim, hf.hidden_size, bias, build)
        num_heads, num_kv_heads = self.qkv_proj.num_heads, self.qkv_proj.num_kv_heads
        self.qk_norm = HeadNorms(hf.head_dim, num_heads, num_kv_heads, build)
        window = layer_window(hf, index)
        self.attn = Attention(num_heads, num_kv_heads, hf.head_dim, rotary, build, window=window, norm_eps=eps)

    def forward(self, x: torch.Tensor, step: StepInputs) -> torch.Tensor:
        """[T, H] to [T, HQ * D]."""
        return self.attn(self.qkv_proj(x), step, self.qk_norm.weight)


def qwen3_layer(hf: HFConfig, index: int, rotary: RotaryEmbedding, build: BuildContext) -> DecoderLayer:
    """Layers differ by their window only."""
    return DecoderLayer(hf, Qwen3Attention(hf, index, rotary, build), GatedMLP(hf, build), build)


class Qwen3ForCausalLM(CausalLM):
    """Qwen3, dense."""

    packed: ClassVar[Mapping[str, tuple[str, ...]]] = {**CausalLM.packed, "qk_norm": ("q_norm", "k_norm")}

    def __init__(self, hf: HFConfig, build: BuildContext) -> None:
        super().__init__(hf, qwen3_layer, build)
