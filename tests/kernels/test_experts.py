"""The reference's mixture of experts against the definition in float64, a token and an expert at a time."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from atom.model_ops.kernels.select import select_kernels
from tests.kernels.dense_experts import dense_experts

KERNELS = select_kernels("cpu")
BLOCK = 128


def routed(num_tokens: int, num_experts: int, top_k: int, skew: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights and distinct experts; a skew leaves some without tokens."""
    logits = torch.randn(num_tokens, num_experts) - skew * torch.arange(num_experts)
    found: tuple[torch.Tensor, torch.Tensor] = KERNELS["route_softmax"](logits, top_k, True)
    return found


def close(found: torch.Tensor, wanted: torch.Tensor, dtype: torch.dtype) -> None:
    assert found.dtype == dtype
    assert (found.double() - wanted).norm() <= (1e-5 if dtype == torch.float32 else 2e-2) * wanted.norm()


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_against_the_definition(data: st.DataObject) -> None:
    num_tokens, num_experts = data.draw(st.integers(0, 7)), data.draw(st.integers(1, 6))
    top_k = data.draw(st.integers(1, num_experts))
    hidden, intermediate = data.draw(st.sampled_from([(16, 8), (33, 7), (8, 40)]))
    dtype = data.draw(st.sampled_from([torch.float32, torch.bfloat16]))
    torch.manual_seed(data.draw(st.integers(0, 1000)))
    gate_up, down = torch.randn(num_experts, 2 * intermediate, hidden), torch.randn(num_experts, hidden, intermediate)
    gate_up, down, x = (t.to(dtype) for t in (gate_up, down, torch.randn(num_tokens, hidden)))
    weights, experts = routed(num_tokens, num_experts, top_k, skew=data.draw(st.sampled_from([0.0, 3.0])))
    given_x = x.clone()
    found = KERNELS["fused_experts"](x, KERNELS["experts_pack"](gate_up, down), weights, experts)
    close(found, dense_experts(x, gate_up.double(), down.double(), weights, experts), dtype)
    assert torch.equal(x, given_x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("by_block", [False, True])
def test_fp8_against_the_definition(by_block: bool, dtype: torch.dtype) -> None:
    torch.manual_seed(5)
    num_experts, hidden, intermediate = 3, 200, 128
    block_rows = BLOCK if by_block else 1
    meant, packing = [], []
    for shape in ((num_experts, 2 * intermediate, hidden), (num_experts, hidden, intermediate)):
        values = torch.randn(shape).to(torch.float8_e4m3fn)
        groups = -(-shape[2] // BLOCK) if by_block else 1
        scales = torch.rand(num_experts, -(-shape[1] // block_rows), groups) + 0.1
        by_value = scales.repeat_interleave(block_rows, 1)[:, : shape[1]]
        by_value = by_value.repeat_interleave(BLOCK if by_block else shape[2], 2)[:, :, : shape[2]]
        meant.append(values.double() * by_value.double())
        packing += [values, scales]
    x = (torch.randn(6, hidden) * torch.logspace(-2, 2, 6)[:, None]).to(dtype)
    x[3] = 0
    weights, experts = routed(6, num_experts, 2)
    found = KERNELS["fused_experts"](x, KERNELS["fp8_experts_pack"](*packing, block_rows, dtype), weights, experts)
    wanted = dense_experts(x, meant[0], meant[1], weights, experts, BLOCK if by_block else 10**6)
    assert not found[3].any()
    assert found.dtype == dtype
    # What silu makes is rounded to 8 bits after sums in another order: a few values fall to the other side.
    errors = (found.double() - wanted).norm(dim=1) / wanted.norm(dim=1).clamp_min(1e-9)
    assert errors.max() < (2e-2 if dtype == torch.float32 else 8e-2)


def test_a_token_does_not_depend_on_the_others() -> None:
    torch.manual_seed(1)
    packed = KERNELS["experts_pack"](torch.randn(4, 32, 24), torch.randn(4, 24, 16))
    x = torch.randn(5, 24)
    weights, experts = routed(5, 4, 2)
    whole = KERNELS["fused_experts"](x, packed, weights, experts)
    alone = [KERNELS["fused_experts"](x[t : t + 1], packed, weights[t : t + 1], experts[t : t + 1]) for t in range(5)]
    torch.testing.assert_close(whole, torch.cat(alone))


def test_weights_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="do not fit together"):
        KERNELS["experts_pack"](torch.zeros(2, 12, 8), torch.zeros(2, 8, 5))
    wrong = (torch.zeros(1, 200, 128).to(torch.float8_e4m3fn), torch.zeros(1, 128, 100).to(torch.float8_e4m3fn))
    with pytest.raises(ValueError, match="an intermediate size of 100 is no multiple of the scales' 128 rows"):
        KERNELS["fp8_experts_pack"](wrong[0], torch.ones(1, 2, 1), wrong[1], torch.ones(1, 1, 1), 128, torch.float32)
