"""fp8 projections through AITER's wrappers, against the definition, with both types of fp8."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from atom.model_ops.float8 import quantize
from atom.model_ops.kernels.select import select_kernels
from tests.kernels.aiter.stand_in import installed

FLOAT8 = {"gfx942": torch.float8_e4m3fnuz, "gfx950": torch.float8_e4m3fn}
# Outputs, inputs, rows that share a scale, groups of inputs that have one; the kernel.
CASES = {
    "a scale for each output": (48, 160, 1, 1, "aiter.gemm_a8w8"),
    "one for 128 outputs": (144, 112, 128, 1, "aiter.gemm_a8w8"),
    "blocks": (256, 384, 128, 3, "aiter.gemm_a8w8_blockscale"),
    "blocks cut short": (144, 256, 128, 2, "aiter.gemm_a8w8_blockscale"),
}


def operands(num_outputs: int, num_inputs: int, block_rows: int, groups: int) -> tuple[Any, ...]:
    """x with a row of zeros and a stride, weight, scales, bias."""
    torch.manual_seed(3)
    x = torch.randn(5, num_inputs + 8).to(torch.bfloat16)[:, :num_inputs]
    x[2] = 0
    weight = torch.randn(num_outputs, num_inputs).to(torch.float8_e4m3fn)
    weight[0, 0] = -0.0
    return x, weight, torch.rand(-(-num_outputs // block_rows), groups) + 0.5, torch.randn(num_outputs).bfloat16()


def defined(
    x: torch.Tensor, weight: torch.Tensor, scales: torch.Tensor, block_rows: int, float8: torch.dtype
) -> torch.Tensor:
    """The product in float64: the weight that is meant, the input as the type holds it."""
    group = 128 if scales.shape[1] > 1 else x.shape[1]
    values, by_group = quantize(x.reshape(len(x), -1, group), float8)
    by_value = scales.repeat_interleave(block_rows, 0)[: len(weight)].repeat_interleave(group, 1)
    return (values.double() * by_group.double()).view(x.shape) @ (weight.double() * by_value.double()).t()


@pytest.mark.parametrize("gfx", FLOAT8)
@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_the_definitions_numbers(name: str, has_bias: bool, gfx: str) -> None:
    num_outputs, num_inputs, block_rows, groups, kernel = CASES[name]
    x, weight, scales, bias = operands(num_outputs, num_inputs, block_rows, groups)
    bias = bias if has_bias else None
    wanted = defined(x, weight, scales, block_rows, FLOAT8[gfx]) + (0.0 if bias is None else bias.double())
    with installed(gfx) as stand_in:
        kernels = select_kernels("rocm")
        packed = kernels["fp8_linear_pack"](weight, scales, block_rows, bias, x.dtype)
        found = kernels["fp8_linear"](x, packed)
    assert stand_in.names()[-1] == kernel
    assert stand_in.last(kernel)["WQ"].dtype == FLOAT8[gfx]
    assert torch.equal(found[2].float(), torch.zeros(num_outputs) if bias is None else bias.float())
    assert (found.double() - wanted).norm() < 5e-3 * wanted.norm()


@pytest.mark.parametrize(
    ("shape", "block_rows", "groups", "said"),
    [
        ((40, 128), 1, 1, "for 40 outputs of 128 inputs"),
        ((48, 100), 1, 1, "for 48 outputs of 100 inputs"),
        ((256, 256), 1, 2, "with scales by 1 x 128 for 256 inputs"),
        ((256, 160), 128, 2, "with scales by 128 x 128 for 160 inputs"),
    ],
)
def test_what_no_kernel_takes_is_refused_while_loading(
    shape: tuple[int, int], block_rows: int, groups: int, said: str
) -> None:
    _, weight, scales, _ = operands(*shape, block_rows, groups)
    with installed() as stand_in:
        kernels = select_kernels("rocm")
        with pytest.raises(ValueError, match=f"no fp8 product {said}: give ATOM_KERNELS=fp8_linear_pack=triton"):
            kernels["fp8_linear_pack"](weight, scales, block_rows, None, torch.bfloat16)
        assert stand_in.calls == []


def test_float32_is_refused() -> None:
    x, weight, scales, _ = operands(48, 160, 1, 1)
    with installed():
        kernels = select_kernels("rocm")
        packed = kernels["fp8_linear_pack"](weight, scales, 1, None, torch.float32)
        with pytest.raises(ValueError, match="no fp8_linear for float32"):
            kernels["fp8_linear"](x.float(), packed)
