"""How the keys of a decode step are shared out: every key once, no part too long, results in rows of their own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray

from atom.model_ops.kernels.triton import shares
from tests.kernels.triton.splits import cut_into

_TILE = 16


def check(
    device: torch.device, lens: NDArray[np.int64], num_kv_heads: int = 8, window: int | None = None,
    parts: int | None = None,
) -> NDArray[np.int64]:  # fmt: skip
    """The parts of each token. Tokens without a sequence have a length of 0."""
    positions = torch.from_numpy(np.append(lens, 999) - 1).to(device)
    with cut_into(parts):
        made = shares.share_out(positions, len(lens), num_kv_heads, _TILE, window)
        parts = shares.num_parts(len(lens), num_kv_heads)
    items, spans = made.items.cpu().numpy().astype(np.int64), made.spans.cpu().numpy().astype(np.int64)
    total = int(spans[:, 1].sum())
    assert (items[total:, 0] == -1).all()
    begins = np.maximum(lens - (window or lens.max()), 0) // _TILE * _TILE
    tiles = -(-lens // _TILE) - begins // _TILE
    share = max(1, -(-int(tiles.sum()) // (len(items) - len(lens) + 1)))
    rows: list[int] = []
    for token, (first, count) in enumerate(spans.tolist()):
        mine = items[first : first + count]
        assert (mine[:, 0] == token).all()
        assert mine[:, 1].tolist() == [*range(count)]
        assert mine[:, 2].tolist() == [int(begins[token]), *mine[:-1, 3].tolist()]
        assert mine[-1, 3] == lens[token]
        assert (mine[:, 2] % _TILE == 0).all()
        assert (mine[:, 2] < mine[:, 3]).all() or not lens[token]
        assert (mine[:, 4] == lens[token]).all()
        is_long = tiles[token] > parts * share * 5 // 4
        longest = share if is_long else max(share, -(-int(tiles[token]) // parts))
        assert (mine[:, 3] - mine[:, 2] <= longest * _TILE).all()
        rows += mine[:, 5].tolist() if count > 1 else []
        assert count > 1 or mine[0, 5] == -1
    assert len(set(rows)) == len(rows)
    assert all(0 <= row < made.num_rows for row in rows)
    sizes = -(-(items[:total, 3] - items[:total, 2]) // _TILE)
    firsts = items[:total, 1] == 0
    assert (np.diff(sizes[firsts]) <= 0).all()
    counts: NDArray[np.int64] = spans[:, 1]
    return counts


def check_any(device: torch.device) -> None:
    """Random batches, some rows without a sequence."""
    random = np.random.default_rng(1)
    for count, num_kv_heads, longest, window in (
        (1, 8, 9000, None), (3, 1, 40, None), (5, 2, 3000, 100), (20, 8, 500, None), (70, 8, 600, 40),
    ):  # fmt: skip
        lens = random.integers(1, longest, count) ** random.integers(1, 3, count) % longest
        check(device, lens, num_kv_heads, window)
    check(device, np.zeros(3, np.int64))


def check_equal(device: torch.device) -> None:
    """Equal lengths, or nearly so, are cut by the batch size alone, and not at all in a large batch."""
    assert check(device, np.full(8, 1100)).tolist() == [8] * 8
    assert check(device, np.full(1, 100)).tolist() == [7]
    assert check(device, np.full(64, 1100)).tolist() == [1] * 64
    assert check(device, np.arange(1000, 1064)).tolist() == [1] * 64


def check_unequal(device: torch.device) -> None:
    """A long sequence is worked on by many programs, also in a small batch, and the others are not cut for it."""
    assert check(device, np.array([100, 200, 60000, 3000])).tolist()[2] > 50
    counts = check(device, np.array([32000, *[1000] * 63]))
    assert counts[0] > 15
    assert counts[1:].max() == 1
    # In a large batch the longest may take as long as the whole batch does.
    assert check(device, np.array([3000, *[1000] * 255])).max() == 1


SHARES_CHECKS: dict[str, Callable[[torch.device], None]] = {
    "shares": check_any, "shares of equal lengths": check_equal, "shares of unequal lengths": check_unequal,
}  # fmt: skip
