"""Routing and experts through AITER's wrappers: against the reference, with both types of fp8; what is refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from atom.model_ops.kernels.reference import experts as reference_experts
from atom.model_ops.kernels.reference import routing as reference_routing
from atom.model_ops.kernels.select import Kernels, select_kernels
from tests.kernels.aiter.stand_in import StandIn, installed
from tests.kernels.dense_experts import dense_experts

FLOAT8 = {"gfx942": torch.float8_e4m3fnuz, "gfx950": torch.float8_e4m3fn}


def by_expert(found: tuple[torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights and experts in the order of experts."""
    experts, order = found[1].sort(-1)
    return found[0].gather(1, order), experts


def same_routes(found: tuple[torch.Tensor, torch.Tensor], wanted: tuple[torch.Tensor, torch.Tensor]) -> None:
    assert found[0].dtype == torch.float32 and found[1].dtype == torch.int32
    weights, experts = by_expert(found)
    wanted_weights, wanted_experts = by_expert(wanted)
    assert torch.equal(experts, wanted_experts)
    torch.testing.assert_close(weights, wanted_weights)


@pytest.mark.parametrize("renormalize", [False, True])
@pytest.mark.parametrize(("num_experts", "top_k"), [(128, 8), (60, 4)])
def test_route_softmax(aiter: StandIn, kernels: Kernels, num_experts: int, top_k: int, renormalize: bool) -> None:
    torch.manual_seed(2)
    logits = torch.randn(5, num_experts + 4).bfloat16()[:, :num_experts]
    logits[1] = 0
    found = kernels["route_softmax"](logits, top_k, renormalize)
    wanted = reference_routing.route_softmax(logits, top_k, renormalize)
    assert torch.equal(found[1], wanted[1])
    same_routes(found, wanted)
    assert aiter.names() == ["aiter.topk_softmax"]


@pytest.mark.parametrize(
    ("num_experts", "has_bias", "sizes", "kernel"),
    [
        (256, True, (8, 4, 8, True, True, 2.5), "aiter.biased_grouped_topk"),
        (60, True, (1, 1, 6, True, False, 1.5), "aiter.biased_grouped_topk"),
        (160, False, (8, 3, 6, False, False, 16.0), "aiter.grouped_topk"),
        (16, False, (2, 1, 3, True, True, 1.0), "aiter.grouped_topk"),
    ],
)
def test_route_grouped(
    aiter: StandIn, kernels: Kernels, num_experts: int, has_bias: bool, sizes: tuple[Any, ...], kernel: str
) -> None:
    torch.manual_seed(2)
    # All different in 16 bits; a bias in 16 bits would choose others than this one.
    logits = torch.stack([torch.randperm(num_experts) for _ in range(7)]).bfloat16() / 256
    bias = 1 + torch.randn(num_experts) / 512 if has_bias else None
    found = kernels["route_grouped"](logits, bias, *sizes)
    same_routes(found, reference_routing.route_grouped(logits, bias, *sizes))
    assert aiter.names() == [kernel]


def test_many_tokens_are_routed_in_parts(aiter: StandIn, kernels: Kernels) -> None:
    logits, bias = torch.randn(8195, 8), torch.randn(8)
    found = kernels["route_grouped"](logits, bias, 1, 1, 2, True, True, 2.0)
    same_routes(found, reference_routing.route_grouped(logits, bias, 1, 1, 2, True, True, 2.0))
    assert [len(arguments["topk_ids"]) for _, arguments in aiter.calls] == [8192, 3]


@pytest.mark.parametrize(
    ("num_experts", "has_bias", "sizes", "said"),
    [
        (16, True, (1, 1, 2, False), "a bias on a softmax"),
        (16, True, (4, 1, 2, True), "4 groups with a bias"),
        (16, False, (16, 1, 1, True), "16 groups"),
        (24, False, (4, 1, 2, True), "24 experts in 4 groups"),
        (256, False, (1, 1, 65, True), "65 experts a token"),
    ],
)
def test_routes_that_no_kernel_takes_right_are_refused(
    aiter: StandIn, kernels: Kernels, num_experts: int, has_bias: bool, sizes: tuple[Any, ...], said: str
) -> None:
    bias = torch.zeros(num_experts) if has_bias else None
    with pytest.raises(ValueError, match=f"no routing for {said}: give ATOM_KERNELS=route_grouped=reference"):
        kernels["route_grouped"](torch.zeros(2, num_experts), bias, *sizes, True, 1.0)
    assert aiter.calls == []


def operands(intermediate: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """x with a row of zeros and a stride, gate_up, down, weights, experts; the last expert has no token."""
    torch.manual_seed(4)
    x = torch.randn(6, 264).bfloat16()[:, :256]
    x[2] = 0
    logits = torch.randn(6, 4)
    logits[:, 3] = -10
    routes = reference_routing.route_softmax(logits, 2, True)
    return x, torch.randn(4, 2 * intermediate, 256), torch.randn(4, 256, intermediate), *routes


def close(found: torch.Tensor, wanted: torch.Tensor) -> None:
    assert found.dtype == torch.bfloat16
    assert not found[2].any()
    assert (found.float() - wanted.float()).norm() < 2e-2 * wanted.float().norm()


@pytest.mark.parametrize(("intermediate", "filled"), [(256, 256), (96, 128)])
def test_experts(aiter: StandIn, kernels: Kernels, intermediate: int, filled: int) -> None:
    x, gate_up, down, weights, experts = operands(intermediate)
    given = gate_up.bfloat16(), down.bfloat16()
    found = kernels["fused_experts"](x, kernels["experts_pack"](*given), weights, experts)
    close(found, reference_experts.fused_experts(x, reference_experts.experts_pack(*given), weights, experts))
    assert aiter.last("aiter.fused_moe.fused_moe")["w2"].shape == (4, 256, filled)


@pytest.mark.parametrize("gfx", FLOAT8)
@pytest.mark.parametrize(
    ("intermediate", "block_rows", "filled", "kind"),
    [(256, 1, 256, "per_Token"), (160, 1, 256, "per_Token"), (384, 128, 384, "per_128x128")],
)
def test_experts_in_fp8(gfx: str, intermediate: int, block_rows: int, filled: int, kind: str) -> None:
    x, gate_up, down, weights, experts = operands(intermediate)
    packing: list[Any] = []
    for values in (gate_up, down):
        groups = values.shape[2] // 128 if block_rows == 128 else 1
        packing += [values.to(torch.float8_e4m3fn), torch.rand(4, values.shape[1] // block_rows, groups) + 0.5]
    meant = []
    for values, scales in (packing[:2], packing[2:]):
        columns = 128 if block_rows == 128 else values.shape[2]
        by_value = scales.double().repeat_interleave(block_rows, 1).repeat_interleave(columns, 2)
        meant.append(values.double() * by_value)
    group = 128 if block_rows == 128 else 1 << 20
    wanted = dense_experts(x, meant[0], meant[1], weights, experts, group, FLOAT8[gfx])
    with installed(gfx) as stand_in:
        kernels = select_kernels("rocm")
        found = kernels["fused_experts"](
            x, kernels["fp8_experts_pack"](*packing, block_rows, x.dtype), weights, experts
        )
        called = stand_in.last("aiter.fused_moe.fused_moe")
    assert (called["w2"].shape, called["quant_type"].name) == ((4, 256, filled), kind)
    assert called["w1"].dtype == FLOAT8[gfx]
    close(found, wanted)


@pytest.mark.parametrize(
    ("hidden", "scales", "block_rows", "said"),
    [
        (200, (2, 200, 1), 1, "of a hidden size of 200"),
        (256, (2, 2, 1), 128, r"with scales of \(2, 2, 1\) for weights of \(2, 256, 256\)"),
        (256, (2, 256, 2), 1, r"with scales of \(2, 256, 2\) for weights of \(2, 256, 256\)"),
    ],
)
def test_experts_that_no_kernel_takes_are_refused_while_loading(
    aiter: StandIn, kernels: Kernels, hidden: int, scales: tuple[int, ...], block_rows: int, said: str
) -> None:
    gate_up, down = (torch.zeros(shape).to(torch.float8_e4m3fn) for shape in ((2, 512, hidden), (2, hidden, 256)))
    other = torch.ones(2, 512, 1) if block_rows == 1 else torch.ones(2, 4, hidden // 128)
    with pytest.raises(ValueError, match=f"AITER has no experts {said}: give ATOM_KERNELS=fused_experts=reference"):
        kernels["fp8_experts_pack"](gate_up, other, down, torch.ones(scales), block_rows, torch.bfloat16)
    assert aiter.calls == []


def test_float32_is_refused(kernels: Kernels) -> None:
    x, gate_up, down, weights, experts = operands(128)
    packed = kernels["experts_pack"](gate_up.bfloat16(), down.bfloat16())
    with pytest.raises(ValueError, match="no fused_experts for float32"):
        kernels["fused_experts"](x.float(), packed, weights, experts)
