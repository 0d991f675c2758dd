"""The product of fp8 activations and fp8 weights in Triton, for what the vendor's library does not take.

Any size, scales by row or by 128 inputs, any type of result. Shapes: T tokens, N outputs, K inputs.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from atom.model_ops.kernels.triton.early import early_launch, starts_early, take_turn
from atom.model_ops.kernels.triton.fp8_quantize import GROUP, Rounded
from atom.model_ops.kernels.triton.sizes import cdiv, next_power_of_2

# Tiles of outputs whose weights stay in the second-level cache while the tokens go by.
_TILES_TOGETHER = 8


# One kernel for any number of tokens: a compilation while requests wait costs more than a known size saves.
@triton.jit(do_not_specialize=["T", "x_scale_group"])
def _fp8_product(
    x, x_stride, w, w_stride, x_scales, x_scale_row, x_scale_group, w_scales, w_scale_row, w_scale_group,
    bias, out, T, N, K, block_rows,
    BT: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, BAND: tl.constexpr, HAS_GROUPS: tl.constexpr,
    HAS_BIAS: tl.constexpr, EVEN: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """A tile of BT tokens and BN outputs. EVEN: BK divides K. With groups, BK inputs have one scale."""
    take_turn(EARLY)
    tiles_t, tiles_n = tl.cdiv(T, BT), tl.cdiv(N, BN)
    band = tl.program_id(0) // (BAND * tiles_t)
    in_band = tl.minimum(tiles_n - band * BAND, BAND)
    tile_n = band * BAND + (tl.program_id(0) % (BAND * tiles_t)) % in_band
    tile_t = (tl.program_id(0) % (BAND * tiles_t)) // in_band
    tokens = tile_t * BT + tl.arange(0, BT)
    outputs = tile_n * BN + tl.arange(0, BN)
    # Rows beyond the end read the last one; they are not stored.
    rows_x = tl.minimum(tokens, T - 1).to(tl.int64)
    rows_w = tl.minimum(outputs, N - 1).to(tl.int64)
    k = tl.arange(0, BK)
    x_at = x + rows_x[:, None] * x_stride + k[None, :]
    w_at = w + rows_w[None, :] * w_stride + k[:, None]
    x_scale_at = x_scales + rows_x * x_scale_row
    w_scale_at = w_scales + (rows_w // block_rows) * w_scale_row
    total = tl.zeros((BT, BN), tl.float32)
    for part in range(tl.cdiv(K, BK)):
        if EVEN:
            left, right = tl.load(x_at), tl.load(w_at)
        else:
            inside = k < K - part * BK
            left = tl.load(x_at, mask=inside[None, :], other=0.0)
            right = tl.load(w_at, mask=inside[:, None], other=0.0)
        if HAS_GROUPS:
            scale = tl.load(x_scale_at)[:, None] * tl.load(w_scale_at)[None, :]
            total += tl.dot(left, right) * scale
            x_scale_at += x_scale_group
            w_scale_at += w_scale_group
        else:
            total = tl.dot(left, right, total)
        x_at += BK
        w_at += BK
    if not HAS_GROUPS:
        total *= tl.load(x_scale_at)[:, None] * tl.load(w_scale_at)[None, :]
    if HAS_BIAS:
        total += tl.load(bias + rows_w).to(tl.float32)[None, :]
    at = out + tokens.to(tl.int64)[:, None] * N + outputs[None, :]
    tl.store(at, total.to(out.dtype.element_ty), mask=(tokens < T)[:, None] & (outputs < N)[None, :])


@dataclass(frozen=True)
class Tile:
    """Tokens and outputs of a tile, and how a program works on it."""

    tokens: int
    outputs: int
    num_warps: int
    num_stages: int


def choose_tile(num_tokens: int) -> Tile:
    """Small tiles of outputs where there are few tokens, so that there are programs enough to read the weights."""
    if num_tokens <= 16:
        return Tile(16, 32, 4, 4)
    if num_tokens <= 64:
        return Tile(next_power_of_2(num_tokens), 64, 4, 4)
    return Tile(128, 128, 8, 3)


def fp8_product(
    x: Rounded,
    weight: torch.Tensor,
    w_scales: torch.Tensor,
    block_rows: int,
    bias: torch.Tensor | None,
    tile: Tile | None = None,
) -> torch.Tensor:
    """[T, N]: x [T, K] times weight [N, K] with scales [ceil(N/block_rows), G]; in the tiles that are chosen, or given.

    G is 1 or ceil(K/128), as of x; both in the same 8-bit type, K the inner axis.
    """
    (values, x_scales, num_tokens, dtype), (num_outputs, width) = x, weight.shape
    out = torch.empty((num_tokens, num_outputs), dtype=dtype, device=weight.device)
    if not num_tokens:
        return out
    tile = tile or choose_tile(num_tokens)
    grid = (cdiv(num_tokens, tile.tokens) * cdiv(num_outputs, tile.outputs),)
    _fp8_product[grid](
        values, values.stride(0), weight, weight.stride(0), x_scales, x_scales.stride(0), x_scales.stride(1),
        w_scales, w_scales.stride(0), w_scales.stride(1), bias, out, num_tokens, num_outputs, width, block_rows,
        tile.tokens, tile.outputs, GROUP, _TILES_TOGETHER, w_scales.shape[1] > 1, bias is not None, width % GROUP == 0,
        starts_early(num_tokens), num_warps=tile.num_warps, num_stages=tile.num_stages, **early_launch(),
    )  # fmt: skip
    return out
