"""Batched greedy generation with a static key/value cache, for evaluation.

Owns: prefill and decode of right-padded batches. Does not know: what is generated, or scores.
Legend: B sequences, T prompt positions, K key heads, E head size.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from tools.builtin_model.model import Block, TinyModel, rms_norm


@torch.no_grad()
def generate(
    model: TinyModel, prompts: Sequence[Sequence[int]], end_ids: Sequence[int], max_new_tokens: int
) -> list[list[int]]:
    """The greedy continuation of each prompt, its end token included; cut at `max_new_tokens`."""
    device, dtype = model.embedding.weight.device, model.embedding.weight.dtype
    shape, batch, longest = model.shape, len(prompts), max(map(len, prompts))
    ids = torch.zeros(batch, longest, dtype=torch.long)
    for row, prompt in enumerate(prompts):
        ids[row, : len(prompt)] = torch.tensor(prompt)
    ids = ids.to(device)
    lengths = torch.tensor([len(prompt) for prompt in prompts], device=device)
    size = (batch, shape.kv_heads, longest + max_new_tokens, shape.head_dim)
    keys = [torch.zeros(size, device=device, dtype=dtype) for _ in model.blocks]
    values = [torch.zeros_like(key) for key in keys]
    x = _prefill(model, ids, keys, values)
    tokens = _argmax(model, x[torch.arange(batch, device=device), lengths - 1])
    output = torch.zeros(batch, max_new_tokens, dtype=torch.long, device=device)
    output[:, 0] = tokens
    ends = torch.tensor(list(end_ids), device=device)
    done = torch.isin(tokens, ends)
    for step in range(1, max_new_tokens):
        if step % 8 == 0 and bool(done.all()):
            break
        tokens = _decode(model, tokens, lengths + step - 1, longest + step, keys, values)
        output[:, step] = tokens
        done |= torch.isin(tokens, ends)
    return [_cut(row, set(end_ids)) for row in output.tolist()]


def _cut(row: list[int], ends: set[int]) -> list[int]:
    for index, token in enumerate(row):
        if token in ends:
            return row[: index + 1]
    return row


def _argmax(model: TinyModel, x: Tensor) -> Tensor:
    return F.linear(rms_norm(x, model.norm, model.shape.eps), model.embedding.weight).argmax(-1)


def _prefill(model: TinyModel, ids: Tensor, keys: list[Tensor], values: list[Tensor]) -> Tensor:
    """Fills the cache; padding stands behind the prompts, so a plain causal mask is right. Returns [B, T, D]."""
    longest = ids.shape[1]
    repeat = model.shape.heads // model.shape.kv_heads
    x = model.embedding(ids)
    cos, sin = model.cos[:longest][None, :, None].to(x.dtype), model.sin[:longest][None, :, None].to(x.dtype)
    for block, key, value in zip(model.blocks, keys, values, strict=True):
        assert isinstance(block, Block)
        q, k, v = (part.transpose(1, 2) for part in block.qkv(x, cos, sin))
        key[:, :, :longest], value[:, :, :longest] = k, v
        y = F.scaled_dot_product_attention(
            q, k.repeat_interleave(repeat, 1), v.repeat_interleave(repeat, 1), is_causal=True
        )
        x = block.mlp(x + block.o(y.transpose(1, 2).flatten(-2)))
    return x


def _decode(
    model: TinyModel, tokens: Tensor, positions: Tensor, end: int, keys: list[Tensor], values: list[Tensor]
) -> Tensor:
    """One token for each sequence; `positions` [B] are theirs, `end` bounds the cache in use."""
    shape, batch = model.shape, tokens.shape[0]
    rows = torch.arange(batch, device=tokens.device)
    x = model.embedding(tokens)
    cos, sin = model.cos[positions][:, None].to(x.dtype), model.sin[positions][:, None].to(x.dtype)
    hidden = torch.arange(end, device=tokens.device) > positions[:, None]
    bias = torch.zeros(batch, 1, 1, end, device=tokens.device, dtype=x.dtype).masked_fill_(
        hidden[:, None, None], -30000.0
    )
    for block, key, value in zip(model.blocks, keys, values, strict=True):
        assert isinstance(block, Block)
        q, k, v = block.qkv(x, cos, sin)
        key[rows, :, positions], value[rows, :, positions] = k, v
        q = q.view(batch, shape.kv_heads, shape.heads // shape.kv_heads, shape.head_dim)
        scores = q @ key[:, :, :end].transpose(-1, -2) * shape.head_dim**-0.5 + bias
        y = scores.float().softmax(-1).to(x.dtype) @ value[:, :, :end]
        x = block.mlp(x + block.o(y.reshape(batch, -1)))
    return _argmax(model, x)
