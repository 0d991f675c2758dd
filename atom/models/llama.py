"""LlamaForCausalLM: grouped-query attention, rotary embeddings, gated feed-forward. Wiring only."""

from __future__ import annotations

import torch

from atom.hf_config import HFConfig
from atom.model_ops.attention import Attention
from atom.model_ops.context import BuildContext
from atom.model_ops.linear import QKVLinear, RowLinear
from atom.model_ops.rope import RotaryEmbedding
from atom.model_ops.step import StepInputs
from atom.models.decoder import CausalLM, DecoderLayer, GatedMLP, SelfAttention


class LlamaAttention(SelfAttention):
    """Projection, attention, projection. Llama has a bias on all four projections or on none."""

    def __init__(self, hf: HFConfig, rotary: RotaryEmbedding, build: BuildContext) -> None:
        super().__init__()
        bias = hf.attention_bias
        self.qkv_proj = QKVLinear(hf.hidden_size, hf.head_dim, hf.num_heads, hf.num_kv_heads, bias, build)
        self.o_proj = RowLinear(hf.num_heads * hf.head_dim, hf.hidden_size, bias, build)
        self.attn = Attention(self.qkv_proj.num_heads, self.qkv_proj.num_kv_heads, hf.head_dim, rotary, build)

    def forward(self, x: torch.Tensor, step: StepInputs) -> torch.Tensor:
        """[T, H] to [T, HQ * D]."""
        return self.attn(self.qkv_proj(x), step)


def llama_layer(hf: HFConfig, index: int, rotary: RotaryEmbedding, build: BuildContext) -> DecoderLayer:
    """Every layer is alike."""
    return DecoderLayer(hf, LlamaAttention(hf, rotary, build), GatedMLP(hf, build), build)


class LlamaForCausalLM(CausalLM):
    """Llama 1 to 3, and everything that copies its shape under this name."""

    def __init__(self, hf: HFConfig, build: BuildContext) -> None:
        super().__init__(hf, llama_layer, build)
