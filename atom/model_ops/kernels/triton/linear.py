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
    by_rows,
    by_tensor_cores,
    by_threads,
    few_linear,
    is_amd,
)
from atom.model_ops.kernels.unrounded import unrounded_linear

# Rows of a weight begin at 16 bytes and more, else loads are narrow.
_MULTIPLE = 16
# Inputs of a step by threads, and the most steps: they are unrolled.
_STEP, _MAX_STEPS = 4096, 8
# Programs that keep the 132 multiprocessors of an H200 reading, where each holds tens of KB in flight: of small tiles,
# and of tiles with 64 outputs.
_WANTED_PROGRAMS, _WANTED_LARGE = 128, 64
# Tokens that are multiplied by threads whatever the weight, and those of a product of eight columns by tensor cores.
_TOKENS_BY_THREADS, _TOKENS_OF_EIGHT = 2, 8
# Inputs so few that a program's start and end take longer than its reading.
_FEW_INPUTS = 1024


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
    tile = _tile(x, packed.weight)
    if tile is not None:
        return few_linear(x, packed.weight, packed.bias, tile, x.dtype)
    return F.linear(x, packed.weight, packed.bias)


def logits(x: torch.Tensor, packed: PackedLinear) -> torch.Tensor:
    """As `linear`, with its sums in float32."""
    tile = _tile(x, packed.weight)
    if tile is not None:
        return few_linear(x, packed.weight, packed.bias, tile, torch.float32)
    return unrounded_linear(x, packed.weight, packed.bias)


def _tile(x: torch.Tensor, weight: torch.Tensor) -> Tile | None:
    """For the kernels of few tokens; None where the library multiplies."""
    if not 0 < x.shape[0] <= MAX_TOKENS or not x.dtype == weight.dtype == torch.bfloat16:
        return None
    return choose_tile(x.shape[0], *weight.shape) if x.stride(1) == 1 and weight.is_contiguous() else None


@functools.cache
def choose_tile(num_tokens: int, num_outputs: int, width: int) -> Tile | None:
    """The tile for a product of 1 to MAX_TOKENS tokens; None where nothing was compared with the library."""
    if width % _MULTIPLE or width > _STEP * _MAX_STEPS or is_amd():
        return None
    has_few_outputs = num_outputs <= 16 * _WANTED_PROGRAMS
    most = MAX_TOKENS_BY_THREADS if has_few_outputs and width <= _STEP else _TOKENS_BY_THREADS
    if num_tokens <= most:
        return _by_threads(width)
    if has_few_outputs:
        # Tiles of 32 would be too few: the warps of a program share the inputs.
        return by_tensor_cores(8, 8, 6) if num_outputs <= 8 * _WANTED_PROGRAMS else by_tensor_cores(16, 8, 4)
    num_large = num_outputs // 64
    if num_large >= _WANTED_LARGE and num_tokens > _TOKENS_OF_EIGHT:
        return by_rows(64, 128, 4, 6)
    if num_large > _WANTED_LARGE and width <= _FEW_INPUTS:
        return by_rows(64, 128, 4, 6)
    return by_rows(32, 128, 2, 8)


def _by_threads(width: int) -> Tile:
    """Eight loads of 16 bytes a thread, the inputs' own apart; four outputs where inputs are enough for a warp."""
    inputs = min(_STEP, max(256, triton.next_power_of_2(width)))
    if inputs == width == _STEP:
        inputs = _STEP // 2
    return by_threads(max(4, 2048 // inputs), inputs, max(1, inputs // 512))
