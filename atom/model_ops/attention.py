"""Attention over the paged KV cache, from the fused projection to the heads' outputs.

Owns the order of its kernels and the layer's part of the cache; what a kernel does with the cache's layout is its own.
Shapes: T tokens, HQ/HK heads, D head size.
"""

from __future__ import annotations

import torch

from atom.model_ops.context import BuildContext
from atom.model_ops.float8 import is_float8, scale_factor
from atom.model_ops.layer import Layer
from atom.model_ops.rope import RotaryEmbedding
from atom.model_ops.step import StepInputs


class Attention(Layer):
    """One layer's attention. `bind_cache` comes before the first forward.

    kv_scales [2, HK] float32: what an fp8 cache's keys and values are multiplied by, 1 where no checkpoint says other.
    """

    def __init__(
        self,
        num_heads: int,
        num_kv_heads: int,
        head_dim: int,
        rotary: RotaryEmbedding,
        build: BuildContext,
        window: int | None = None,
        norm_eps: float = 0.0,
        soft_cap: float = 0.0,
        sinks: torch.Tensor | None = None,
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads
        self.head_dim = head_dim
        self.scale = head_dim**-0.5
        self.window = window
        self.soft_cap = soft_cap
        self.sinks = sinks
        self._norm_eps = norm_eps
        self._rotary = rotary
        self._write = build.kernels["qkv_rope_write"]
        self._decode = build.kernels["attention_decode"]
        self._prefill = build.kernels["attention_prefill"]
        self.kv_scales = torch.ones(2, num_kv_heads, dtype=torch.float32, device=build.device)
        self._build = build
        self._kv_cache = torch.empty(0)
        self._bound_scales: torch.Tensor | None = None

    def set_kv_scale(self, plane: int, values: torch.Tensor) -> None:
        """Scale of the keys (plane 0) or values (1): [1], or one for every head of the whole group. ValueError."""
        num_heads = self.num_kv_heads * self._build.tp_size
        if len(values) not in (1, num_heads):
            raise ValueError(f"has {len(values)} values, wanted is 1 or one for each of {num_heads} key/value heads")
        first = self._build.tp_rank * self.num_kv_heads
        self.kv_scales[plane] = values if len(values) == 1 else values[first : first + self.num_kv_heads]

    def bind_cache(self, kv_cache: torch.Tensor) -> None:
        """This layer's cache, in the backend's layout."""
        self._kv_cache = kv_cache
        self._bound_scales = self.kv_scales * scale_factor(kv_cache.dtype) if is_float8(kv_cache.dtype) else None

    def forward(self, qkv: torch.Tensor, step: StepInputs, qk_norm: torch.Tensor | None = None) -> torch.Tensor:
        """qkv [T, (HQ + 2 HK) * D], which is overwritten, to [T, HQ * D]. qk_norm: weights [HQ + HK, D]."""
        cache, scales, plan = self._kv_cache, self._bound_scales, step.plan
        q, k, v = self._write(
            qkv, qk_norm, self._norm_eps, self._rotary.cos_sin, cache, scales, plan, self.num_heads, self.num_kv_heads
        )
        softmax = (self.scale, self.window, self.soft_cap, self.sinks)
        num_decode = step.num_decode_tokens
        if num_decode == step.num_tokens:
            return self._decode(q, cache, scales, plan, *softmax)
        if num_decode == 0:
            return self._prefill(q, k, v, cache, scales, plan, *softmax)
        decoded = self._decode(q[:num_decode], cache, scales, plan, *softmax)
        rest = (x[num_decode:] for x in (q, k, v))
        return torch.cat((decoded, self._prefill(*rest, cache, scales, plan, *softmax)))
