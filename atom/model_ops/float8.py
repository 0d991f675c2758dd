"""The 8-bit float that a device computes with, and how values get into it.

e4m3 in two forms: fn (up to 448) everywhere but on AMD's gfx94x, which has fnuz (up to 240). Knows no kernel.
"""

from __future__ import annotations

import torch

# Scales in checkpoints are made for e4m3fn; a form that holds half as much takes twice the scale.
_FNUZ_SCALE = 2.0
# What zeros are scaled by, so that nothing is divided by 0; scales stay normal numbers, which GPUs do not flush to 0.
SMALLEST_AMAX = 2.0**-100


def float8_dtype(device: torch.device) -> torch.dtype:
    """float8_e4m3fnuz on gfx94x, else float8_e4m3fn. Raises ValueError for a GPU that has neither."""
    if device.type != "cuda":
        return torch.float8_e4m3fn
    if torch.version.hip is not None:
        name = torch.cuda.get_device_properties(device).gcnArchName
        return torch.float8_e4m3fnuz if name.startswith("gfx94") else torch.float8_e4m3fn
    capability = torch.cuda.get_device_capability(device)
    if capability < (8, 9):
        found = ".".join(map(str, capability))
        raise ValueError(f"fp8 needs a GPU of compute capability 8.9 or newer, this one has {found}")
    return torch.float8_e4m3fn


def scale_factor(dtype: torch.dtype) -> float:
    """What a checkpoint's scale is multiplied by for this type."""
    return _FNUZ_SCALE if dtype == torch.float8_e4m3fnuz else 1.0


def to_float8(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """x rounded to nearest; what is too large becomes the largest value, NaN stays NaN."""
    largest = torch.finfo(dtype).max
    return x.clamp(-largest, largest).to(dtype)


def is_float8(dtype: torch.dtype) -> bool:
    """Whether it is one of the two."""
    return dtype in (torch.float8_e4m3fn, torch.float8_e4m3fnuz)


def quantize(x: torch.Tensor, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """x [..., K] as values [..., K] of the type and scales [..., 1] float32: values * scales is about x.

    The largest value of the last axis becomes the largest of the type.
    """
    largest = x.abs().amax(-1, keepdim=True).float().clamp_min(SMALLEST_AMAX)
    # By a tensor: on a GPU torch divides by a number as it multiplies by its reciprocal, a last bit off now and then.
    scales = largest / torch.full_like(largest, torch.finfo(dtype).max)
    return to_float8(x.float() / scales, dtype), scales


def fn_to_fnuz(values: torch.Tensor) -> torch.Tensor:
    """Half of e4m3fn values, exactly, as e4m3fnuz: the same bits, but for -0, which fnuz has not. There is no NaN."""
    bits = values.view(torch.uint8)
    return bits.masked_fill(bits == 0x80, 0).view(torch.float8_e4m3fnuz)
