"""Attention whose softmax is not the plain one: logits that are capped, or a sink in the denominator. All in float32.

torch's own attention has neither. Knows nothing of the cache or of how rows are grouped.
Shapes: B rows, HQ/HK heads, G = HQ / HK, Tq queries a row, L keys, D head size.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

# Queries times keys of one head whose logits are held at once.
_MOST_LOGITS = 1 << 19


class Softmax(NamedTuple):
    """What turns products into weights. soft_cap: 0 is off; sinks [HQ] float32: one more logit a head, not capped."""

    scale: float
    window: int | None
    soft_cap: float
    sinks: torch.Tensor | None

    @property
    def is_plain(self) -> bool:
        """Whether torch's attention computes it."""
        return self.soft_cap == 0.0 and self.sinks is None


def attend(
    q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: torch.Tensor, softmax: Softmax
) -> torch.Tensor:
    """q [B, HQ, Tq, D], keys and values [B, HK, L, D], mask additive [B or 1, Tq, L]; returns [B, HQ, Tq, D]."""
    keys, values = keys.float(), values.float()
    size = max(1, _MOST_LOGITS // keys.shape[2])
    parts = [
        _attend_some(some, keys, values, hidden, softmax)
        for some, hidden in zip(q.split(size, dim=2), mask.split(size, dim=1), strict=True)
    ]
    return (parts[0] if len(parts) == 1 else torch.cat(parts, dim=2)).to(q.dtype)


def _attend_some(
    q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: torch.Tensor, softmax: Softmax
) -> torch.Tensor:
    """As attend; keys, values and the result in float32."""
    num_rows, num_heads, num_queries, head_dim = q.shape
    packed = q.float().reshape(num_rows, keys.shape[1], -1, head_dim)
    logits = torch.matmul(packed, keys.transpose(2, 3)).view(num_rows, num_heads, num_queries, -1) * softmax.scale
    if softmax.soft_cap:
        logits = softmax.soft_cap * torch.tanh(logits / softmax.soft_cap)
    logits = logits + mask.unsqueeze(1)
    if softmax.sinks is None:
        weights = torch.softmax(logits, dim=-1)
    else:
        sinks = softmax.sinks.view(1, -1, 1, 1).expand(num_rows, -1, num_queries, 1)
        weights = torch.softmax(torch.cat((logits, sinks), dim=-1), dim=-1)[..., :-1]
    return torch.matmul(weights.reshape(*packed.shape[:3], -1), values).view(num_rows, num_heads, num_queries, head_dim)
