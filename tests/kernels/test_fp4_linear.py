"""The reference's MXFP4 projection against the definition in float64."""

from __future__ import annotations

import pytest
import torch

from atom.model_ops.kernels.select import select_kernels

KERNELS = select_kernels("cpu")
# Every code by its four bits: a sign, two bits of exponent with bias 1, one of mantissa.
VALUES = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0]


def meant(weight: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """The weight in float64, a value at a time."""
    out = torch.empty(weight.shape[0], 2 * weight.shape[1], dtype=torch.float64)
    for row, pairs in enumerate(weight.tolist()):
        for place in range(out.shape[1]):
            code = pairs[place // 2] >> 4 if place % 2 else pairs[place // 2] & 15
            out[row, place] = VALUES[code] * 2.0 ** (int(scales[row, place // 32]) - 127)
    return out


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("outputs", "inputs"), [(7, 32), (150, 96), (32, 256)])
def test_against_the_definition(outputs: int, inputs: int, dtype: torch.dtype) -> None:
    torch.manual_seed(3)
    weight = torch.randint(256, (outputs, inputs // 2), dtype=torch.uint8)
    scales = torch.randint(118, 130, (outputs, inputs // 32), dtype=torch.uint8)
    bias, x = torch.randn(outputs).to(dtype), torch.randn(5, inputs).to(dtype)
    found = KERNELS["fp4_linear"](x, KERNELS["fp4_linear_pack"](weight, scales, bias, dtype))
    wanted = x.double() @ meant(weight, scales).T + bias.double()
    assert found.dtype == dtype
    assert (found.double() - wanted).norm() < (1e-6 if dtype == torch.float32 else 5e-3) * wanted.norm()


def test_every_value_of_a_byte_and_every_scale_is_exact() -> None:
    pairs = torch.arange(256, dtype=torch.uint8).view(16, 16)
    packed = KERNELS["fp4_linear_pack"](pairs, torch.full((16, 1), 127, dtype=torch.uint8), None, torch.float32)
    found = KERNELS["fp4_linear"](torch.eye(32), packed).T.flatten()
    wanted = [VALUES[code] for byte in range(256) for code in (byte & 15, byte >> 4)]
    assert found.tolist() == wanted
    one = torch.full((255, 16), 0x22, dtype=torch.uint8)
    scales = torch.arange(255, dtype=torch.uint8).view(255, 1)
    packed = KERNELS["fp4_linear_pack"](one, scales, None, torch.float32)
    found = KERNELS["fp4_linear"](torch.eye(32)[:1], packed)[0]
    assert found.tolist() == [2.0 ** (n - 127) for n in range(255)]


def test_a_scale_of_255_is_no_number_and_no_tokens_are_none() -> None:
    weight, scales = torch.zeros(3, 32, dtype=torch.uint8), torch.full((3, 2), 127, dtype=torch.uint8)
    scales[1, 1] = 255
    packed = KERNELS["fp4_linear_pack"](weight, scales, None, torch.float32)
    assert KERNELS["fp4_linear"](torch.ones(1, 64), packed).isnan().tolist() == [[False, True, False]]
    assert KERNELS["fp4_linear"](torch.ones(0, 64), packed).shape == (0, 3)


def test_scales_that_do_not_fit() -> None:
    weight = torch.zeros(3, 24, dtype=torch.uint8)
    with pytest.raises(ValueError, match=r"scales of \(3, 1\) do not fit pairs of \(3, 24\)"):
        KERNELS["fp4_linear_pack"](weight, torch.zeros(3, 1, dtype=torch.uint8), None, torch.float32)
