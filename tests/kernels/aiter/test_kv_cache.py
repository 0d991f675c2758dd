"""The two layouts: what is written is read back, where the kernels look for it; norms and rotation on the way."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest
import torch

from atom.hf_config import RopeConfig
from atom.model_ops.kernels.select import Kernels, select_kernels
from atom.model_ops.rope import rope_table
from atom.model_ops.step import StepInputs
from tests.kernels.aiter.stand_in import StandIn, installed
from tests.kernels.dense import dense_attention, make_step

HQ, HK = 4, 2
FLOAT8 = {"gfx942": torch.float8_e4m3fnuz, "gfx950": torch.float8_e4m3fn}
# Head size, block size: the shuffled layout, the flash layout.
LAYOUTS = {"shuffled": (128, 16), "flash": (64, 32)}


def layout_module() -> ModuleType:
    """The wrappers' own, as the stand-in made it importable."""
    return importlib.import_module("atom.model_ops.kernels.aiter.layout")


def one_prefill(kernels: Kernels, block_size: int, length: int = 37) -> StepInputs:
    step = make_step([0], [length], [[3, 0, 2][: -(-length // block_size)]], block_size, 0)
    step.plan = kernels["attention_plan"](step)
    return step


def identity(positions: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return torch.cat((torch.ones(positions, 8), torch.zeros(positions, 8)), dim=-1).to(dtype)


def test_a_layout_is_chosen_by_block_and_head_size(kernels: Kernels) -> None:
    shape = kernels["kv_cache_shape"]
    assert shape(7, 16, HK, 128) == (2, 7, HK, 16 * 128)
    assert shape(7, 32, HK, 128) == (2, 7, 32, HK, 128)
    assert shape(7, 16, HK, 64) == (2, 7, 16, HK, 64)
    assert shape(7, 64, HK, 256) == (2, 7, 64, HK, 256)
    for block_size in (1, 8, 24, 128):
        with pytest.raises(ValueError, match=f"no block size {block_size}: give --block-size 16, 32 or 64"):
            shape(7, block_size, HK, 128)


@pytest.mark.parametrize("name", LAYOUTS)
def test_round_trip(kernels: Kernels, name: str) -> None:
    """Every token's key and value come back from its slot; nothing else of the cache changes."""
    head_dim, block_size = LAYOUTS[name]
    step = one_prefill(kernels, block_size)
    cache = torch.full(kernels["kv_cache_shape"](4, block_size, HK, head_dim), -7.0, dtype=torch.bfloat16)
    qkv = torch.randn(37, (HQ + 2 * HK) * head_dim, dtype=torch.bfloat16)
    _, k, v = kernels["qkv_rope_write"](qkv, None, 0.0, identity(64), cache, None, step.plan, HQ, HK)
    if name == "shuffled":
        keys, values = layout_module().read_shuffled(cache, step.slot_mapping)
    else:
        keys, values = (part.flatten(0, 1)[step.slot_mapping] for part in cache)
    assert torch.equal(keys, k)
    assert torch.equal(values, v)
    assert int((cache != -7.0).sum()) == 2 * k.numel()


def test_the_shuffled_layout_element_by_element(kernels: Kernels) -> None:
    """Where the kernel's source puts one element of a token: 8 values of bfloat16 are a run."""
    step = one_prefill(kernels, 16)
    cache = torch.zeros(kernels["kv_cache_shape"](4, 16, HK, 128), dtype=torch.bfloat16)
    qkv = torch.randn(37, (HQ + 2 * HK) * 128, dtype=torch.bfloat16)
    _, k, v = kernels["qkv_rope_write"](qkv, None, 0.0, identity(64), cache, None, step.plan, HQ, HK)
    keys, values = layout_module().shuffled_views(cache)
    assert keys.shape == (4, HK, 16, 16, 8)
    assert values.shape == (4, HK, 2, 128, 8)
    token, head, place = 21, 1, 77  # the second block, 0, its sixth token
    assert keys[0, head, place // 8, 5, place % 8] == k[token, head, place]
    assert values[0, head, 0, place, 5] == v[token, head, place]


def test_a_negative_slot_is_not_written(kernels: Kernels) -> None:
    step = one_prefill(kernels, 16, length=3)
    step.slot_mapping[1] = -1
    step.positions[1] = -1
    step.plan = kernels["attention_plan"](step)
    cache = torch.zeros(kernels["kv_cache_shape"](4, 16, HK, 128), dtype=torch.bfloat16)
    qkv = torch.randn(3, (HQ + 2 * HK) * 128, dtype=torch.bfloat16)
    kernels["qkv_rope_write"](qkv, None, 0.0, identity(8), cache, None, step.plan, HQ, HK)
    assert int(cache.count_nonzero()) == 2 * 2 * HK * 128


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("rotated", [0.5, 1.0])
def test_norms_and_rotation_are_the_references(kernels: Kernels, rotated: float, dtype: torch.dtype) -> None:
    """A table on a GPU is in float32."""
    torch.manual_seed(0)
    table = rope_table(RopeConfig(partial_rotary_factor=rotated), 128, 64).to(dtype)
    weight = torch.randn(HQ + HK, 128).to(torch.bfloat16)
    qkv = torch.randn(8, (HQ + 2 * HK) * 128).to(torch.bfloat16)
    found = []
    for backend in (kernels, select_kernels("cpu")):
        step = make_step([40, 3], [5, 3], [[3, 1, 2], [0]], 16, 0)
        step.plan = backend["attention_plan"](step)
        cache = torch.zeros(backend["kv_cache_shape"](4, 16, HK, 128), dtype=torch.bfloat16)
        found.append(backend["qkv_rope_write"](qkv.clone(), weight, 1e-5, table, cache, None, step.plan, HQ, HK))
    for ours, reference in zip(*found, strict=True):
        torch.testing.assert_close(ours, reference, atol=6e-2, rtol=2e-2)


@pytest.mark.parametrize("gfx", FLOAT8)
@pytest.mark.parametrize("name", LAYOUTS)
def test_fp8_caches_with_a_scale_for_each_head(gfx: str, name: str) -> None:
    """Prefill, then decode over it: as exact as fp8 is, and on gfx950 the reference's numbers."""
    head_dim, block_size = LAYOUTS[name]
    torch.manual_seed(0)
    scales = torch.tensor([[0.5, 2.0], [1.0, 0.25]])
    qkv = torch.randn(38, (HQ + 2 * HK) * head_dim).to(torch.bfloat16)
    with installed(gfx) as stand_in:
        found = _two_steps(select_kernels("rocm"), qkv, scales, FLOAT8[gfx], head_dim, block_size)
        assert ("aiter.pa_fwd_asm" in stand_in.names()) == (name == "shuffled")
    heads = qkv.view(38, -1, head_dim)
    q, k, v = heads.split((HQ, HK, HK), dim=1)
    assert (found.double() - dense_attention(q, k, v, 0.1)).abs().max() < 0.15
    if gfx == "gfx950":
        reference = _two_steps(select_kernels("cpu"), qkv, scales, FLOAT8[gfx], head_dim, block_size)
        torch.testing.assert_close(found, reference, atol=3e-2, rtol=2e-2)


def _two_steps(
    kernels: Kernels, qkv: torch.Tensor, scales: torch.Tensor, dtype: torch.dtype, head_dim: int, block_size: int
) -> torch.Tensor:
    """Attention of 37 tokens of a prompt, and of one more that decodes; its scale is not 1 / sqrt(D)."""
    cache = torch.zeros(kernels["kv_cache_shape"](4, block_size, HK, head_dim), dtype=dtype)
    outs = []
    for context, count in ((0, 37), (37, 1)):
        step = make_step([context], [count], [[3, 0, 2][: -(-38 // block_size)]], block_size, int(count == 1))
        step.plan = kernels["attention_plan"](step)
        part = qkv[context : context + count].clone()
        q, k, v = kernels["qkv_rope_write"](part, None, 0.0, identity(64), cache, scales, step.plan, HQ, HK)
        if count == 1:
            outs.append(kernels["attention_decode"](q, cache, scales, step.plan, 0.1, None, 0.0, None))
        else:
            outs.append(kernels["attention_prefill"](q, k, v, cache, scales, step.plan, 0.1, None, 0.0, None))
    return torch.cat(outs)


def test_what_is_too_large_for_fp8_is_the_largest_value(kernels: Kernels) -> None:
    step = one_prefill(kernels, 16, length=2)
    cache = torch.zeros(kernels["kv_cache_shape"](4, 16, HK, 128), dtype=torch.float8_e4m3fnuz)
    qkv = torch.full((2, (HQ + 2 * HK) * 128), 1e4, dtype=torch.bfloat16)
    kernels["qkv_rope_write"](qkv, None, 0.0, identity(8), cache, torch.ones(2, HK), step.plan, HQ, HK)
    assert float(cache.float().max()) == torch.finfo(torch.float8_e4m3fnuz).max


def test_the_other_fp8_is_refused(aiter: StandIn, kernels: Kernels) -> None:
    step = one_prefill(kernels, 16, length=2)
    cache = torch.zeros(kernels["kv_cache_shape"](4, 16, HK, 128), dtype=torch.float8_e4m3fn)
    qkv = torch.zeros((2, (HQ + 2 * HK) * 128), dtype=torch.bfloat16)
    with pytest.raises(ValueError, match=r"is float8_e4m3fn, and AITER reads float8_e4m3fnuz.*no --kv-cache-dtype fp8"):
        kernels["qkv_rope_write"](qkv, None, 0.0, identity(8), cache, torch.ones(2, HK), step.plan, HQ, HK)
    assert "aiter.reshape_and_cache" not in aiter.names()


def test_ones_that_a_captured_graph_reads_stay_whatever_other_engines_ask_for(aiter: StandIn) -> None:
    ones = importlib.import_module("atom.model_ops.kernels.aiter.ones").ones
    first = [ones(size, torch.float32, torch.device("cpu")) for size in range(1, 60)]
    again = [ones(size, torch.float32, torch.device("cpu")) for size in range(1, 60)]
    assert all(a is b for a, b in zip(first, again, strict=True))
