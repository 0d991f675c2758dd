"""The skeleton that dense decoder-only models share: embedding, pre-norm layers, final norm, head.

An architecture's file says what its attention and feed-forward layers are. Shapes: T tokens, S positions, H hidden, I
intermediate, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar

import torch
from torch import nn

from atom.hf_config import HFConfig
from atom.model_ops.activation import gated_activation
from atom.model_ops.attention import Attention
from atom.model_ops.context import BuildContext
from atom.model_ops.embedding import LMHead, TokenEmbedding
from atom.model_ops.layer import Layer
from atom.model_ops.linear import MergedColumnLinear, QKVLinear, RowLinear
from atom.model_ops.norm import RMSNorm
from atom.model_ops.rope import RotaryEmbedding
from atom.model_ops.step import StepInputs


class GatedMLP(Layer):
    """down(act(gate(x)) * up(x))."""

    def __init__(self, hf: HFConfig, build: BuildContext) -> None:
        super().__init__()
        sizes = [hf.intermediate_size, hf.intermediate_size]
        self.gate_up_proj = MergedColumnLinear(hf.hidden_size, sizes, hf.mlp_bias, build)
        self.down_proj = RowLinear(hf.intermediate_size, hf.hidden_size, hf.mlp_bias, build)
        self._activation = gated_activation(hf.hidden_act, self.down_proj, build)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[T, H] to [T, H]."""
        return self.down_proj(self._activation(self.gate_up_proj(x)))


class SelfAttention(Layer):
    """[T, H] and the step to the heads' outputs [T, HQ * D]. qkv_proj alone reads the input; o_proj is the caller's."""

    qkv_proj: QKVLinear
    o_proj: RowLinear


class DecoderLayer(Layer):
    """Attention and feed-forward, each after a norm; the residual sum is carried beside the hidden state."""

    def __init__(self, hf: HFConfig, attention: SelfAttention, mlp: GatedMLP, build: BuildContext) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(hf.hidden_size, hf.rms_norm_eps, build, attention.qkv_proj)
        self.self_attn = attention
        self.post_attention_layernorm = RMSNorm(hf.hidden_size, hf.rms_norm_eps, build, mlp.gate_up_proj)
        self.mlp = mlp

    def forward(
        self,
        hidden: torch.Tensor,
        residual: torch.Tensor | None,
        step: StepInputs,
        tokens: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """hidden [T, H] is what the layer before added last; residual [T, H] the sum before it, changed in place.

        tokens [S]: those that are wanted of the result; the others end with their keys and values in the cache.
        """
        normed = self.input_layernorm(hidden, residual)
        residual = hidden if residual is None else residual
        heads = self.self_attn(normed, step)
        if tokens is not None:
            heads, residual = heads.index_select(0, tokens), residual.index_select(0, tokens)
        attended = self.self_attn.o_proj(heads)
        return self.mlp(self.post_attention_layernorm(attended, residual)), residual


def layer_window(hf: HFConfig, index: int) -> int | None:
    """Keys that a query of layer `index` sees, None for all: Qwen's sliding window, on the layers of config.json."""
    if hf.sliding_window is None:
        return None
    types = hf.raw.get("layer_types")
    if types is not None:
        return hf.sliding_window if types[index] == "sliding_attention" else None
    return hf.sliding_window if index >= hf.raw.get("max_window_layers", hf.num_layers) else None


LayerFactory = Callable[[HFConfig, int, RotaryEmbedding, BuildContext], DecoderLayer]


class DecoderModel(Layer):
    """Token ids to hidden states."""

    def __init__(self, hf: HFConfig, make_layer: LayerFactory, build: BuildContext) -> None:
        super().__init__()
        self.embed_tokens = TokenEmbedding(hf.vocab_size, hf.hidden_size, build)
        rotary = RotaryEmbedding(hf.rope, hf.head_dim, build)
        self.layers = nn.ModuleList(make_layer(hf, index, rotary, build) for index in range(hf.num_layers))
        self.norm = RMSNorm(hf.hidden_size, hf.rms_norm_eps, build)

    def forward(self, step: StepInputs, tokens: torch.Tensor | None = None) -> torch.Tensor:
        """[S, H], after the final norm, of these tokens of the step; of all of them by default."""
        hidden, residual = self.embed_tokens(step.token_ids), None
        *before, last = self.layers
        for layer in before:
            hidden, residual = layer(hidden, residual, step)
        return self.norm(*last(hidden, residual, step, tokens))


class CausalLM(Layer):
    """A model with a head. `packed` maps a packed layer's name to the checkpoint's names, in the order of its parts."""

    packed: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "qkv_proj": ("q_proj", "k_proj", "v_proj"),
        "gate_up_proj": ("gate_proj", "up_proj"),
    }

    def __init__(self, hf: HFConfig, make_layer: LayerFactory, build: BuildContext) -> None:
        super().__init__()
        self.model = DecoderModel(hf, make_layer, build)
        self.is_head_tied = hf.tie_word_embeddings
        tied_to = self.model.embed_tokens if self.is_head_tied else None
        self.lm_head = LMHead(hf.vocab_size, hf.hidden_size, tied_to, build)

    def forward(self, step: StepInputs, tokens: torch.Tensor | None = None) -> torch.Tensor:
        """Hidden states [S, H] of the `tokens` [S] int64 of a step, at least one, by default of all of them.

        Keys and values of every token go into the cache on the way.
        """
        return self.model(step, tokens)

    def compute_logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """hidden [S, H] to logits [S, V], in float32 on a GPU."""
        return self.lm_head(hidden)

    def attention_layers(self) -> Iterator[Attention]:
        """The layers that need a part of the KV cache, in order."""
        return (module for module in self.modules() if isinstance(module, Attention))
