"""Attention through AITER's wrappers: the stand-in computes in AITER's layouts, the oracle over dense rows."""

from __future__ import annotations

import pytest
import torch

from atom.model_ops.kernels.select import Kernels
from tests.kernels.aiter.stand_in import StandIn
from tests.kernels.test_attention import Case, run

_ASSEMBLED = {"head_dim": 128, "block_size": 16}

# What the decode kernel of the shuffled layout can do, and everything else over the flash layout.
SHUFFLED = {
    "one decode": Case([9], [1], 1, **_ASSEMBLED),
    "decodes at block borders": Case([14, 15, 16, 17, 31, 0], [1] * 6, 6, **_ASSEMBLED),
    "fresh prompts": Case([0, 0, 0], [5, 1, 33], 0, **_ASSEMBLED),
    "a chunk after a context": Case([20, 0], [17, 3], 0, **_ASSEMBLED),
    "mixed": Case([30, 2, 18, 0], [1, 1, 6, 9], 2, **_ASSEMBLED),
    "decodes with drafts": Case([30, 2, 11], [3, 3, 6], 2, **_ASSEMBLED),
    "16 query heads a key head": Case([17, 5], [1, 8], 1, 16, 1, **_ASSEMBLED),
    "one query head a key head": Case([17, 5], [1, 8], 1, 3, 3, **_ASSEMBLED),
}
FLASH = {
    "blocks of 32": Case([40, 0], [1, 40], 1, head_dim=128, block_size=32),
    "head size 64": Case([30, 2, 18, 0], [1, 1, 6, 9], 2, head_dim=64, block_size=16),
    "head size 80": Case([30, 0], [1, 20], 1, head_dim=80, block_size=16),
    "head size 80 and many keys": Case([600, 3, 530], [1, 1, 4], 2, head_dim=80, block_size=16),
    "many keys": Case([600, 3, 530], [1, 1, 4], 2, head_dim=64, block_size=16),
    "drafts": Case([30, 2, 11], [3, 3, 6], 2, head_dim=64, block_size=16),
    "17 query heads a key head": Case([17, 5], [1, 8], 1, 17, 1, 64, 16),
    "a window": Case([40, 3, 12, 0], [1, 1, 6, 20], 2, head_dim=128, block_size=32, window=7),
    "a window of one key": Case([40, 0], [1, 20], 1, head_dim=64, block_size=16, window=1),
    "a soft cap": Case([40, 0], [1, 20], 1, head_dim=128, block_size=32, soft_cap=0.5),
    "sinks": Case([40, 0], [1, 20], 1, head_dim=64, block_size=16, has_sinks=True),
    "all of it": Case([40, 12, 0], [1, 6, 20], 1, 4, 2, 64, 16, window=9, soft_cap=2.0, has_sinks=True),
}


@pytest.mark.parametrize("name", SHUFFLED)
def test_the_shuffled_layout(aiter: StandIn, kernels: Kernels, name: str) -> None:
    assert {kernels.choice[op] for op in ("kv_cache_shape", "attention_plan", "attention_decode")} == {"aiter"}
    assert run(kernels, SHUFFLED[name], torch.bfloat16, poison=100.0) < 3e-2
    assert "aiter.reshape_and_cache" in aiter.names()
    assert ("aiter.pa_fwd_asm" in aiter.names()) == (SHUFFLED[name].num_decodes > 0)
    assert "aiter.ops.triton.unified_attention.unified_attention" not in aiter.names()


@pytest.mark.parametrize("name", FLASH)
def test_the_flash_layout(aiter: StandIn, kernels: Kernels, name: str) -> None:
    assert run(kernels, FLASH[name], torch.bfloat16, poison=100.0) < 3e-2
    assert "aiter.reshape_and_cache_flash" in aiter.names()
    assert "aiter.pa_fwd_asm" not in aiter.names()
