"""Latent attention against what it stands for: whole keys and values of every head, in float64."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

from atom.model_ops.kernels.select import Kernels, select_kernels
from tests.kernels.dense import dense_attention, make_step


@dataclass
class Case:
    """Sequences whose earlier tokens are in the cache, then a step of which num_decodes rows are decodes."""

    context_lens: list[int]
    query_lens: list[int]
    num_decodes: int
    num_heads: int = 3
    rank: int = 24
    rotary: int = 8
    block_size: int = 4


NOPE, VALUE, EPS = 6, 5, 1e-6


def rotated(x: torch.Tensor, cos_sin: torch.Tensor) -> torch.Tensor:
    """x [L, H, R] at positions 0 to L - 1, pairs (i, i + R/2)."""
    cos, sin = (part[: len(x), None] for part in cos_sin.double().chunk(2, dim=1))
    first, second = x.chunk(2, dim=2)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=2)


def run(kernels: Kernels, case: Case, dtype: torch.dtype, poison: float = 100.0) -> float:
    """Largest difference between the decodes' attention and the oracle's, of values around 1."""
    torch.manual_seed(3)
    lens = [c + n for c, n in zip(case.context_lens, case.query_lens, strict=True)]
    counts = [-(-length // case.block_size) for length in lens]
    ids = iter(torch.randperm(sum(counts) + 2).tolist())
    tables = [[next(ids) for _ in range(count)] for count in counts]
    heads, width = case.num_heads, case.rank + case.rotary
    cache = torch.full(kernels["mla_cache_shape"](sum(counts) + 2, case.block_size, width), poison, dtype=dtype)
    angles = torch.rand(max(lens), case.rotary // 2) * 6
    cos_sin = torch.cat((angles.cos(), angles.sin()), dim=1).to(dtype)
    norm = (1 + 0.1 * torch.randn(case.rank)).to(dtype)
    keys_of, values_of = (torch.randn(heads, n, case.rank) * case.rank**-0.5 for n in (NOPE, VALUE))
    scale = (NOPE + case.rotary) ** -0.5
    whole = [(torch.randn(n, width).to(dtype), torch.randn(n, heads, NOPE + case.rotary).to(dtype)) for n in lens]

    def step(context: list[int], query: list[int], num_decodes: int) -> torch.Tensor:
        rows = [i for i, n in enumerate(query) if n]
        parts = ([x[i] for i in rows] for x in (context, query, tables))
        made = make_step(*parts, case.block_size, num_decodes)
        plan = kernels["mla_plan"](made)
        latents, q = (torch.cat([whole[i][k][context[i] : context[i] + query[i]] for i in rows]) for k in (0, 1))
        compressed, key = kernels["mla_rope_write"](q, latents, norm, EPS, cos_sin, cache, plan)
        assert compressed.shape == (len(q), case.rank) and key.shape == (len(q), case.rotary)
        written = cache.view(-1, width)[made.slot_mapping]
        assert torch.equal(written, torch.cat((compressed, key), dim=1))
        count = made.num_decode_tokens
        if not count:
            return q
        absorbed = torch.einsum("thn,hnc->thc", q[:count, :, :NOPE].float(), keys_of).to(dtype)
        absorbed = torch.cat((absorbed, q[:count, :, NOPE:]), dim=2)
        return kernels["mla_decode"](absorbed, cache, plan, scale, case.rank)

    if any(case.context_lens):
        step([0] * len(lens), case.context_lens, 0)
    found = step(case.context_lens, case.query_lens, case.num_decodes)
    assert found.dtype == dtype and found.shape[1:] == (heads, case.rank)
    found = torch.einsum("thc,hvc->thv", found.double(), values_of.double()).flatten(1)
    wanted = []
    for (latents, q), num_queries in list(zip(whole, case.query_lens, strict=True))[: case.num_decodes]:
        x = latents.double()[:, : case.rank]
        x = x * (x.pow(2).mean(1, keepdim=True) + EPS).rsqrt() * norm.double()
        shared = rotated(latents.double()[:, None, case.rank :], cos_sin).expand(-1, heads, -1)
        k = torch.cat((torch.einsum("hnc,lc->lhn", keys_of.double(), x), shared), dim=2)
        v = torch.einsum("hvc,lc->lhv", values_of.double(), x)
        query = torch.cat((q.double()[..., :NOPE], rotated(q.double()[..., NOPE:], cos_sin)), dim=2)
        wanted.append(dense_attention(query[-num_queries:], k, v, scale))
    return float((found - torch.cat(wanted)).abs().max())


CASES = {
    "one decode": Case([9], [1], 1),
    "the first token": Case([0], [1], 1),
    "decodes at block borders": Case([3, 4, 5, 0], [1, 1, 1, 1], 4),
    "decodes of very different length": Case([90, 3, 1, 7, 60, 2], [1] * 6, 6),
    "decodes and prompts": Case([30, 2, 11, 0], [1, 1, 6, 9], 2),
    "drafts": Case([30, 2, 11], [3, 3, 6], 2),
    "blocks of one": Case([5, 0], [1, 4], 1, block_size=1),
    "one head": Case([17, 5], [1, 8], 1, num_heads=1),
}


@pytest.mark.parametrize("name", CASES)
def test_the_absorbed_form_is_attention(name: str) -> None:
    kernels = select_kernels("cpu")
    assert run(kernels, CASES[name], torch.float32) < 1e-5
    assert run(kernels, CASES[name], torch.bfloat16) < 5e-2


def test_a_step_of_prompts_is_written() -> None:
    kernels = select_kernels("cpu")
    step = make_step([0, 0], [3, 2], [[1], [0]], 4, 0)
    cache = torch.zeros(kernels["mla_cache_shape"](2, 4, 6))
    q, latents = torch.randn(5, 2, 4), torch.randn(5, 6)
    before, cos_sin = q.clone(), torch.tensor([[0.0, 1.0]] * 3)
    kernels["mla_rope_write"](q, latents, torch.ones(4), EPS, cos_sin, cache, kernels["mla_plan"](step))
    assert torch.equal(cache[1, :3], latents[:3]) and torch.equal(cache[0, :2], latents[3:])
    assert not cache[1, 3:].any() and not cache[0, 2:].any()
    assert torch.equal(q[..., :2], before[..., :2]), "only the last R are rotated"
    assert torch.equal(q[..., 2:], torch.stack((-before[..., 3], before[..., 2]), dim=2))
