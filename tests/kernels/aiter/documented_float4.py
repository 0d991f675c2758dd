"""What AITER's fp4 kernels are documented to do, slowly, in plain torch; as documented.py has the others.

Scales are e8m0 in an order of their own, in whole 256 rows by 8 scales; what is not written is no number here.
Shapes: T tokens, N outputs, K inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from tests.kernels.aiter.documented_experts import unshuffled

_MAGNITUDES = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])


def rounded(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """x [T, K] to codes [T, K] and biased exponents [T, K/32], both int64; of two equally near values the even code."""
    groups = x.float().unflatten(1, (-1, 32))
    largest = groups.abs().amax(2).clamp_min(1e-10)
    mantissa, exponent = largest.frexp()  # mantissa from 0.5 on
    exponent = exponent - 1 + (mantissa >= 0.75).long() - 2
    scaled = groups / torch.exp2(exponent.float()).unsqueeze(2)
    distance = (scaled.abs().unsqueeze(3) - _MAGNITUDES).abs()
    # An odd code loses a tie: the next even one is looked for first.
    order = torch.tensor([0, 2, 4, 6, 1, 3, 5, 7])
    codes = order[distance[..., order].argmin(3)] + 8 * (scaled < 0)
    return codes.flatten(1), exponent + 127


def _places(rows: int, groups: int) -> torch.Tensor:
    """[rows, groups]: where the scale of a row and group lies."""
    x, y = torch.arange(rows)[:, None], torch.arange(groups)
    padded = -(-groups // 8) * 8
    return x // 32 * padded * 32 + y // 8 * 256 + y % 4 * 64 + x % 16 * 4 + y % 8 // 4 * 2 + x % 32 // 16


def _shuffled(scales: torch.Tensor) -> torch.Tensor:
    rows, groups = scales.shape
    out = torch.full((-(-rows // 256) * 256, -(-groups // 8) * 8), 255, dtype=torch.uint8)
    out.view(-1)[_places(rows, groups)] = scales.to(torch.uint8)
    return out


def per_1x32_f4_quant_hip(
    x: torch.Tensor, scale: None, quant_dtype: torch.dtype, shuffle: bool, **rest: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    assert x.is_contiguous() and x.dtype in (torch.bfloat16, torch.float16)
    assert scale is None and quant_dtype == torch.float4_e2m1fn_x2
    assert shuffle and x.shape[1] % 256 == 0, "values would lie elsewhere"
    codes, exponents = rounded(x)
    pairs = codes[:, ::2] + 16 * codes[:, 1::2]
    return pairs.to(torch.uint8).view(quant_dtype), _shuffled(exponents).view(torch.float8_e8m0fnu)


def e8m0_shuffle(scale: torch.Tensor) -> torch.Tensor:
    assert scale.dim() == 2 and scale.dtype == torch.uint8
    return _shuffled(scale)


def gemm_a4w4(
    A: torch.Tensor,
    B: torch.Tensor,
    A_scale: torch.Tensor,
    B_scale: torch.Tensor,
    out: torch.Tensor,
    bias: None,
    bpreshuffle: bool,
    **rest: Any,
) -> torch.Tensor:
    assert A.dtype == B.dtype == torch.float4_e2m1fn_x2 and A_scale.dtype == B_scale.dtype == torch.float8_e8m0fnu
    assert out.dtype == torch.bfloat16 and out.is_contiguous() and bias is None and bpreshuffle
    assert all(x.is_contiguous() for x in (A, B, A_scale, B_scale))
    assert len(out) % 32 == 0 and len(out) >= len(A) and out.shape[1] == len(B) and len(B) % 128 == 0
    first = _meant(A.view(torch.uint8), A_scale)
    out[: len(A)] = (first @ _meant(unshuffled(B.view(torch.uint8)), B_scale).t()).to(out.dtype)
    out[len(A) :] = float("nan")
    return out


def _meant(pairs: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    rows, groups = len(pairs), pairs.shape[1] // 16
    assert scales.shape == (-(-rows // 256) * 256, -(-groups // 8) * 8)
    by_group = scales.view(torch.uint8).flatten()[_places(rows, groups)].view(torch.float8_e8m0fnu).float()
    codes = torch.stack((pairs & 15, pairs >> 4), dim=2).flatten(1).long()
    values = _MAGNITUDES[codes & 7] * (1 - 2 * (codes >> 3))
    return values * by_group.repeat_interleave(32, 1)


KERNELS: dict[str, Callable[..., Any]] = {
    "aiter.per_1x32_f4_quant_hip": per_1x32_f4_quant_hip,
    "aiter.utility.fp4_utils.e8m0_shuffle": e8m0_shuffle,
    "aiter.gemm_a4w4": gemm_a4w4,
}
