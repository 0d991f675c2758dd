"""RMSNorm in plain torch, with as few operations as torch allows: a decode step has four of them a layer.

In bfloat16 it is torch's layer norm over (x, -x), whose mean is zero and whose variance is the mean square: one fused
kernel with float32 inside. Measured for one row of 1024: 6.5 us against 15.4 us step by step. In float32 the copy of x
costs more than it saves from a few rows on.
"""

from __future__ import annotations

from functools import cache

import torch


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """x [..., H] normed over H, times weight, which broadcasts against x."""
    size = x.shape[-1]
    if x.dtype != torch.float32:
        doubled = torch.layer_norm(torch.cat((x, -x), dim=-1), (2 * size,), None, None, eps)
        return doubled[..., :size] * weight
    norm = torch.linalg.vector_norm(x, 2, -1, True)
    inverse = torch.addcmul(_constant(eps, x.device), norm, norm, value=1.0 / size).rsqrt_()
    return torch.mul(x, inverse).mul_(weight)


def add_rms_norm(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """residual += x in place; returns rms_norm(residual)."""
    return rms_norm(residual.add_(x), weight, eps)


@cache
def _constant(value: float, device: torch.device) -> torch.Tensor:
    # Not an inference tensor: the first caller may run in inference mode, a later one may not.
    with torch.inference_mode(False):
        return torch.tensor(value, device=device)
