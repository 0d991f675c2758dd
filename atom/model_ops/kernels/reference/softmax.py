"""From scores to weights: torch's softmax, or one whose logits are capped or that has a sink in its denominator.

torch's own attention knows neither. Knows nothing of the cache or of how rows are grouped.
Shapes: B rows, HQ/HK heads, G = HQ / HK, Tq queries, L keys, D head size.
"""

from __future__ import annotations

from typing import NamedTuple

import torch


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


def weigh(logits: torch.Tensor, mask: torch.Tensor, softmax: Softmax) -> torch.Tensor:
    """logits [..., H, R, L] float32, scaled, which is overwritten, to weights of that shape.

    R are the queries, of HQ / H heads side by side. mask [..., R, N]: added to the last N keys' logits, 0 or -inf.
    """
    if softmax.soft_cap:
        logits.div_(softmax.soft_cap).tanh_().mul_(softmax.soft_cap)
    logits[..., logits.shape[-1] - mask.shape[-1] :].add_(mask.unsqueeze(-3))
    if softmax.sinks is None:
        return torch.softmax(logits, dim=-1)
    num_heads, num_rows = logits.shape[-3:-1]
    group = len(softmax.sinks) // num_heads
    sinks = softmax.sinks.view(num_heads, 1, group).expand(-1, num_rows // group, -1).reshape(num_heads, num_rows, 1)
    sinks = sinks.expand(*logits.shape[:-1], 1)
    return torch.softmax(torch.cat((logits, sinks), dim=-1), dim=-1)[..., :-1]


def attend(
    q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: torch.Tensor, softmax: Softmax
) -> torch.Tensor:
    """q [B, HQ, D], keys and values [B, HK, L, D], mask [B, 1, L]; returns [B, HQ, D]. All in float32."""
    num_rows, num_heads, head_dim = q.shape
    packed = q.float().view(num_rows, keys.shape[1], -1, head_dim)
    logits = torch.matmul(packed, keys.float().transpose(2, 3)).mul_(softmax.scale)
    weights = weigh(logits.view(num_rows, num_heads, 1, -1), mask, softmax)
    return torch.matmul(weights.reshape(*packed.shape[:3], -1), values.float()).view(q.shape).to(q.dtype)
