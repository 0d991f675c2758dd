"""Norms, activations and projections through AITER's wrappers, against the reference backend."""

from __future__ import annotations

import pytest
import torch

from atom.model_ops.kernels.reference import activation, linear, norm
from atom.model_ops.kernels.select import Kernels
from tests.kernels.aiter.stand_in import StandIn

DTYPES = [torch.bfloat16, torch.float16]


@pytest.mark.parametrize("dtype", DTYPES)
def test_rms_norm(aiter: StandIn, kernels: Kernels, dtype: torch.dtype) -> None:
    x, weight = torch.randn(5, 96, dtype=dtype)[:, :64], torch.randn(64, dtype=dtype)
    found = kernels["rms_norm"](x, weight, 1e-5)
    torch.testing.assert_close(found, norm.rms_norm(x, weight, 1e-5), atol=2e-2, rtol=2e-2)
    assert aiter.names() == ["aiter.rms_norm"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_add_rms_norm_changes_the_residual_and_nothing_else(
    aiter: StandIn, kernels: Kernels, dtype: torch.dtype
) -> None:
    x, residual, weight = (torch.randn(shape, dtype=dtype) for shape in ((5, 64), (5, 64), (64,)))
    given, wanted_residual = x.clone(), residual.clone()
    wanted = norm.add_rms_norm(x, wanted_residual, weight, 1e-5)
    found = kernels["add_rms_norm"](x, residual, weight, 1e-5)
    torch.testing.assert_close(found, wanted, atol=2e-2, rtol=2e-2)
    assert torch.equal(residual, wanted_residual)
    assert torch.equal(x, given)
    assert aiter.names() == ["aiter.rmsnorm2d_fwd_with_add"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_silu_and_mul_of_rows_with_a_stride(aiter: StandIn, kernels: Kernels, dtype: torch.dtype) -> None:
    x = torch.randn(4, 100, dtype=dtype)[:, :64]
    found = kernels["silu_and_mul"](x)
    torch.testing.assert_close(found, activation.silu_and_mul(x), atol=2e-2, rtol=2e-2)
    assert aiter.names() == ["aiter.silu_and_mul"]


def test_silu_and_mul_of_a_row_that_ends_within_a_run_is_refused(aiter: StandIn, kernels: Kernels) -> None:
    """The kernel would write the rest of the run over the next row."""
    with pytest.raises(ValueError, match="no silu_and_mul of 516 values: give ATOM_KERNELS=silu_and_mul=triton"):
        kernels["silu_and_mul"](torch.randn(2, 2 * 516).to(torch.bfloat16))
    assert aiter.calls == []


@pytest.mark.parametrize("has_bias", [False, True])
def test_linear(aiter: StandIn, kernels: Kernels, has_bias: bool) -> None:
    x, weight = torch.randn(3, 32, dtype=torch.bfloat16), torch.randn(8, 32, dtype=torch.bfloat16)
    bias = torch.randn(8, dtype=torch.bfloat16) if has_bias else None
    found = kernels["linear"](x, kernels["linear_pack"](weight, bias))
    torch.testing.assert_close(found, linear.linear(x, linear.linear_pack(weight, bias)), atol=5e-2, rtol=2e-2)
    assert aiter.last("aiter.tuned_gemm.tgemm.mm")["bias"] is bias
    torch.testing.assert_close(kernels["logits"](x, kernels["linear_pack"](weight, bias)).to(x.dtype), found)
    assert aiter.names() == ["aiter.tuned_gemm.tgemm.mm"], "logits are not rounded on the way"


@pytest.mark.parametrize("operation", ["rms_norm", "add_rms_norm", "silu_and_mul"])
def test_float32_is_refused_by_name(aiter: StandIn, kernels: Kernels, operation: str) -> None:
    x = torch.randn(2, 64)
    arguments = {"rms_norm": (x, x[0], 1e-5), "add_rms_norm": (x, x, x[0], 1e-5), "silu_and_mul": (x,)}[operation]
    with pytest.raises(ValueError, match=rf"no {operation} for float32.*--dtype bfloat16.*{operation}=triton"):
        kernels[operation](*arguments)
    assert aiter.calls == []
