"""Paged attention in plain torch: decode rows in padded groups, prefill rows one by one.

Query heads that share a key/value head are packed into the query axis, so that a group is one batched product.
scaled_dot_product_attention runs two products a row and head, one after the other, at 6 us: right for a few heads. For
more, one product over all of them wins (8 heads, 16 rows of 160 keys: 1.0 against 2.0 ms). In prompts its products are
of 32 queries each, and bf16 scores that it wants in float32 come from slow ones: widening the keys once and taking 64
queries of all heads at a time wins (16 heads, one thread: 127 tokens 1.3 against 2.5 ms, 512 14 against 28, 4096 886
against 1,032).
Caps and sinks are softmax.py's. Shapes: T tokens, HQ/HK heads, D head size, G rows of a group, L keys.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from atom.model_ops.kernels.reference.kv_cache import gather
from atom.model_ops.kernels.reference.plan import DecodeGroup, Plan, SequenceRow
from atom.model_ops.kernels.reference.softmax import Softmax, attend, weigh

_FEW_HEADS = 4
# Queries of a prompt that are attended at once.
_QUERIES = 64


def attention_decode(
    q: torch.Tensor,
    kv_cache: torch.Tensor,
    kv_scales: torch.Tensor | None,
    plan: Plan,
    scale: float,
    window: int | None,
    soft_cap: float,
    sinks: torch.Tensor | None,
) -> torch.Tensor:
    """q [Td, HQ, D] over each row's cached keys, its own token's among them; returns [Td, HQ * D]."""
    softmax = Softmax(scale, window, soft_cap, sinks)
    if plan.several:
        out = q.new_empty(q.shape)
        for row in plan.several:
            _attend_cached(q, kv_cache, kv_scales, plan, row, softmax, out)
        return out.flatten(1)
    first = plan.single[0]
    if first.rows is None:
        return _attend_group(q, kv_cache, kv_scales, plan, first, softmax)
    out = q.new_empty(q.shape[0], q.shape[1] * q.shape[2])
    for group in plan.single:
        out[group.rows] = _attend_group(q[group.rows], kv_cache, kv_scales, plan, group, softmax)
    return out


def attention_prefill(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    kv_cache: torch.Tensor,
    kv_scales: torch.Tensor | None,
    plan: Plan,
    scale: float,
    window: int | None,
    soft_cap: float,
    sinks: torch.Tensor | None,
) -> torch.Tensor:
    """q [Tp, HQ, D], k and v [Tp, HK, D] of the prefill rows; returns [Tp, HQ * D]."""
    softmax = Softmax(scale, window, soft_cap, sinks)
    out = q.new_empty(q.shape)
    for row in plan.prefills:
        if row.num_context:
            _attend_cached(q, kv_cache, kv_scales, plan, row, softmax, out)
        else:
            _attend_fresh(q, k, v, plan, row, softmax, out)
    return out.flatten(1)


def _attend_group(
    q: torch.Tensor,
    kv_cache: torch.Tensor,
    kv_scales: torch.Tensor | None,
    plan: Plan,
    group: DecodeGroup,
    softmax: Softmax,
) -> torch.Tensor:
    """q [G, HQ, D] to [G, HQ * D].

    Which way is taken depends on the model alone and never on the batch, so that a row's result does not either.
    """
    num_rows, num_kv_heads = q.shape[0], kv_cache.shape[2]
    if kv_scales is not None:
        plain = _attend_group(_by_head(q, kv_scales[0]), kv_cache, None, plan, group, softmax)
        return _by_head(plain.view(q.shape), kv_scales[1]).flatten(1)
    keys, values = gather(kv_cache, group.block_ids, plan, q.dtype)
    scale, window = softmax.scale, softmax.window
    if not softmax.is_plain:
        mask = plan.decode_mask(group, 1, window, torch.float32)
        return attend(q, keys, values, mask, softmax).view(num_rows, -1)
    if num_kv_heads <= _FEW_HEADS:
        packed = q.view(num_rows, num_kv_heads, -1, q.shape[2])
        mask = plan.decode_mask(group, 1, window, q.dtype).unsqueeze(1)
        out = F.scaled_dot_product_attention(packed, keys, values, attn_mask=mask, scale=scale)
        return out.reshape(num_rows, -1)
    mask = plan.decode_mask(group, num_kv_heads, window, q.dtype)
    packed = q.reshape(num_rows * num_kv_heads, -1, q.shape[2])
    return _batched_product(packed, keys.flatten(0, 1), values.flatten(0, 1), mask, scale, window).view(num_rows, -1)


def _batched_product(
    q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: torch.Tensor, scale: float, window: int | None
) -> torch.Tensor:
    """q [G * HK, HQ / HK, D] over keys and values [G * HK, L, D] with an additive mask [G * HK, 1, L]; like q."""
    if q.dtype != torch.float32 and window is None:
        # The product rounds scores to 16 bits. Softmax does not see a shift, so the score of the first key, which is
        # often the largest by far, is taken off before the rounding: what weighs is then nearer to zero, so more exact.
        mask = torch.sub(mask, (q * keys[:, :1]).sum(-1, keepdim=True), alpha=scale)
    weights = torch.softmax(torch.baddbmm(mask, q, keys.transpose(1, 2), alpha=scale), dim=-1)
    return torch.bmm(weights, values)


def weighted_values(weights: torch.Tensor, kv_cache: torch.Tensor, plan: Plan, group: DecodeGroup) -> torch.Tensor:
    """weights [G, HQ, L] over the group's cached values, [G, HQ * D].

    A bag of embeddings is a weighted sum of rows of a table that need not lie together: values are not gathered first.
    """
    num_rows, num_heads, _ = weights.shape
    rows, starts = plan.value_rows(group.block_ids, kv_cache.shape[2], num_heads)
    table = kv_cache.view(-1, kv_cache.shape[4])
    # The last argument is an index to skip; -1 would be the cache's last row.
    found = torch.embedding_bag(table, rows, starts, False, 0, False, weights.view(-1), False, None)[0]
    return found.view(num_rows, -1)


def _attend_fresh(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    plan: Plan,
    row: SequenceRow,
    softmax: Softmax,
    out: torch.Tensor,
) -> None:
    """A row with nothing in the cache: its own keys and values are all there is. Its part of out is written."""
    query, key, value, its_out = (x[row.start : row.end] for x in (q, k, v, out))
    _attend_causally(query, key.transpose(0, 1), value.transpose(0, 1), plan, softmax, its_out)


def _attend_cached(
    q: torch.Tensor,
    kv_cache: torch.Tensor,
    kv_scales: torch.Tensor | None,
    plan: Plan,
    row: SequenceRow,
    softmax: Softmax,
    out: torch.Tensor,
) -> None:
    """A row whose earlier tokens, and by now its own, are in the cache. Its part of out [T, HQ, D] is written."""
    query, its_out = q[row.start : row.end], out[row.start : row.end]
    if kv_scales is not None:
        query = _by_head(query, kv_scales[0])
    keys, values = (x[0, :, : row.num_keys] for x in gather(kv_cache, row.block_ids, plan, q.dtype))
    _attend_causally(query, keys, values, plan, softmax, its_out)
    if kv_scales is not None:
        its_out.copy_(_by_head(its_out, kv_scales[1]))


def _by_head(x: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """x [S, HQ, D] times scales [HK]: cheaper on queries and outputs than on all keys and values."""
    return (x.unflatten(1, (len(scales), -1)) * scales.to(x.dtype).view(-1, 1, 1)).flatten(1, 2)


def _attend_causally(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, plan: Plan, softmax: Softmax, out: torch.Tensor
) -> None:
    """query [Tq, HQ, D], the last tokens of keys and values [HK, L, D], to out, which is like query.

    Some queries at a time, over the keys that any of them sees. Query heads of a key head lie side by side in a token,
    and so they do as rows of a product: what is copied in and out of it comes in longer runs than heads one by one.
    """
    num_kv_heads, num_keys, head_dim = keys.shape
    num_queries, num_heads, _ = query.shape
    group = num_heads // num_kv_heads
    layout = torch.contiguous_format
    keys = keys.to(torch.float32, copy=True, memory_format=layout).mul_(softmax.scale)
    values = values.contiguous()
    query, out = (x.view(num_queries, num_kv_heads, group, head_dim).transpose(0, 1) for x in (query, out))
    for start in range(0, num_queries, _QUERIES):
        some = query[:, start : start + _QUERIES]
        number = some.shape[1]
        last = num_keys - num_queries + start + number
        first = 0 if softmax.window is None else max(0, last - number + 1 - softmax.window)
        num_before = 0 if softmax.window is None else last - number - first
        mask = plan.causal_mask(number, num_before, softmax.window, group)
        rows = some.to(torch.float32, memory_format=layout).reshape(num_kv_heads, -1, head_dim)
        logits = torch.bmm(rows, keys[:, first:last].transpose(1, 2))
        attended = torch.bmm(weigh(logits, mask, softmax).to(values.dtype), values[:, first:last])
        out[:, start : start + _QUERIES] = attended.view(some.shape)
