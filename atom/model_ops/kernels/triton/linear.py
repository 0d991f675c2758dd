"""Projections in 16 bits on a GPU: few tokens by kernels of our own, the rest by the library.

Owns which weights and how many tokens the kernels take, and their tiles: by formula, so that no request waits for a
search. Shapes: T tokens, N outputs, K inputs.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch
import torch.nn.functional as F
import triton

from atom.model_ops.kernels.triton.linear_few import (
    MAX_TOKENS,
    MAX_TOKENS_BY_THREADS,
    Tile,
    by_tensor_cores,
    by_threads,
    few_linear,
    is_amd,
)

# Rows of a weight begin at 16 bytes and more, else loads are narrow.
_MULTIPLE = 16
# Inputs of a step by threads, and the most steps: they are unrolled.
_STEP, _MAX_STEPS = 4096, 8
# Programs that keep the 132 multiprocessors of an H200 reading.
_WANTED_PROGRAMS = 128
# By threads products of so many tokens are faster than the library's whatever the weight.
_TOKENS_BY_THREADS = 2
# Outputs that the library splits the inputs for; values of a weight, and inputs, beside which our start is short.
_FEW_OUTPUTS, _MANY_VALUES, _MANY_INPUTS = 2048, 48 << 20, 4096


@dataclass(frozen=True, slots=True)
class PackedLinear:
    """A weight [N, K] as it was loaded, and its bias [N] or None."""

    weight: torch.Tensor
    bias: torch.Tensor | None


def linear_pack(weight: torch.Tensor, bias: torch.Tensor | None) -> PackedLinear:
    """The weight itself."""
    return PackedLinear(weight, bias)


def linear(x: torch.Tensor, packed: PackedLinear) -> torch.Tensor:
    """x [T, K] to [T, N]."""
    weight, num_tokens = packed.weight, x.shape[0]
    if 0 < num_tokens <= MAX_TOKENS and x.dtype == weight.dtype == torch.bfloat16 and x.stride(1) == 1:
        tile = choose_tile(num_tokens, *weight.shape) if weight.is_contiguous() else None
        if tile is not None:
            return few_linear(x, weight, packed.bias, tile)
    return F.linear(x, weight, packed.bias)


@functools.cache
def choose_tile(num_tokens: int, num_outputs: int, width: int) -> Tile | None:
    """The tile for a product of 1 to MAX_TOKENS tokens; None where the library is faster, or was never compared."""
    if width % _MULTIPLE or width > _STEP * _MAX_STEPS or is_amd():
        return None
    if num_tokens <= _TOKENS_BY_THREADS:
        return _by_threads(width)
    if num_outputs <= _FEW_OUTPUTS and num_tokens <= MAX_TOKENS_BY_THREADS and width <= _STEP:
        return _by_threads(width)
    if num_outputs <= _FEW_OUTPUTS or (num_outputs * width >= _MANY_VALUES and width >= _MANY_INPUTS):
        return _by_tensor_cores(num_tokens, num_outputs)
    return None


def _by_threads(width: int) -> Tile:
    """Eight loads of 16 bytes a thread, the inputs' own apart."""
    inputs = min(_STEP, max(256, triton.next_power_of_2(width)))
    if inputs == _STEP:
        return by_threads(4, inputs, 8)
    return by_threads(4 if inputs == 2048 else 8, inputs, 4)


def _by_tensor_cores(num_tokens: int, num_outputs: int) -> Tile:
    """As many outputs as leave programs enough, since every program reads all inputs, and 48 KB or more in flight."""
    if num_outputs >= 64 * _WANTED_PROGRAMS and num_tokens > 8:
        return by_tensor_cores(64, 4, 3)
    if num_outputs > 32 * _WANTED_PROGRAMS:
        return by_tensor_cores(32, 4, 4)
    if num_outputs == 32 * _WANTED_PROGRAMS:
        return by_tensor_cores(32, 8, 4)
    return by_tensor_cores(16, 8, 4) if num_outputs >= 16 * _WANTED_PROGRAMS else by_tensor_cores(8, 8, 6)
