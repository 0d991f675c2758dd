"""Products of 16 bits whose sums stay in float32, by the library's product of the device.

Knows no backend: each takes it for the shapes that it has no kernel for. Shapes: T tokens, N outputs, K inputs.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F


def unrounded_linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """x [T, K] @ weight [N, K].T + bias [N] to [T, N]: float32 on a GPU, x's type on a CPU, whose library rounds."""
    if not x.is_cuda or x.dtype == torch.float32:
        return F.linear(x, weight, bias)
    sums = torch.mm(x, weight.t(), out_dtype=torch.float32)
    return sums if bias is None else sums.add_(bias)
