"""The Qwen3 architecture in plain torch, for training and evaluation, and its Hugging Face export.

Owns: the shape of atom-tiny, the forward pass over a packed batch, greedy generation for evaluation, weights on disk.
Does not know: data, optimizers, or the server's engine, which loads the same files with its own code.
Legend: N tokens of a packed batch, B sequences, D hidden size, H query heads, K key heads, E head size.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tools.builtin_model.vocabulary import END_IDS, MAX_POSITIONS, TOKEN_IDS, VOCAB_SIZE

Attention = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(q [N, H, E], k [N, K, E], v [N, K, E]) -> [N, H, E], causal inside each document."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of the model; 7.74 M parameters, 15.5 MB in bf16."""

    vocab: int = VOCAB_SIZE
    hidden: int = 256
    layers: int = 8
    heads: int = 8
    kv_heads: int = 2
    head_dim: int = 64
    intermediate: int = 704
    theta: float = 10000.0
    eps: float = 1e-6


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """x scaled to root mean square 1 over the last dimension, times the weight."""
    return F.rms_norm(x, (x.shape[-1],), weight.to(x.dtype), eps)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary positions, the two halves of each head paired."""
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


class Block(nn.Module):
    """One decoder layer."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        d, e = shape.hidden, shape.head_dim

        def linear(inputs: int, outputs: int) -> nn.Linear:
            return nn.Linear(inputs, outputs, bias=False)

        self.input_norm, self.post_norm = nn.Parameter(torch.ones(d)), nn.Parameter(torch.ones(d))
        self.q_norm, self.k_norm = nn.Parameter(torch.ones(e)), nn.Parameter(torch.ones(e))
        self.q, self.k = linear(d, shape.heads * e), linear(d, shape.kv_heads * e)
        self.v, self.o = linear(d, shape.kv_heads * e), linear(shape.heads * e, d)
        self.gate, self.up, self.down = (
            linear(d, shape.intermediate),
            linear(d, shape.intermediate),
            linear(shape.intermediate, d),
        )

    def qkv(self, x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """q [.., H, E], k and v [.., K, E] of x [.., D]; q and k normalised and rotated."""
        shape, lead = self.shape, x.shape[:-1]
        y = rms_norm(x, self.input_norm, shape.eps)
        q = rms_norm(self.q(y).view(*lead, shape.heads, shape.head_dim), self.q_norm, shape.eps)
        k = rms_norm(self.k(y).view(*lead, shape.kv_heads, shape.head_dim), self.k_norm, shape.eps)
        return rotate(q, cos, sin), rotate(k, cos, sin), self.v(y).view(*lead, shape.kv_heads, shape.head_dim)

    def mlp(self, x: Tensor) -> Tensor:
        """x plus the gated feed-forward."""
        y = rms_norm(x, self.post_norm, self.shape.eps)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, attention: Attention) -> Tensor:
        """One layer over a packed batch x [N, D]."""
        return self.mlp(x + self.o(attention(*self.qkv(x, cos, sin)).flatten(-2)))


class TinyModel(nn.Module):
    """Embedding, blocks, final norm; the head is the embedding's transpose."""

    cos: Tensor
    sin: Tensor

    def __init__(self, shape: Shape | None = None) -> None:
        super().__init__()
        self.shape = shape = shape or Shape()
        self.embedding = nn.Embedding(shape.vocab, shape.hidden)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = nn.Parameter(torch.ones(shape.hidden))
        inverse = shape.theta ** (-torch.arange(0, shape.head_dim, 2).float() / shape.head_dim)
        angles = torch.arange(MAX_POSITIONS).float()[:, None] * inverse
        angles = torch.cat((angles, angles), -1)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)
        self._initialize()

    def _initialize(self) -> None:
        nn.init.normal_(self.embedding.weight, std=0.02)
        for block in self.blocks:
            for name, parameter in block.named_parameters():
                if parameter.dim() == 2:
                    is_output = name.startswith(("o.", "down."))
                    nn.init.normal_(parameter, std=0.02 / ((2 * self.shape.layers) ** 0.5 if is_output else 1.0))

    def hidden_states(self, ids: Tensor, positions: Tensor, attention: Attention) -> Tensor:
        """ids, positions [N] -> [N, D] before the final norm."""
        x = self.embedding(ids)
        if ids.is_cuda:
            x = x.bfloat16()
        cos, sin = self.cos[positions][:, None].to(x.dtype), self.sin[positions][:, None].to(x.dtype)
        for block in self.blocks:
            x = block(x, cos, sin, attention)
        return x

    def num_parameters(self) -> int:
        """Every parameter once; the head shares the embedding's."""
        return sum(parameter.numel() for parameter in self.parameters())


_LAYER_NAMES = {
    "input_layernorm": "input_norm", "post_attention_layernorm": "post_norm",
    "self_attn.q_norm": "q_norm", "self_attn.k_norm": "k_norm",
    "self_attn.q_proj": "q.weight", "self_attn.k_proj": "k.weight",
    "self_attn.v_proj": "v.weight", "self_attn.o_proj": "o.weight",
    "mlp.gate_proj": "gate.weight", "mlp.up_proj": "up.weight", "mlp.down_proj": "down.weight",
}  # fmt: skip


def _weight_names(shape: Shape) -> dict[str, str]:
    """Hugging Face name -> name here."""
    names = {"model.embed_tokens.weight": "embedding.weight", "model.norm.weight": "norm"}
    for layer in range(shape.layers):
        names |= {
            f"model.layers.{layer}.{theirs}.weight": f"blocks.{layer}.{ours}" for theirs, ours in _LAYER_NAMES.items()
        }
    return names


def config(shape: Shape) -> dict[str, Any]:
    """config.json of transformers' Qwen3ForCausalLM."""
    return {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "vocab_size": shape.vocab,
        "hidden_size": shape.hidden,
        "intermediate_size": shape.intermediate,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "hidden_act": "silu",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "rms_norm_eps": shape.eps,
        "rope_theta": shape.theta,
        "max_position_embeddings": MAX_POSITIONS,
        "tie_word_embeddings": True,
        "use_sliding_window": False,
        "use_cache": True,
        "initializer_range": 0.02,
        "torch_dtype": "bfloat16",
        "bos_token_id": None,
        "eos_token_id": END_IDS,
        "pad_token_id": TOKEN_IDS["<|endoftext|>"],
    }


GENERATION_CONFIG = {
    "do_sample": True,
    "temperature": 0.2,
    "top_p": 0.9,
    "eos_token_id": END_IDS,
    "pad_token_id": TOKEN_IDS["<|endoftext|>"],
}


def save_model(model: TinyModel, folder: Path) -> None:
    """model.safetensors (bf16), config.json and generation_config.json with Hugging Face names."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    state = model.state_dict()
    tensors = {
        theirs: state[ours].detach().to(torch.bfloat16).cpu().contiguous()
        for theirs, ours in _weight_names(model.shape).items()
    }
    save_file(tensors, str(folder / "model.safetensors"), metadata={"format": "pt"})
    for name, content in (("config.json", config(model.shape)), ("generation_config.json", GENERATION_CONFIG)):
        (folder / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def load_model(folder: Path, dtype: torch.dtype = torch.float32) -> TinyModel:
    """The model of a folder that save_model wrote."""
    from safetensors.torch import load_file

    saved = load_file(str(folder / "model.safetensors"))
    layers = int(json.loads((folder / "config.json").read_text(encoding="utf-8"))["num_hidden_layers"])
    model = TinyModel(Shape(layers=layers))
    model.load_state_dict({ours: saved[theirs].float() for theirs, ours in _weight_names(model.shape).items()})
    model = model.to(dtype)
    model.cos, model.sin = model.cos.float(), model.sin.float()
    return model
