"""The reference's fp8 projection against the definition in float64; 8-bit types and what becomes of them."""

from __future__ import annotations

import pytest
import torch

from atom.model_ops.float8 import SMALLEST_AMAX, fn_to_fnuz, quantize, scale_factor
from atom.model_ops.kernels.select import select_kernels

BLOCK = 128


def meant(weight: torch.Tensor, scales: torch.Tensor, block_rows: int) -> torch.Tensor:
    """The weight in float64, by its definition, a value at a time."""
    rows = torch.arange(weight.shape[0]) // block_rows
    columns = torch.arange(weight.shape[1]) // BLOCK if scales.shape[1] > 1 else torch.zeros(weight.shape[1]).long()
    return weight.double() * scales.double()[rows[:, None], columns[None, :]]


def rounded(x: torch.Tensor, group: int) -> torch.Tensor:
    """x [T, K] in float64 as fp8 holds it, each run of `group` values with its own scale."""
    out = x.double().clone()
    for start in range(0, x.shape[1], group):
        part = x[:, start : start + group].float()
        scale = part.abs().amax(1, keepdim=True) / 448
        out[:, start : start + group] = (part / scale).to(torch.float8_e4m3fn).double() * scale.double()
    return out


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ("outputs", "inputs", "block_rows", "has_groups"),
    [
        (96, 64, 1, False),
        (37, 77, 1, False),
        (256, 384, BLOCK, True),
        (200, 300, BLOCK, True),
        (50, 257, 1, True),
        (300, 100, BLOCK, False),
    ],
)
def test_against_the_definition(
    outputs: int, inputs: int, block_rows: int, has_groups: bool, dtype: torch.dtype
) -> None:
    torch.manual_seed(3)
    kernels = select_kernels("cpu")
    weight = (60 * torch.randn(outputs, inputs)).to(torch.float8_e4m3fn)
    scales = torch.rand(-(-outputs // block_rows), -(-inputs // BLOCK) if has_groups else 1) + 0.01
    bias = torch.randn(outputs).to(dtype)
    x = (torch.randn(5, inputs) * torch.logspace(-3, 3, 5)[:, None]).to(dtype)
    found = kernels["fp8_linear"](x, kernels["fp8_linear_pack"](weight, scales, block_rows, bias, dtype))
    wanted = rounded(x, BLOCK if has_groups else inputs) @ meant(weight, scales, block_rows).T + bias.double()
    assert found.dtype == dtype
    errors = (found.double() - wanted).norm(dim=1) / wanted.norm(dim=1)
    assert errors.max() < (1e-6 if dtype == torch.float32 else 6e-3)


def test_zeros_and_no_tokens() -> None:
    kernels = select_kernels("cpu")
    weight, bias = torch.ones(3, 130).to(torch.float8_e4m3fn), torch.arange(3.0)
    for scales in (torch.ones(3, 1), torch.ones(1, 2)):
        packed = kernels["fp8_linear_pack"](weight, scales, 1 if scales.shape[1] == 1 else BLOCK, bias, torch.float32)
        assert torch.equal(kernels["fp8_linear"](torch.zeros(2, 130), packed), bias.expand(2, 3))
        assert kernels["fp8_linear"](torch.zeros(0, 130), packed).shape == (0, 3)


def test_quantize() -> None:
    x = torch.tensor([[1.0, -2.0, 0.5], [0.0, 0.0, 0.0], [1e-3, 3e38, 0.0]])
    values, scales = quantize(x, torch.float8_e4m3fn)
    assert torch.equal(scales[:, 0], torch.tensor([2.0, SMALLEST_AMAX, 3e38]) / 448)
    assert torch.equal(values.float()[0], torch.tensor([224.0, -448.0, 112.0]))
    assert not values.float()[1].any()
    assert torch.equal(values.float()[2], torch.tensor([0.0, 448.0, 0.0]))


def test_the_form_of_gfx942_means_the_same() -> None:
    every = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn)
    every = every[every.float().isfinite()]
    half = fn_to_fnuz(every)
    assert torch.equal(half.float() * scale_factor(torch.float8_e4m3fnuz), every.float())
    assert scale_factor(torch.float8_e4m3fn) == 1.0
