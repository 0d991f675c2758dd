"""Checks of the Triton kernels for fp8 projections: rounding to the byte, products against float64."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from atom.model_ops.float8 import float8_dtype, quantize, scale_factor
from atom.model_ops.kernels.triton import fp8_linear, fp8_product
from atom.model_ops.kernels.triton.fp8_quantize import GROUP, quantize_groups, quantize_tokens


def poison(device: torch.device) -> None:
    """Leave NaN in memory that the allocator hands out next."""
    for kept in [torch.full((1 << 16 >> shift,), float("nan"), device=device) for shift in range(8)]:
        del kept


def float8_types(device: torch.device) -> list[torch.dtype]:
    """Those that the device computes with; the interpreter has both."""
    return [float8_dtype(device)] if device.type == "cuda" else [torch.float8_e4m3fn, torch.float8_e4m3fnuz]


def equal_bytes(found: torch.Tensor, wanted: torch.Tensor) -> bool:
    return torch.equal(found.view(torch.uint8).cpu(), wanted.view(torch.uint8).cpu())


def check_quantize(device: torch.device) -> None:
    """Values and scales as torch's, to the bit: rows of every size, a row of zeros, sizes that no group divides."""
    for float8 in float8_types(device):
        for dtype, tokens, width in (
            (torch.float32, 1, 48),
            (torch.bfloat16, 5, 300),
            (torch.bfloat16, 3, 4000),
            (torch.float32, 2, 128),
        ):
            x = torch.randn(tokens, width + 8, device=device) * torch.logspace(-3, 2, tokens, device=device)[:, None]
            x = x.to(dtype)[:, :width]
            x[-1] = 0
            poison(device)
            values, scales = quantize_tokens(x, float8)
            wanted, wanted_scales = quantize(x, float8)
            assert equal_bytes(values, wanted)
            assert torch.equal(scales, wanted_scales)
            values, scales = quantize_groups(x, float8, 4)
            short = -width % GROUP
            groups = torch.nn.functional.pad(x, (0, short)).reshape(tokens, -1, GROUP)
            wanted, wanted_scales = quantize(groups, float8)
            assert values.shape == (-(-tokens // 4) * 4, width)
            assert scales.stride() == (1, len(values)) or scales.shape[1] == 1
            assert equal_bytes(values[:tokens], wanted.reshape(tokens, -1)[:, :width].contiguous())
            assert torch.equal(scales[:tokens], wanted_scales[..., 0])
    assert quantize_tokens(torch.empty(0, 8, device=device), torch.float8_e4m3fn)[0].shape == (0, 8)
    x = torch.tensor([[1.0, float("nan")]], device=device)
    assert quantize_tokens(x, float8_types(device)[0])[0].float()[0, 1].isnan()


@dataclass(frozen=True)
class Case:
    """Tokens, outputs and inputs of a projection, outputs that share a scale, whether 128 inputs do."""

    tokens: int
    outputs: int
    inputs: int
    block_rows: int = 1
    has_groups: bool = False
    has_bias: bool = False
    dtype: torch.dtype = torch.bfloat16


CASES = {
    "by row": Case(5, 96, 64, has_bias=True),
    "by row, odd sizes, float32": Case(3, 37, 77, has_bias=True, dtype=torch.float32),
    "by row, many tokens": Case(70, 80, 160),
    "blocks": Case(20, 256, 512, 128, True, has_bias=True),
    "blocks, odd sizes": Case(19, 200, 300, 128, True, dtype=torch.float32),
    "rows in groups": Case(2, 50, 256, 1, True),
    "one block of inputs": Case(2, 300, 100, 128),
    "no tokens": Case(0, 16, 16),
}


def make_weight(case: Case, device: torch.device) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """An fp8 weight of a checkpoint, its scales, and what is meant, in float64."""
    weight = (100 * torch.randn(case.outputs, case.inputs, device=device)).to(torch.float8_e4m3fn)
    weight[0, 0] = -0.0
    columns = -(-case.inputs // GROUP) if case.has_groups else 1
    scales = torch.rand(-(-case.outputs // case.block_rows), columns, device=device) + 0.01
    whole = scales.repeat_interleave(case.block_rows, 0)[: case.outputs]
    if case.has_groups:
        whole = whole.repeat_interleave(GROUP, 1)[:, : case.inputs]
    return weight, scales, weight.double() * whole.double()


def rounded(x: torch.Tensor, case: Case, float8: torch.dtype) -> torch.Tensor:
    """x as fp8 holds it, in float64."""
    group = GROUP if case.has_groups else case.inputs
    values, scales = quantize(torch.nn.functional.pad(x, (0, -case.inputs % group)).reshape(-1, group), float8)
    return (values.double() * scales.double()).reshape(len(x), -(-case.inputs // group) * group)[:, : case.inputs]


def check_linear(case: Case, device: torch.device) -> None:
    """The operations as the table has them."""
    weight, scales, whole = make_weight(case, device)
    bias = torch.randn(case.outputs, device=device).to(case.dtype) if case.has_bias else None
    x = torch.randn(case.tokens, case.inputs, device=device).to(case.dtype)
    packed = fp8_linear.fp8_linear_pack(weight, scales, case.block_rows, bias, case.dtype)
    poison(device)
    found = fp8_linear.fp8_linear(x, packed)
    wanted = rounded(x, case, packed.weight.dtype) @ whole.t() + (0 if bias is None else bias.double())
    assert found.shape == wanted.shape
    assert found.dtype == case.dtype
    if case.tokens:
        difference = float((found.double() - wanted).norm() / wanted.norm())
        assert difference < (2e-3 if case.dtype == torch.float32 else 5e-3), f"{difference:.2e}"


def check_product(device: torch.device) -> None:
    """The Triton product in every 8-bit type, whoever the table would let multiply."""
    for float8 in float8_types(device):
        for case in (Case(33, 144, 384, 128, True), Case(4, 64, 128)):
            weight, scales, whole = make_weight(case, device)
            given = weight.float().div(scale_factor(float8)).to(float8)
            x = torch.randn(case.tokens, case.inputs, device=device)
            values, by_row = (quantize_groups if case.has_groups else quantize_tokens)(x, float8)
            poison(device)
            found = fp8_product.fp8_product(
                values, by_row, given, scales * scale_factor(float8), case.block_rows, None, torch.float32
            )
            wanted = rounded(x, case, float8) @ whole.t()
            difference = float((found.double() - wanted).norm() / wanted.norm())
            assert difference < 2e-3, f"{difference:.2e}"


FP8_CHECKS: dict[str, Callable[[torch.device], None]] = {
    "fp8 quantize": check_quantize,
    "fp8 product": check_product,
    **{f"fp8 linear, {name}": lambda device, case=case: check_linear(case, device) for name, case in CASES.items()},
}
