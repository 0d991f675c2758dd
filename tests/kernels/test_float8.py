"""8-bit floats in the reference: saturation, and the table that reads them."""

from __future__ import annotations

import pytest
import torch

from atom.model_ops.float8 import scale_factor, to_float8
from atom.model_ops.kernels.reference.float8 import from_float8

TYPES = [torch.float8_e4m3fn, torch.float8_e4m3fnuz]


@pytest.mark.parametrize("source", TYPES)
@pytest.mark.parametrize("target", [torch.float32, torch.bfloat16])
def test_every_value_in_every_place_is_read(source: torch.dtype, target: torch.dtype) -> None:
    every = torch.arange(256, dtype=torch.uint8)
    values = torch.stack((every.repeat_interleave(256), every.repeat(256)), dim=1).view(source)
    assert torch.equal(from_float8(values, target).nan_to_num(9e9), values.to(target).nan_to_num(9e9))
    assert from_float8(values.view(16, -1, 8), target).shape == (16, 1024, 8)


def test_an_odd_number_of_values_is_read_too() -> None:
    values = torch.tensor([[1.0, -2.0, 448.0]]).to(torch.float8_e4m3fn)
    assert from_float8(values, torch.float32).tolist() == [[1.0, -2.0, 448.0]]


@pytest.mark.parametrize(("dtype", "largest"), [*zip(TYPES, (448.0, 240.0), strict=True)])
def test_what_is_too_large_saturates(dtype: torch.dtype, largest: float) -> None:
    x = torch.tensor([1e9, -1e9, float("inf"), largest + 1, 0.3, float("nan")])
    found = to_float8(x, dtype).float()
    assert found[:4].tolist() == [largest, -largest, largest, largest]
    assert found[4] == 0.3125
    assert found[5].isnan()


def test_a_checkpoints_scales_suit_the_larger_type() -> None:
    """x / scale of a value at e4m3fn's limit is inside of fnuz's, too."""
    assert [448.0 / scale_factor(dtype) for dtype in TYPES] == [448.0, 224.0]
