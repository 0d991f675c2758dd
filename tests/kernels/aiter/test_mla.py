"""Latent attention through AITER's wrappers, against the same oracle as the reference; what is refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from atom.model_ops.kernels.select import Kernels
from tests.kernels.aiter.stand_in import StandIn
from tests.kernels.dense import make_step
from tests.kernels.test_mla import Case, run

SIZES: dict[str, Any] = {"rank": 512, "rotary": 64, "block_size": 16}
CASES = {
    "decodes at block borders": (Case([14, 15, 16, 17, 0], [1] * 5, 5, 16, **SIZES), 16),
    "decodes and prompts": (Case([30, 2, 18, 0], [1, 1, 6, 9], 2, 3, **SIZES), 16),
    "drafts": (Case([30, 2, 11], [3, 2, 6], 2, 16, **SIZES), 16),
    "blocks of one": (Case([5, 0], [1, 4], 1, 16, rank=512, rotary=64, block_size=1), 16),
    "17 heads": (Case([20], [1], 1, 17, **SIZES), 128),
    "128 heads": (Case([20, 3], [1, 1], 2, 128, **SIZES), 128),
}


@pytest.mark.parametrize("name", CASES)
def test_the_definitions_numbers(aiter: StandIn, kernels: Kernels, name: str) -> None:
    case, heads = CASES[name]
    assert run(kernels, case, torch.bfloat16) < 5e-2
    called = aiter.last("aiter.mla.mla_decode_fwd")
    assert called["q"].shape == (sum(case.query_lens[: case.num_decodes]), heads, 576)
    assert "aiter.concat_and_cache_mla" in aiter.names()


def test_where_keys_lie_is_worked_out_on_the_device_and_pads(kernels: Kernels) -> None:
    """A row of padding has position -1; the kernel is given one key of it. The host's lengths are not looked at."""
    step = make_step([5, 2, 3], [1, 1, 1], [[2, 1], [3], [0]], 4, 3)
    step.positions[2], step.slot_mapping[2] = -1, -1
    step.context_lens[:] = 0
    found = kernels["mla_plan"](step).decode_slots()
    assert found.bounds.tolist() == [0, 6, 9, 10]
    assert found.slots[:10].tolist() == [8, 9, 10, 11, 4, 5, 12, 13, 14, 0]
    assert found.slots[10:].tolist() == [0] * 14, "no row wrote behind its end"
    assert found.bounds.dtype == found.slots.dtype == found.page_lens.dtype == torch.int32


def test_a_cache_of_another_width_is_refused(kernels: Kernels) -> None:
    with pytest.raises(ValueError, match="no latent attention over 320 values a token: give ATOM_KERNELS=mla_decode="):
        kernels["mla_cache_shape"](4, 16, 320)


@pytest.mark.parametrize(
    ("dtype", "num_heads", "rank", "said"),
    [
        (torch.float16, 16, 512, "of float16 over a cache in float16"),
        (torch.bfloat16, 129, 512, "of 129 heads"),
        (torch.bfloat16, 16, 448, "with 448 compressed values a token"),
    ],
)
def test_the_first_step_refuses_what_the_decodes_after_it_could_not_do(
    aiter: StandIn, kernels: Kernels, dtype: torch.dtype, num_heads: int, rank: int, said: str
) -> None:
    step = make_step([0], [2], [[0]], 16, 0)
    q, latents = torch.zeros(2, num_heads, 192, dtype=dtype), torch.zeros(2, 576, dtype=dtype)
    cache = torch.zeros(1, 16, 576, dtype=dtype)
    cos_sin = torch.zeros(2, 576 - rank, dtype=dtype)
    norm = torch.ones(rank, dtype=dtype)
    with pytest.raises(ValueError, match=f"no latent attention {said}: give ATOM_KERNELS=mla_decode=reference"):
        kernels["mla_rope_write"](q, latents, norm, 1e-6, cos_sin, cache, kernels["mla_plan"](step))
    assert aiter.calls == []


def test_a_graph_is_refused(aiter: StandIn, kernels: Kernels, monkeypatch: pytest.MonkeyPatch) -> None:
    step = make_step([3], [1], [[0]], 16, 1)
    cache = torch.zeros(1, 16, 576, dtype=torch.bfloat16)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    with pytest.raises(ValueError, match="no latent attention in a captured graph: give --enforce-eager"):
        kernels["mla_decode"](cache[:, 0].expand(1, 16, -1), cache, kernels["mla_plan"](step), 0.1, 512)
    assert aiter.calls == []
