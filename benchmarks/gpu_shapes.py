"""The models that the GPU benchmark has: shapes, bars, and what a step reads at least. Knows no device."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

PROMPT, ANSWER = 1024, 128
BATCHES = (1, 8, 32, 128, 256)
PREFILLS = ((1, 8192), (8, 2048), (1, 1024), (1, 128))
# Decodes, and tokens of a prompt beside them.
MIXED = ((1, 128), (8, 128), (15, 400))


@dataclass(frozen=True)
class Shape:
    """A Qwen3 model; the bars are milliseconds, of a decoded token by batch size and of prefills by (count, length).

    quantization: fp8 for 8-bit weights in all products but the head's. kv_cache_dtype: as the flag. prefills, mixed,
    batches: what is measured, (count, length) of prompts, (decodes, length) of mixed steps, sizes of decode steps.
    drawn: the last of these, not greedy.
    profiled, profiled_prefills: batch sizes and prompts whose kernels are listed.
    """

    hidden: int
    layers: int
    heads: int
    intermediate: int
    tied: bool
    decode_bars: dict[int, float]
    prefill_bars: dict[tuple[int, int], float]
    kv_heads: int = 8
    head_dim: int = 128
    vocab: int = 151936
    quantization: str | None = None
    kv_cache_dtype: str = "bf16"
    prefills: tuple[tuple[int, int], ...] = PREFILLS
    mixed: tuple[tuple[int, int], ...] = ()
    batches: tuple[int, ...] = BATCHES
    drawn: tuple[int, ...] = ()
    profiled: tuple[int, ...] = ()
    profiled_prefills: tuple[tuple[int, int], ...] = ()
    start_bar: float | None = None

    def config(self) -> dict[str, Any]:
        """config.json."""
        return {
            "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": self.hidden,
            "num_hidden_layers": self.layers, "num_attention_heads": self.heads, "num_key_value_heads": self.kv_heads,
            "head_dim": self.head_dim, "intermediate_size": self.intermediate, "vocab_size": self.vocab,
            "tie_word_embeddings": self.tied, "max_position_embeddings": 40960, "rms_norm_eps": 1e-6,
            "rope_theta": 1e6, "hidden_act": "silu", "attention_bias": False, "torch_dtype": "bfloat16",
            "eos_token_id": self.vocab - 1,
        }  # fmt: skip

    def weights(self) -> list[tuple[int, int]]:
        """[outputs, inputs] of every product of a step, the head's last."""
        width = self.heads * self.head_dim
        qkv = width + 2 * self.kv_heads * self.head_dim
        layer = [(qkv, self.hidden), (self.hidden, width), (2 * self.intermediate, self.hidden)]
        return [*[*layer, (self.hidden, self.intermediate)] * self.layers, (self.vocab, self.hidden)]

    def kv_bytes(self, tokens: int) -> int:
        """Bytes that so many tokens hold in the cache."""
        return tokens * 2 * self.kv_heads * self.head_dim * (1 if self.kv_cache_dtype == "fp8" else 2) * self.layers

    def attention_operations(self, length: int) -> float:
        """Of a prompt: each query with half of the keys, scores and values."""
        return 2.0 * length * length * self.heads * self.head_dim * self.layers


SHAPES = {
    "0.6B": Shape(
        1024, 28, 16, 3072, True, {1: 1.6, 8: 1.8, 32: 2.9, 128: 5.4, 256: 9.5},
        {(1, 8192): 35.0, (8, 2048): 44.0, (1, 128): 6.0}, mixed=MIXED, profiled=(1,), drawn=(1, 256),
        profiled_prefills=((8, 2048), (1, 1024)),
    ),
    "8B": Shape(
        4096, 36, 32, 12288, False, {1: 5.0, 8: 5.3, 32: 6.3, 128: 10.7, 256: 18.0},
        {(1, 8192): 215.0, (8, 2048): 380.0}, profiled=(256,), profiled_prefills=((8, 2048),), start_bar=30.0,
    ),
}  # fmt: skip
_DECODED = replace(SHAPES["8B"], prefills=(), prefill_bars={}, profiled=(), profiled_prefills=())
SHAPES["8B fp8 KV"] = replace(
    _DECODED, kv_cache_dtype="fp8", decode_bars={1: 5.0, 8: 5.3, 32: 6.2, 128: 9.6, 256: 15.0}
)
SHAPES["8B fp8 weights"] = replace(
    _DECODED,
    quantization="fp8",
    decode_bars={1: 3.6, 8: 3.9, 32: 5.4, 128: 9.2, 256: 15.8},
    prefills=((8, 2048),),
    profiled=(256,),
)
