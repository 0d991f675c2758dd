"""MXFP4 projections through AITER's wrapper, against the definition with x rounded to fp4; what is refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from atom.model_ops.kernels.reference.float4 import from_float4
from atom.model_ops.kernels.select import select_kernels
from tests.kernels.aiter.stand_in import installed


def operands(num_tokens: int, num_outputs: int, num_inputs: int) -> tuple[torch.Tensor, ...]:
    """x with a row of zeros and a stride, weight, scales, bias."""
    torch.manual_seed(3)
    x = (torch.randn(num_tokens, num_inputs + 8) * torch.logspace(-2, 2, num_tokens)[:, None]).bfloat16()
    x[2] = 0
    weight = torch.randint(256, (num_outputs, num_inputs // 2), dtype=torch.uint8)
    scales = torch.randint(118, 130, (num_outputs, num_inputs // 32), dtype=torch.uint8)
    return x[:, :num_inputs], weight, scales, torch.randn(num_outputs).bfloat16()


def in_fp4(x: torch.Tensor) -> torch.Tensor:
    """x [T, K] in float64: each 32 values over the power of two that brings their largest to 3 or more, below 6.

    Steps are a half below 2, one below 4, and two from there on; ties go to even.
    """
    groups = x.double().unflatten(1, (-1, 32))
    largest = groups.abs().amax(2, keepdim=True).clamp_min(1e-10)
    scale = torch.exp2((largest / 3).log2().floor())
    scaled = groups / scale
    step = torch.exp2(scaled.abs().clamp_min(1.0).log2().floor() - 1)
    return ((scaled / step).round() * step * scale).flatten(1)


@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize(
    ("num_tokens", "num_outputs", "num_inputs", "filled"),
    [(5, 128, 256, (32, 128)), (70, 300, 512, (96, 384)), (32, 256, 256, (32, 256))],
)
def test_the_definitions_numbers(
    num_tokens: int, num_outputs: int, num_inputs: int, filled: tuple[int, int], has_bias: bool
) -> None:
    x, weight, scales, bias = operands(num_tokens, num_outputs, num_inputs)
    given: Any = bias if has_bias else None
    wanted = in_fp4(x) @ from_float4(weight, scales, torch.float64).T
    if has_bias:
        wanted += bias.double()
    with installed("gfx950") as stand_in:
        kernels = select_kernels("rocm")
        found = kernels["fp4_linear"](x, kernels["fp4_linear_pack"](weight, scales, given, x.dtype))
    assert stand_in.last("aiter.gemm_a4w4")["out"].shape == filled
    assert found.shape == wanted.shape and found.is_contiguous()
    assert (found.double() - wanted).norm() < 5e-3 * wanted.norm()
    assert torch.equal(found[2], bias if has_bias else torch.zeros_like(bias))


@pytest.mark.parametrize(
    ("num_inputs", "dtype", "said"),
    [(288, torch.bfloat16, "of 288 inputs in bfloat16"), (256, torch.float16, "of 256 inputs in float16")],
)
def test_what_no_kernel_takes_is_refused_while_loading(num_inputs: int, dtype: torch.dtype, said: str) -> None:
    _, weight, scales, _ = operands(3, 128, num_inputs)
    with installed("gfx950") as stand_in:
        kernels = select_kernels("rocm")
        with pytest.raises(ValueError, match=f"no fp4 product {said}: give --dtype bfloat16, or ATOM_KERNELS="):
            kernels["fp4_linear_pack"](weight, scales, None, dtype)
        with pytest.raises(ValueError, match="do not fit pairs"):
            kernels["fp4_linear_pack"](weight, scales[:, 1:], None, torch.bfloat16)
        assert stand_in.calls == []
