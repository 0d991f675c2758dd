"""Paged attention in plain torch: decode rows in padded groups, prefill rows one by one.

Query heads that share a key/value head are packed into the query axis, so that a group is one batched product.
scaled_dot_product_attention runs two products a row and head, one after the other, at 6 us: right for a few heads. For
more, one product over all of them wins (8 heads, 16 rows of 160 keys: 1.0 against 2.0 ms).
Caps and sinks are softmax.py's. Shapes: T tokens, HQ/HK heads, D head size, G rows of a group, L keys.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from atom.model_ops.kernels.reference.kv_cache import gather
from atom.model_ops.kernels.reference.plan import DecodeGroup, Plan, SequenceRow
from atom.model_ops.kernels.reference.softmax import Softmax, attend

_FEW_HEADS = 4


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
        rows = [_attend_cached(q, kv_cache, kv_scales, plan, row, softmax) for row in plan.several]
        return rows[0] if len(rows) == 1 else torch.cat(rows)
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
    rows = []
    for row in plan.prefills:
        if row.num_context:
            rows.append(_attend_cached(q, kv_cache, kv_scales, plan, row, softmax))
        else:
            rows.append(_attend_fresh(q, k, v, plan, row, softmax))
    return rows[0] if len(rows) == 1 else torch.cat(rows)


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
        return attend(q.unsqueeze(2), keys, values, mask, softmax).view(num_rows, -1)
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
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, plan: Plan, row: SequenceRow, softmax: Softmax
) -> torch.Tensor:
    """A row with nothing in the cache: its own keys and values are all there is. Returns [Tq, HQ * D]."""
    query, key, value = (x[row.start : row.end].transpose(0, 1).unsqueeze(0) for x in (q, k, v))
    scale, window = softmax.scale, softmax.window
    if softmax.is_plain and (window is None or window >= row.num_keys):
        out = F.scaled_dot_product_attention(query, key, value, is_causal=True, scale=scale, enable_gqa=True)
        return out[0].transpose(0, 1).flatten(1)
    return _attend_causally(query, key, value, plan, row, softmax)


def _attend_cached(
    q: torch.Tensor,
    kv_cache: torch.Tensor,
    kv_scales: torch.Tensor | None,
    plan: Plan,
    row: SequenceRow,
    softmax: Softmax,
) -> torch.Tensor:
    """A row whose earlier tokens, and by now its own, are in the cache. Returns [Tq, HQ * D]."""
    query = q[row.start : row.end]
    if kv_scales is not None:
        query = _by_head(query, kv_scales[0])
    keys, values = gather(kv_cache, row.block_ids, plan, q.dtype)
    keys, values = keys[:, :, : row.num_keys], values[:, :, : row.num_keys]
    out = _attend_causally(query.transpose(0, 1).unsqueeze(0), keys, values, plan, row, softmax)
    return out if kv_scales is None else _by_head(out.view(query.shape), kv_scales[1]).flatten(1)


def _by_head(x: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """x [S, HQ, D] times scales [HK]: cheaper on queries and outputs than on all keys and values."""
    return (x.unflatten(1, (len(scales), -1)) * scales.to(x.dtype).view(-1, 1, 1)).flatten(1, 2)


def _attend_causally(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, plan: Plan, row: SequenceRow, softmax: Softmax
) -> torch.Tensor:
    """query [1, HQ, Tq, D] at the end of keys and values [1, HK, L, D]. Returns [Tq, HQ * D]."""
    if softmax.is_plain:
        mask = plan.causal_mask(row, row.num_keys, softmax.window, query.dtype)
        out = F.scaled_dot_product_attention(query, keys, values, attn_mask=mask, scale=softmax.scale, enable_gqa=True)
    else:
        mask = plan.causal_mask(row, row.num_keys, softmax.window, torch.float32)
        out = attend(query, keys, values, mask.unsqueeze(0), softmax)
    return out[0].transpose(0, 1).flatten(1)
