"""Attention the slow way, in float64: every sequence whole, no cache. The oracle of the paged kernels."""

from __future__ import annotations

import numpy as np
import torch

from atom.model_ops.step import StepInputs


def dense_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    scale: float,
    window: int | None = None,
    soft_cap: float = 0.0,
    sinks: torch.Tensor | None = None,
) -> torch.Tensor:
    """q [Tq, HQ, D] at the end of keys and values [L, HK, D], causal; returns [Tq, HQ * D] in float64."""
    num_queries, num_heads, _ = q.shape
    group = num_heads // k.shape[1]
    keys, values = (x.double().repeat_interleave(group, dim=1) for x in (k, v))
    scores = torch.einsum("qhd,khd->hqk", q.double(), keys) * scale
    if soft_cap:
        scores = soft_cap * (scores / soft_cap).tanh()
    positions = torch.arange(len(k) - num_queries, len(k))[:, None]
    hidden = torch.arange(len(k)) > positions
    if window is not None:
        hidden |= torch.arange(len(k)) <= positions - window
    exponents = scores.masked_fill(hidden, float("-inf")).exp()
    denominator = exponents.sum(-1, keepdim=True)
    if sinks is not None:
        denominator = denominator + sinks.double().exp().view(-1, 1, 1)
    weights = exponents / denominator
    return torch.einsum("hqk,khd->qhd", weights, values).flatten(1)


def make_step(
    context_lens: list[int], query_lens: list[int], tables: list[list[int]], block_size: int, num_decodes: int
) -> StepInputs:
    """A step over sequences whose block ids are given."""
    positions = [p for c, n in zip(context_lens, query_lens, strict=True) for p in range(c, c + n)]
    rows = [row for row, n in enumerate(query_lens) for _ in range(n)]
    slots = [tables[r][p // block_size] * block_size + p % block_size for r, p in zip(rows, positions, strict=True)]
    width = max(len(table) for table in tables)
    padded = [table + [0] * (width - len(table)) for table in tables]
    return StepInputs(
        token_ids=torch.zeros(len(positions), dtype=torch.int64),
        positions=torch.tensor(positions),
        slot_mapping=torch.tensor(slots),
        block_tables=torch.tensor(padded, dtype=torch.int32),
        context_lens=np.array(context_lens, dtype=np.int32),
        query_lens=np.array(query_lens, dtype=np.int32),
        num_decodes=num_decodes,
        num_decode_tokens=sum(query_lens[:num_decodes]),
        block_size=block_size,
    )
