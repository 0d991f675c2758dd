"""What AITER can not do is refused by the first step, with what to change; what its kernels read unasked is right."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from atom.model_ops.kernels.select import Kernels
from tests.kernels.aiter.stand_in import StandIn
from tests.kernels.dense import make_step


def attend(kernels: Kernels, num_heads: int = 4, dtype: torch.dtype = torch.bfloat16, **softmax: Any) -> None:
    """A prefill of three tokens over a shuffled cache, as an engine's first step is one."""
    step = make_step([0], [3], [[1]], 16, 0)
    step.plan = kernels["attention_plan"](step)
    cache = torch.zeros(kernels["kv_cache_shape"](2, 16, 1, 128), dtype=dtype)
    q, k = torch.zeros(3, num_heads, 128, dtype=dtype), torch.zeros(3, 1, 128, dtype=dtype)
    arguments = {"scale": 0.1, "window": None, "soft_cap": 0.0, "sinks": None} | softmax
    kernels["attention_prefill"](q, k, k, cache, None, step.plan, *arguments.values())


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"window": 8}, "no sliding windows"),
        ({"soft_cap": 30.0}, "no a soft cap"),
        ({"sinks": torch.zeros(4)}, "no sinks"),
        ({"num_heads": 17}, "no 17 query heads a key head"),
        ({"window": 8, "sinks": torch.zeros(4)}, "no sliding windows and no sinks"),
    ],
)
def test_a_prefill_refuses_what_the_decodes_after_it_could_not_do(
    aiter: StandIn, kernels: Kernels, asked: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=rf"{said}.*--block-size 32.*ATOM_KERNELS=attention_decode=triton"):
        attend(kernels, **asked)
    assert aiter.calls == []


def test_float32_is_refused(kernels: Kernels) -> None:
    with pytest.raises(ValueError, match="no attention_prefill for float32"):
        attend(kernels, dtype=torch.float32)


def test_a_plan_of_decodes_is_made_on_the_device_and_pads(kernels: Kernels) -> None:
    """A captured step: lengths on the host are unknown, a row of padding has position -1 and slot -1."""
    step = make_step([20, 4], [1, 1], [[1, 2], [0]], 16, 2)
    step.positions[1], step.slot_mapping[1] = -1, -1
    step.context_lens[:] = 0
    plan = kernels["attention_plan"](step)
    assert plan.positions.tolist() == [20, 0]
    assert plan.decode.key_lens.tolist() == [21, 1]
    assert plan.decode.max_key_len == 32
    assert plan.decode.tables.dtype == plan.decode.key_lens.dtype == plan.decode.query_bounds.dtype == torch.int32


def test_the_softmax_scale_that_the_decode_kernel_lacks_is_in_its_queries(aiter: StandIn, kernels: Kernels) -> None:
    step = make_step([5], [1], [[1]], 16, 1)
    step.plan = kernels["attention_plan"](step)
    cache = torch.randn(kernels["kv_cache_shape"](2, 16, 1, 128)).to(torch.bfloat16)
    q = torch.randn(1, 4, 128).to(torch.bfloat16)
    for scale, factor in ((128**-0.5, 1.0), (0.25 * 128**-0.5, 0.25)):
        kernels["attention_decode"](q, cache, None, step.plan, scale, None, 0.0, None)
        assert torch.equal(aiter.last("aiter.pa_fwd_asm")["Q"], q * factor)


@pytest.mark.parametrize("softmax", [(8, 0.0, None), (None, 30.0, None), (None, 0.0, torch.zeros(4))])
def test_a_decode_refuses_it_too(aiter: StandIn, kernels: Kernels, softmax: tuple[Any, ...]) -> None:
    step = make_step([5], [1], [[1]], 16, 1)
    step.plan = kernels["attention_plan"](step)
    cache = torch.zeros(kernels["kv_cache_shape"](2, 16, 1, 128), dtype=torch.bfloat16)
    q = torch.zeros(1, 4, 128, dtype=torch.bfloat16)
    with pytest.raises(ValueError, match=r"AITER's decode kernel for blocks of 16 has no"):
        kernels["attention_decode"](q, cache, None, step.plan, 0.1, *softmax)
    assert aiter.calls == []
