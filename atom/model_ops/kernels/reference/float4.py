"""Reading MXFP4: e2m1 values in pairs, the first in the low four bits, and a power of two for 32 of them.

A byte of a pair is looked up for both at once. All of it fits into bfloat16 exactly.
"""

from __future__ import annotations

import functools

import torch

# Values that share a scale.
GROUP = 32
# By the low three bits; the fourth is the sign.
_MAGNITUDES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


def from_float4(values: torch.Tensor, scales: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """values [N, K/2] and scales [N, K/32], both uint8, to [N, K]. 127 is a scale of 1, 255 makes no numbers."""
    num_rows, num_pairs = values.shape
    pairs = _pairs(values.device).index_select(0, values.flatten().int())
    factors = scales.view(torch.float8_e8m0fnu).float()
    grouped = pairs.view(num_rows, scales.shape[1], GROUP) * factors.unsqueeze(2)
    return grouped.view(num_rows, 2 * num_pairs).to(dtype)


@functools.lru_cache(maxsize=4)
def _pairs(device: torch.device) -> torch.Tensor:
    """[256, 2] float32: both values of each byte."""
    ones = torch.tensor(_MAGNITUDES + tuple(-x for x in _MAGNITUDES))
    codes = torch.arange(256)
    return torch.stack((ones[codes & 15], ones[codes >> 4]), dim=1).to(device)
