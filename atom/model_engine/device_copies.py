"""Copies between host and device that wait for nothing.

Owns the use of pinned memory. On a CPU the tensors themselves are returned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

# Values of 8 bytes between places of 16 bytes.
_ALIGNED = 2


def upload(array: NDArray[Any], device: torch.device) -> torch.Tensor:
    """A host array on the device, in the order of the current stream. The array may be changed afterwards on a GPU."""
    tensor = torch.from_numpy(array)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor


def upload_packed(arrays: Sequence[NDArray[np.int64]], device: torch.device) -> list[torch.Tensor]:
    """Flat arrays on the device, all in one copy."""
    if device.type != "cuda":
        return [torch.from_numpy(array) for array in arrays]
    packed, places = pack(arrays)
    whole = upload(packed, device)
    return [whole[place] for place in places]


def pack(arrays: Sequence[NDArray[np.int64]]) -> tuple[NDArray[np.int64], list[slice]]:
    """Flat arrays as one, and where each is in it: at a multiple of 16 bytes.

    Kernels have another form for what is at no such place, and it would be compiled when a batch first has it.
    """
    starts = [0, *np.cumsum([-(-len(array) // _ALIGNED) * _ALIGNED for array in arrays]).tolist()]
    places = [slice(start, start + len(array)) for start, array in zip(starts, arrays, strict=False)]
    packed = np.zeros(starts[-1], dtype=np.int64)
    for place, array in zip(places, arrays, strict=True):
        packed[place] = array
    return packed, places


def overwrite(target: torch.Tensor, array: NDArray[Any]) -> None:
    """Put a host array into a tensor of its shape, in the order of the current stream. As for `upload`."""
    host = torch.from_numpy(array)
    target.copy_(host.pin_memory() if target.is_cuda else host, non_blocking=True)


def begin_download(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor's copy on the host; it holds the values once what the current stream was given so far has run."""
    if not tensor.is_cuda:
        return tensor
    return torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True).copy_(tensor, non_blocking=True)
