"""The scales of an fp8 KV cache, where a checkpoint has them.

Owns the names that quantisers give them. A checkpoint need not have any, nor for every layer: what is absent stays 1.
"""

from __future__ import annotations

import torch
from torch import nn

from atom.model_ops.attention import Attention

# Beside the attention's module: q_proj, k_proj and the like are its children.
_KEYS = ("k_scale", "attn.k_scale", "k_proj.k_scale", "k_proj.output_scale")
_VALUES = ("v_scale", "attn.v_scale", "v_proj.v_scale", "v_proj.output_scale")
_BOTH = ("kv_scale", "attn.kv_scale")


class KVScales:
    """Places of the scales of every attention layer in a model."""

    def __init__(self, model: nn.Module) -> None:
        self.num_found = 0
        self._places: dict[str, tuple[Attention, tuple[int, ...]]] = {}
        self._taken: dict[tuple[Attention, int], tuple[str, torch.Tensor]] = {}
        for path, module in model.named_modules():
            if not isinstance(module, Attention):
                continue
            parent = path.rpartition(".")[0]
            for names, planes in ((_KEYS, (0,)), (_VALUES, (1,)), (_BOTH, (0, 1))):
                self._places.update({f"{parent}.{name}": (module, planes) for name in names})

    def knows(self, name: str) -> bool:
        """Whether a tensor of the checkpoint is a scale."""
        return name in self._places

    def take(self, name: str, tensor: torch.Tensor) -> None:
        """Give a scale to its layer. ValueError unless it is one positive number, or one a key/value head."""
        layer, planes = self._places[name]
        values = tensor.to(torch.float32).flatten()
        if not (values.isfinite() & (values > 0)).all():
            raise ValueError(f"{name} holds {values.tolist()[:4]}, a scale is a positive number")
        for plane in planes:
            other, before = self._taken.setdefault((layer, plane), (name, values))
            if not torch.equal(before, values):
                raise ValueError(f"{name} differs from {other}, a scale of the same keys or values")
            try:
                layer.set_kv_scale(plane, values)
            except ValueError as error:
                raise ValueError(f"{name} {error}") from error
        self.num_found += 1
