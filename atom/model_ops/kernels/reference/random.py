"""Philox4x32-10 in numpy's 64-bit integers: the same numbers on every backend, from a seed and a counter alone.

Seventy small operations for any number of rows. Torch has no unsigned products of 64 bits and takes 200 of them.
"""

from __future__ import annotations

import numpy as np
import torch

_MASK = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_MULTIPLIERS = np.array([[0xD2511F53], [0xCD9E8D57]], dtype=np.uint64)
_WEYL = np.array([[0x9E3779B9], [0xBB67AE85]], dtype=np.uint64)
_ROUNDS = 10


def philox_uniform(seeds: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """One uniform in [0, 1) a row. seeds [B] int64 is the key, offsets [B] int64 the counter; 24 bits are used.

    Waits for a device that is none of the host's.
    """
    key, counter = (np.stack((words & _MASK, words >> _HALF)) for words in (_words(seeds), _words(offsets)))
    # Words 0 and 2 of the counter, which are multiplied, and words 1 and 3.
    even, odd = (np.stack((word, np.zeros_like(word))) for word in counter)
    for _ in range(_ROUNDS):
        product = even * _MULTIPLIERS
        even, odd = (product >> _HALF)[::-1] ^ odd ^ key, (product & _MASK)[::-1]
        key = (key + _WEYL) & _MASK
    uniform = (even[0] >> np.uint64(8)).astype(np.float32) * np.float32(2.0**-24)
    return torch.from_numpy(uniform).to(seeds.device)


def _words(values: torch.Tensor) -> np.ndarray:
    return values.cpu().numpy().view(np.uint64)
