"""Rotary position embeddings: the table of cosines and sines for every kind that config.json may name.

Owns the frequencies. Applying the table is a kernel's work. Shapes: P positions, R rotary size.
Sources of the formulas: RoFormer (default), position interpolation (linear), NTK-aware scaling (dynamic), YaRN, Llama
3.1.
"""

from __future__ import annotations

import logging
import math

import torch

from atom.hf_config import RopeConfig
from atom.model_ops.context import BuildContext
from atom.model_ops.layer import Layer

logger = logging.getLogger(__name__)


class RotaryEmbedding(Layer):
    """cos_sin [P, R]: R/2 cosines, then R/2 sines, of every position.

    In float32 on a GPU, whose kernels multiply in float32 anyway; on a CPU in the model's dtype, as torch multiplies.
    """

    def __init__(self, rope: RopeConfig, head_dim: int, build: BuildContext) -> None:
        super().__init__()
        dtype = build.dtype if build.device.type == "cpu" else torch.float32
        self.cos_sin = rope_table(rope, head_dim, build.max_positions).to(dtype=dtype, device=build.device)


def rope_table(rope: RopeConfig, head_dim: int, num_positions: int) -> torch.Tensor:
    """[num_positions, R] float32, cosines then sines, times the attention factor."""
    frequencies = inverse_frequencies(rope, head_dim, num_positions)
    angles = torch.arange(num_positions, dtype=torch.float32).unsqueeze(1) * frequencies
    return torch.cat((angles.cos(), angles.sin()), dim=-1) * rope.attention_factor


def inverse_frequencies(rope: RopeConfig, head_dim: int, num_positions: int) -> torch.Tensor:
    """[R / 2] float32, radians a position. `num_positions` matters to the dynamic kind only."""
    size = int(head_dim * rope.partial_rotary_factor)
    if rope.kind == "dynamic":
        return _powers(_dynamic_theta(rope, size, num_positions), size)
    plain = _powers(rope.theta, size)
    if rope.kind == "linear":
        return plain / rope.factor
    if rope.kind == "llama3":
        return _llama3(rope, plain)
    if rope.kind == "yarn":
        return _yarn(rope, plain, size)
    return plain


def _powers(theta: float, size: int) -> torch.Tensor:
    return 1.0 / theta ** (torch.arange(0, size, 2, dtype=torch.float32) / size)


def _dynamic_theta(rope: RopeConfig, size: int, num_positions: int) -> float:
    """The base for the longest context served.

    transformers changes it while a sequence grows, which keys that are already rotated in a cache can not follow: one
    base for all is the only consistent choice, and within the original context it is the plain one.
    """
    if num_positions <= rope.original_max_position:
        return rope.theta
    logger.info("rope: dynamic scaling fixed for %d positions; a smaller --max-model-len scales less", num_positions)
    stretch = rope.factor * num_positions / rope.original_max_position - (rope.factor - 1)
    return rope.theta * stretch ** (size / (size - 2))


def _llama3(rope: RopeConfig, plain: torch.Tensor) -> torch.Tensor:
    """Long wavelengths are stretched by the factor, short ones kept, the band between blended by wavelength."""
    turns = rope.original_max_position * plain / (2 * math.pi)
    keep = ((turns - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor)).clamp(0, 1)
    return plain / rope.factor * (1 - keep) + plain * keep


def _yarn(rope: RopeConfig, plain: torch.Tensor, size: int) -> torch.Tensor:
    """Channels that turn more than beta_fast times within the original context are kept, those below beta_slow
    stretched by the factor, a linear ramp over the channel index between.
    """

    def channel(turns: float) -> float:
        return size * math.log(rope.original_max_position / (turns * 2 * math.pi)) / (2 * math.log(rope.theta))

    low, high = channel(rope.beta_fast), channel(rope.beta_slow)
    if rope.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, size - 1)
    # A band of no width would divide by zero.
    width = (high if high != low else high + 0.001) - low
    stretch = ((torch.arange(size // 2, dtype=torch.float32) - low) / width).clamp(0, 1)
    return plain / rope.factor * stretch + plain * (1 - stretch)
