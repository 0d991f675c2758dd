"""How the keys of a decode step are shared out among programs.

Every sequence's keys are one part or several of equal length: as many as the batch size alone says where all lengths
are equal, while a long sequence among short ones is cut into more, so that none takes longer than the step's share.
That cut is made on the device, once a step and window, and the number of programs depends on the batch size alone, so
that the launch can be captured. Knows nothing of attention. Shapes: Td tokens, W items of work.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from atom.model_ops.kernels.triton.early import early_launch, starts_early, take_turn
from atom.model_ops.kernels.triton.sizes import cdiv, next_power_of_2

# Programs that keep an H200 (132 multiprocessors, several programs each) reading.
_WANTED_PROGRAMS = 512
_MAX_PARTS = 32


@dataclass(frozen=True, slots=True)
class Shares:
    """The work of a step's decode tokens; a part of a token's keys is an item, the longest parts first.

    items [W, 8] int32: token (-1 for no work), part, first key, end of the keys, end of the sequence, row for the
    result among num_rows (-1: it is the token's result, the only part's), two unused.
    spans [Td, 2] int32: each token's first item and number of parts.
    fixed: rows that every token has for its first parts; further parts have rows by item behind them.
    """

    items: torch.Tensor
    spans: torch.Tensor
    fixed: int
    num_rows: int


@triton.jit(do_not_specialize=["num_tokens", "num_shares", "num_items", "parts"])
def _share_out(
    positions, items, spans, num_tokens, num_shares, num_items, parts, window,
    TP: tl.constexpr, N: tl.constexpr, CHUNK: tl.constexpr, HAS_WINDOW: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """A program a token; each works out the cut of all, which is cheaper than waiting for another to do it."""
    take_turn(EARLY)
    token = tl.program_id(0)
    every = tl.arange(0, TP)
    lengths = (tl.load(positions + every, mask=every < num_tokens, other=-1) + 1).to(tl.int32)
    skipped = tl.zeros((TP,), tl.int32)
    if HAS_WINDOW:
        skipped = tl.maximum(lengths - window, 0) // N
    tiles = tl.cdiv(lengths, N) - skipped
    share = tl.maximum(tl.cdiv(tl.sum(tiles, axis=0), num_shares), 1)
    # A quarter more keys than in a batch of equal lengths are not worth another part.
    is_long = tiles > parts * share + parts * share // 4
    counts = tl.where(is_long, tl.cdiv(tiles, share), tl.minimum(tl.cdiv(tiles, share), parts))
    sizes = tl.cdiv(tiles, tl.maximum(counts, 1))
    counts = tl.where(every < num_tokens, tl.maximum(tl.cdiv(tiles, tl.maximum(sizes, 1)), 1), 0)

    mine = every == token
    size, count = tl.sum(tl.where(mine, sizes, 0), axis=0), tl.sum(tl.where(mine, counts, 0), axis=0)
    length, begin = tl.sum(tl.where(mine, lengths, 0), axis=0), tl.sum(tl.where(mine, skipped, 0), axis=0)
    is_before = (sizes > size) | ((sizes == size) & (every < token))
    first = tl.sum(tl.where(is_before, counts, 0), axis=0)
    tl.store(spans + token * 2, first)
    tl.store(spans + token * 2 + 1, count)
    for base in tl.range(0, count, CHUNK):
        part = base + tl.arange(0, CHUNK)
        at, inside = items + (first + part) * 8, part < count
        start = (begin + part * size) * N
        row = tl.where(part < parts, token * parts + part, num_tokens * parts + first + part)
        tl.store(at, token, mask=inside)
        tl.store(at + 1, part, mask=inside)
        tl.store(at + 2, start, mask=inside)
        tl.store(at + 3, tl.minimum(start + size * N, length), mask=inside)
        tl.store(at + 4, length, mask=inside)
        tl.store(at + 5, tl.where(count > 1, row, -1), mask=inside)
    if token == num_tokens - 1:
        for base in tl.range(tl.sum(counts, axis=0), num_items, CHUNK):
            idle = base + tl.arange(0, CHUNK)
            tl.store(items + idle * 8, -1, mask=idle < num_items)


def num_parts(num_tokens: int, num_kv_heads: int) -> int:
    """Parts that a sequence's keys are cut into where all are of equal length: from the batch size alone, so that
    graphs and eager steps agree.
    """
    wanted = cdiv(_WANTED_PROGRAMS, num_tokens * num_kv_heads)
    return min(_MAX_PARTS, next_power_of_2(wanted))


def share_out(positions: torch.Tensor, num_tokens: int, num_kv_heads: int, tile: int, window: int | None) -> Shares:
    """The work of the first num_tokens tokens, by positions [T]; tile: keys that are not divided. One kernel."""
    parts = num_parts(num_tokens, num_kv_heads)
    num_shares = num_tokens * parts if parts > 1 else cdiv(_WANTED_PROGRAMS, num_kv_heads)
    # Each token has one part, and what is left of its keys is cut into parts of a share at least.
    num_items = num_tokens + num_shares - 1
    items = torch.empty((num_items, 8), dtype=torch.int32, device=positions.device)
    spans = torch.empty((num_tokens, 2), dtype=torch.int32, device=positions.device)
    _share_out[(num_tokens,)](
        positions, items, spans, num_tokens, num_shares, num_items, parts, window or 0,
        TP=next_power_of_2(num_tokens), N=tile, CHUNK=64, HAS_WINDOW=window is not None,
        EARLY=starts_early(num_tokens), num_warps=4, **early_launch(),
    )  # fmt: skip
    return Shares(items, spans, parts, num_tokens * parts + num_items)
