"""Philox4x32-10 in torch's 64-bit integers: the same numbers on every backend, from a seed and a counter alone."""

from __future__ import annotations

import torch

_MASK = 0xFFFFFFFF
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10


def _high_low(a: torch.Tensor, multiplier: int) -> tuple[torch.Tensor, torch.Tensor]:
    """High and low 32 bits of a * multiplier, both factors below 2^32, without leaving signed 64 bits."""
    low_half, high_half = multiplier & 0xFFFF, multiplier >> 16
    low = a * low_half
    middle = a * high_half + (low >> 16)
    return middle >> 16, ((middle << 16) | (low & 0xFFFF)) & _MASK


def philox_uniform(seeds: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """One uniform in [0, 1) a row. seeds [B] int64 is the key, offsets [B] int64 the counter; 24 bits are used."""
    counter = [offsets & _MASK, (offsets >> 32) & _MASK, torch.zeros_like(offsets), torch.zeros_like(offsets)]
    key = [seeds & _MASK, (seeds >> 32) & _MASK]
    for _ in range(_ROUNDS):
        high0, low0 = _high_low(counter[0], _MULTIPLIERS[0])
        high1, low1 = _high_low(counter[2], _MULTIPLIERS[1])
        counter = [high1 ^ counter[1] ^ key[0], low1, high0 ^ counter[3] ^ key[1], low0]
        key = [(part + weyl) & _MASK for part, weyl in zip(key, _WEYL, strict=True)]
    return (counter[0] >> 8).to(torch.float32) * 2.0**-24
