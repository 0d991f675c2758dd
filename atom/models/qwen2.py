"""Qwen2ForCausalLM: Llama's shape with a bias on q, k and v, and a window on the layers that config.json names."""

from __future__ import annotations

import torch

from atom.hf_config import HFConfig
from atom.model_ops.attention import Attention
from atom.model_ops.context import BuildContext
from atom.model_ops.linear import QKVLinear, RowLinear
from atom.model_ops.rope import RotaryEmbedding
from atom.model_ops.step import StepInputs
from atom.models.decoder import CausalLM, DecoderLayer, GatedMLP, SelfAttention, layer_window


class Qwen2Attention(SelfAttention):
    """Projection with bias, attention, projection without."""

    def __init__(self, hf: HFConfig, index: int, rotary: RotaryEmbedding, build: BuildContext) -> None:
        super().__init__()
        self.qkv_proj = QKVLinear(hf.hidden_size, hf.head_dim, hf.num_heads, hf.num_kv_heads, True, build)
        self.o_proj = RowLinear(hf.num_heads * hf.head_dim, hf.hidden_size, False, build)
        num_heads, num_kv_heads = self.qkv_proj.num_heads, self.qkv_proj.num_kv_heads
        self.attn = Attention(num_heads, num_kv_heads, hf.head_dim, rotary, build, window=layer_window(hf, index))

    def forward(self, x: torch.Tensor, step: StepInputs) -> torch.Tensor:
        """[T, H] to [T, HQ * D]."""
        return self.attn(self.qkv_proj(x), step)


def qwen2_layer(hf: HFConfig, index: int, rotary: RotaryEmbedding, build: BuildContext) -> DecoderLayer:
    """Layers differ by their window only."""
    return DecoderLayer(hf, Qwen2Attention(hf, index, rotary, build), GatedMLP(hf, build), build)


class Qwen2ForCausalLM(CausalLM):
    """Qwen2 and Qwen2.5."""

    def __init__(self, hf: HFConfig, build: BuildContext) -> None:
        super().__init__(hf, qwen2_layer, build)
