"""Paged attention of every backend that runs here against dense attention in float64."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

from atom.hf_config import RopeConfig
from atom.model_engine.kv_cache import lazy_zeros
from atom.model_ops.float8 import to_float8
from atom.model_ops.kernels.select import Kernels, select_kernels
from atom.model_ops.rope import rope_table
from tests.kernels.dense import dense_attention, make_step

FLOAT8 = torch.float8_e4m3fn


@dataclass
class Case:
    """Sequences whose earlier tokens come first, then a step over the rest."""

    context_lens: list[int]
    query_lens: list[int]
    num_decodes: int
    num_heads: int = 4
    num_kv_heads: int = 2
    head_dim: int = 16
    block_size: int = 4
    window: int | None = None
    first_block: int = 0
    soft_cap: float = 0.0
    has_sinks: bool = False
    is_fp8: bool = False


def run(kernels: Kernels, case: Case, dtype: torch.dtype = torch.float32, poison: float = 3e4) -> float:
    """Largest difference between a step's attention and the oracle; an earlier step computed the context."""
    torch.manual_seed(1)
    lens = [c + n for c, n in zip(case.context_lens, case.query_lens, strict=True)]
    counts = [-(-length // case.block_size) for length in lens]
    num_blocks = case.first_block + sum(counts) + 2
    ids = iter((torch.randperm(num_blocks - case.first_block) + case.first_block).tolist())
    tables = [[next(ids) for _ in range(count)] for count in counts]
    shape = kernels["kv_cache_shape"](num_blocks, case.block_size, case.num_kv_heads, case.head_dim)
    # Stale values of other sequences: finite, and far from anything right.
    cache = lazy_zeros(shape, FLOAT8 if case.is_fp8 else dtype, torch.device("cpu"))
    if not case.first_block:
        cache.fill_(min(poison, 448.0) if case.is_fp8 else poison)
    scales = torch.linspace(0.3, 3.0, 2 * case.num_kv_heads).view(2, -1) if case.is_fp8 else None
    width = (case.num_heads + 2 * case.num_kv_heads) * case.head_dim
    whole = [torch.randn(length, width, dtype=dtype) for length in lens]
    cos_sin = torch.cat((torch.ones(max(lens), 8), torch.zeros(max(lens), 8)), dim=-1).to(dtype)
    scale = case.head_dim**-0.5
    sinks = torch.linspace(-2, 4, case.num_heads) if case.has_sinks else None
    softmax = (scale, case.window, case.soft_cap, sinks)

    def step(context: list[int], query: list[int], num_decodes: int) -> torch.Tensor:
        rows = [i for i, n in enumerate(query) if n]
        made = make_step(
            [context[i] for i in rows],
            [query[i] for i in rows],
            [tables[i] for i in rows],
            case.block_size,
            num_decodes,
        )
        made.plan = kernels["attention_plan"](made)
        qkv = torch.cat([whole[i][context[i] : context[i] + query[i]] for i in rows])
        q, k, v = kernels["qkv_rope_write"](
            qkv.clone(), None, 0.0, cos_sin, cache, scales, made.plan, case.num_heads, case.num_kv_heads
        )
        first = made.num_decode_tokens
        parts = []
        if first:
            parts.append(kernels["attention_decode"](q[:first], cache, scales, made.plan, *softmax))
        if first < len(q):
            rest = (q[first:], k[first:], v[first:])
            parts.append(kernels["attention_prefill"](*rest, cache, scales, made.plan, *softmax))
        return torch.cat(parts)

    if any(case.context_lens):
        step([0] * len(lens), case.context_lens, 0)
    found = step(case.context_lens, case.query_lens, case.num_decodes)
    wanted = []
    for tokens, num_queries in zip(whole, case.query_lens, strict=True):
        heads = tokens.view(len(tokens), -1, case.head_dim)
        q, kept = heads.split((case.num_heads, 2 * case.num_kv_heads), dim=1)
        if scales is not None:
            kept = to_float8(kept.float() / scales.view(-1, 1), FLOAT8).double() * scales.view(-1, 1)
        k, v = kept.chunk(2, dim=1)
        wanted.append(dense_attention(q[-num_queries:], k, v, *softmax))
    return float((found.double() - torch.cat(wanted)).abs().max())


CASES = {
    "one decode": Case([9], [1], 1),
    "decodes of equal length": Case([8, 8, 8], [1, 1, 1], 3),
    "decodes at block borders": Case([3, 4, 5, 0], [1, 1, 1, 1], 4),
    "decodes of very different length": Case([200, 3, 1, 7, 60, 2, 150], [1] * 7, 7),
    "fresh prompts": Case([0, 0, 0], [5, 1, 13], 0),
    "a chunk after a context": Case([6, 0], [7, 3], 0),
    "mixed": Case([30, 2, 11, 0], [1, 1, 6, 9], 2),
    "decodes with drafts": Case([30, 2, 11], [3, 3, 6], 2),
    "multi-query": Case([17, 5], [1, 8], 1, num_heads=8, num_kv_heads=1),
    "one query head a key head": Case([17, 5], [1, 8], 1, num_heads=3, num_kv_heads=3),
    "many heads": Case([30, 2, 200, 11, 0], [1, 1, 1, 6, 9], 3, num_heads=16, num_kv_heads=8),
    "many heads and a window": Case([40, 3, 12, 0], [1, 1, 6, 20], 2, num_heads=16, num_kv_heads=8, window=7),
    "a window": Case([40, 3, 12, 0], [1, 1, 6, 20], 2, window=7),
    "block size 1": Case([5, 0], [1, 4], 1, block_size=1),
    "block size 64": Case([70, 0], [1, 90], 1, block_size=64),
    "head size 80": Case([9, 4], [1, 3], 1, head_dim=80),
    "a cap": Case([30, 2, 11, 0], [1, 1, 6, 9], 2, soft_cap=0.5),
    "sinks": Case([30, 2, 11, 0], [1, 1, 6, 9], 2, has_sinks=True),
    "a cap, sinks and a window": Case([40, 3, 12, 0], [1, 1, 6, 20], 2, window=7, soft_cap=2.0, has_sinks=True),
    "fp8": Case([30, 2, 11, 0], [1, 1, 6, 9], 2, is_fp8=True),
    "fp8, lengths apart, many heads": Case([200, 3, 90, 0], [1, 1, 1, 8], 3, 16, 8, head_dim=32, is_fp8=True),
    "fp8, drafts, window, cap, sinks": Case(
        [30, 2, 11], [3, 3, 6], 2, window=9, soft_cap=2.0, has_sinks=True, is_fp8=True
    ),
    "sinks and drafts": Case([30, 2, 11], [3, 3, 6], 2, num_heads=16, num_kv_heads=1, has_sinks=True),
    "a cap, many heads, lengths apart": Case([200, 3, 90, 0], [1, 1, 1, 8], 3, 16, 8, head_dim=32, soft_cap=1.0),
}


@pytest.mark.parametrize("name", CASES)
def test_matches_dense_attention(name: str) -> None:
    kernels = select_kernels("cpu")
    assert run(kernels, CASES[name]) < 2e-5
    assert run(kernels, CASES[name], torch.bfloat16, poison=100.0) < 3e-2


@pytest.mark.parametrize(
    ("num_kv_heads", "dtype", "tolerance"),
    [(2, torch.float32, 1e-6), (8, torch.float32, 1e-6), (2, torch.bfloat16, 1e-2), (8, torch.bfloat16, 1e-2)],
)
def test_a_decode_does_not_depend_on_its_company(num_kv_heads: int, dtype: torch.dtype, tolerance: float) -> None:
    """Alone, among others, and padded for a longer one: up to the last bit."""
    kernels = select_kernels("cpu")
    torch.manual_seed(2)
    tables = [[3, 1], [7, 4, 0, 9, 8], [2]]
    lens = [6, 18, 3]
    cache = torch.randn(kernels["kv_cache_shape"](10, 4, num_kv_heads, 16)).to(dtype)
    q = torch.randn(3, 16, 16).to(dtype)

    def attend(rows: list[int]) -> torch.Tensor:
        step = make_step([lens[row] - 1 for row in rows], [1] * len(rows), [tables[row] for row in rows], 4, len(rows))
        return kernels["attention_decode"](q[rows], cache, None, kernels["attention_plan"](step), 0.25, None, 0.0, None)

    together = attend([0, 1, 2])
    for row in range(3):
        assert (attend([row])[0] - together[row]).abs().max() <= tolerance
    assert (attend([2, 0])[1] - together[0]).abs().max() <= tolerance


@pytest.mark.parametrize("length", [2047, 2048, 2049, 8192])
def test_long_contexts(length: int) -> None:
    case = Case([length - 1, 3], [1, 1], 2, num_heads=2, num_kv_heads=1, head_dim=16, block_size=16)
    assert run(select_kernels("cpu"), case) < 2e-5


@pytest.mark.parametrize("first_block", [65_534, 70_000])  # the second puts offsets beyond 2^31
def test_high_block_ids(first_block: int) -> None:
    """Ids beyond 16 bits, and offsets beyond 31: the pool is mostly untouched memory."""
    case = Case([40, 21, 0], [1, 1, 30], 2, num_kv_heads=2, head_dim=256, block_size=32, first_block=first_block)
    assert run(select_kernels("cpu"), case) < 2e-5


def test_head_norms_and_rotation() -> None:
    """q and k are normed by head, then rotated by halves; v passes; the cache holds the same k and v."""
    kernels = select_kernels("cpu")
    torch.manual_seed(0)
    num_heads, num_kv_heads, head_dim, eps = 4, 2, 16, 1e-5
    step = make_step([5, 0], [1, 3], [[3, 1], [2]], 4, 1)
    step.plan = kernels["attention_plan"](step)
    table = rope_table(RopeConfig(partial_rotary_factor=0.5), head_dim, 8)
    weight = torch.randn(num_heads + num_kv_heads, head_dim)
    qkv = torch.randn(4, (num_heads + 2 * num_kv_heads) * head_dim)
    cache = torch.zeros(kernels["kv_cache_shape"](4, 4, num_kv_heads, head_dim))
    q, k, v = kernels["qkv_rope_write"](
        qkv.clone(), weight, eps, table, cache, None, step.plan, num_heads, num_kv_heads
    )
    heads = qkv.view(4, -1, head_dim).double()
    normed = heads[:, :6] / (heads[:, :6].pow(2).mean(-1, keepdim=True) + eps).sqrt() * weight.double()
    cos, sin = table[step.positions].double().unsqueeze(1).chunk(2, dim=-1)
    first, second, rest = normed[..., :4], normed[..., 4:8], normed[..., 8:]
    wanted = torch.cat((first * cos - second * sin, second * cos + first * sin, rest), dim=-1)
    assert torch.allclose(torch.cat((q, k), dim=1).double(), wanted, atol=1e-6)
    assert torch.equal(v, qkv.view(4, -1, head_dim)[:, 6:])
    assert torch.equal(cache[1, 0, :, 1], k[0])
    assert torch.equal(cache[2, 1, :, :3].transpose(0, 1), v[1:])
    assert cache.count_nonzero() == 2 * k.numel()


def test_an_fp8_cache_holds_what_a_prompt_attends() -> None:
    """Within fp8's step of the values, by each head's scale; and k and v come back as the cache has them."""
    kernels = select_kernels("cpu")
    torch.manual_seed(0)
    step = make_step([0], [6], [[0, 1]], 4, 0)
    step.plan = kernels["attention_plan"](step)
    cos_sin = torch.cat((torch.ones(8, 8), torch.zeros(8, 8)), dim=-1)
    scales = torch.tensor([[0.5, 2.0], [1.0, 0.3]])
    cache = torch.zeros(kernels["kv_cache_shape"](2, 4, 2, 16), dtype=FLOAT8)
    qkv = torch.randn(6, 8 * 16)
    qkv[2, -1] = 1e4
    _, k, v = kernels["qkv_rope_write"](qkv.clone(), None, 0.0, cos_sin, cache, scales, step.plan, 4, 2)
    held = cache.float().permute(0, 3, 1, 2, 4).flatten(0, 1)[:6] * scales.unsqueeze(-1)
    assert torch.equal(held, torch.stack((k, v), dim=1))
    raw = qkv.view(6, 8, 16)[:, 4:].unflatten(1, (2, 2))
    assert held[2, 1, 1, -1] == pytest.approx(448 * 0.3)
    raw[2, 1, 1, -1] = 448 * 0.3
    assert ((held - raw).abs() <= raw.abs() / 16 + scales.unsqueeze(-1) / 1024).all()
