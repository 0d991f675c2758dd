"""From logits to tokens in plain torch.

A row's token depends on its own logits, parameters and uniform only: the cumulative distribution runs in vocabulary
order and filters are thresholds on the logits, so that neither the batch nor a sort's treatment of ties can change it.
"""

from __future__ import annotations

import numpy as np
import torch

# A full sort of the vocabulary costs more than the model's step on a CPU; the nucleus is nearly always this small.
_HEAD = 1024

# What the eight bits of a byte, lowest first, add to the logits of their tokens: [256, 8].
_ADDED = torch.where((torch.arange(256).unsqueeze(1) >> torch.arange(8)) & 1 == 0, -torch.inf, 0.0)
# The same as one item a byte, which numpy copies faster than torch does rows (16 rows of 150,000: 0.8 against 10 ms).
_ITEMS = {
    dtype: _ADDED.to(dtype).view(torch.uint8).numpy().view(np.dtype((np.void, 8 * dtype.itemsize))).ravel()
    for dtype in (torch.bfloat16, torch.float32)
}


def mask_logits(logits: torch.Tensor, rows: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
    """Of `rows` [M] of logits [B, V], in place: -inf where masks [M, ceil(V/32)] int32 have a 0."""
    size = logits.shape[1]
    if logits.device.type != "cpu":
        added = _ADDED.to(logits)[masks.view(torch.uint8).to(torch.int64)].flatten(1)
        return logits.index_add_(0, rows, added[:, :size])
    items = _ITEMS[logits.dtype].take(masks.numpy().view(np.uint8))
    added = torch.from_numpy(items.view(np.uint8)).view(logits.dtype)[:, :size]
    if rows.numpy().tolist() == list(range(len(logits))):
        return logits.add_(added)
    return logits.index_add_(0, rows, added)


def greedy_sample(logits: torch.Tensor) -> torch.Tensor:
    """logits [B, V] to token ids [B] int64."""
    if logits.dtype == torch.bfloat16 and logits.device.type == "cpu":
        return _argmax_of_bits(logits)
    return logits.argmax(dim=-1)


def _argmax_of_bits(logits: torch.Tensor) -> torch.Tensor:
    """argmax of bfloat16 as one of 16-bit integers, which numpy has vector instructions for and torch's bf16 has not.

    16 rows of 150,000: 0.1 against 8.8 ms. As integers, numbers below zero are in the opposite order, and zeros of both
    signs differ: where a row's largest is not above zero, which hardly happens, it is torch's.
    """
    tokens = torch.from_numpy(logits.view(torch.int16).numpy().argmax(axis=-1))
    if bool((logits.gather(1, tokens.unsqueeze(1)) > 0).all()):
        return tokens
    return logits.argmax(dim=-1)


def sample(
    logits: torch.Tensor,
    temperature: torch.Tensor,
    top_k: torch.Tensor,
    top_p: torch.Tensor,
    min_p: torch.Tensor,
    uniform: torch.Tensor,
) -> torch.Tensor:
    """logits [B, V] and parameters [B] to token ids [B] int64. top_k 0, top_p 1 and min_p 0 are off."""
    scaled = logits.to(torch.float32) / temperature.unsqueeze(1)
    threshold = _min_p_threshold(scaled, min_p)
    is_filtered = (top_k > 0) | (top_p < 1.0)
    rows = is_filtered.nonzero().squeeze(1)
    if rows.numel():
        found = _top_threshold(scaled[rows], top_k[rows], top_p[rows])
        threshold[rows] = torch.maximum(threshold[rows], found)
    kept = scaled.masked_fill_(scaled < threshold.unsqueeze(1), float("-inf"))
    return _invert(kept, uniform)


def _min_p_threshold(scaled: torch.Tensor, min_p: torch.Tensor) -> torch.Tensor:
    """[B]: tokens with less than min_p of the largest probability fall below; -inf where it is off."""
    return scaled.amax(dim=-1) + min_p.log()


def _top_threshold(scaled: torch.Tensor, top_k: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    """[B]: the smallest logit that top-k, then top-p over what it left, keep. Equal logits stay together."""
    vocab = scaled.shape[1]
    limit = torch.where(top_k > 0, top_k.to(torch.int64).clamp(max=vocab), vocab)
    width = min(vocab, _HEAD)
    while True:
        head = scaled.topk(width, dim=-1).values
        threshold, is_settled = _threshold_in_head(head, scaled, limit, top_p)
        if width == vocab or bool(is_settled.all()):
            return threshold
        width = min(vocab, width * 16)


def _threshold_in_head(
    head: torch.Tensor, scaled: torch.Tensor, limit: torch.Tensor, top_p: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The threshold [B] as far as the `head` [B, W] of largest logits shows it, and whether it does [B]."""
    width = head.shape[1]
    total = torch.logsumexp(scaled, dim=-1, keepdim=True)
    mass = (head - total).exp_().to(torch.float64).cumsum_(dim=-1)
    inside = limit <= width
    # Mass that top-p is a share of: what top-k left, or everything.
    at_limit = mass.gather(1, (limit.clamp(max=width) - 1).unsqueeze(1)).squeeze(1)
    target = top_p.to(torch.float64) * torch.where(inside, at_limit, 1.0)
    is_top_p = top_p < 1.0
    # The first position whose cumulative mass reaches the target is the last one kept.
    last = (mass < target.unsqueeze(1)).sum(dim=-1)
    reached = last < width
    by_p = torch.where(is_top_p, last, vocab_end := torch.full_like(last, scaled.shape[1] - 1))
    keep = torch.minimum(by_p, torch.minimum(limit - 1, vocab_end))
    threshold = head.gather(1, keep.clamp(max=width - 1).unsqueeze(1)).squeeze(1)
    off = ~is_top_p & (limit >= scaled.shape[1])
    settled = torch.where(limit < scaled.shape[1], inside, torch.where(is_top_p, reached, off))
    return threshold.masked_fill(off, float("-inf")), settled | off


def _invert(kept: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    """The first token, in vocabulary order, at which the cumulative probability exceeds the row's uniform."""
    # float64: over 150,000 terms a float32 sum is off by more than a rare token weighs.
    cumulative = torch.softmax(kept, dim=-1).to(torch.float64).cumsum_(dim=-1)
    target = uniform.to(torch.float64).unsqueeze(1) * cumulative[:, -1:]
    return torch.searchsorted(cumulative, target, right=True).squeeze(1).clamp_(max=kept.shape[1] - 1)
