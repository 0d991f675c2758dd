"""What the reference attention works out once a step: gather indices, masks, rows of cos and sin.

Owns the grouping of decode rows by length. Everything that depends on a layer's tensors (number of heads, window,
rotary table) is made at the first layer that asks and kept for the others.
Shapes: T tokens, G rows of a group, M blocks of its longest row, L = M * BS, HK key/value heads, R rotary size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from atom.model_ops.step import StepInputs

_T = TypeVar("_T")

# A group gathers every row up to its longest one; this bounds the padding that a short row pays for a long one.
_MAX_PADDING = 1.5


@dataclass(frozen=True, slots=True)
class DecodeGroup:
    """Decode rows gathered together. rows: their indices among the decodes, None when it is all of them, in order."""

    rows: torch.Tensor | None
    block_ids: torch.Tensor
    seq_lens: torch.Tensor


@dataclass(frozen=True, slots=True)
class SequenceRow:
    """A row attended by itself: tokens [start, end) of its part of the batch, after num_context cached ones."""

    start: int
    end: int
    num_context: int
    block_ids: torch.Tensor

    @property
    def num_keys(self) -> int:
        """Tokens that the row's last one sees."""
        return self.num_context + self.end - self.start


@dataclass(slots=True)
class Plan:
    """The plan of one step. single: decode rows with one token each; several: decode rows with drafts; prefills."""

    step: StepInputs
    single: list[DecodeGroup]
    several: list[SequenceRow]
    prefills: list[SequenceRow]
    _kept: dict[Any, Any] = field(default_factory=dict)

    def keep(self, key: Any, make: Callable[[], _T]) -> _T:
        """`make()`, once for this step and key."""
        if key not in self._kept:
            self._kept[key] = make()
        found: _T = self._kept[key]
        return found

    def rotary(self, cos_sin: torch.Tensor, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
        """cos [T, 1, R], both halves filled, and sin [T, 1, R/2] of the step's positions, as `dtype`."""

        def make() -> tuple[torch.Tensor, torch.Tensor]:
            rows = cos_sin[self.step.positions].to(dtype).unsqueeze(1)
            cos, sin = rows.chunk(2, dim=-1)
            return torch.cat((cos, cos), dim=-1), sin.contiguous()

        return self.keep(("rotary", cos_sin.data_ptr()), make)

    def write_rows(self, num_kv_heads: int) -> torch.Tensor:
        """[T, 2 HK]: where each token's heads go in the cache seen as rows of D; keys, then values."""

        def make() -> torch.Tensor:
            slots, size = self.step.slot_mapping.unsqueeze(1), self.step.block_size
            planes = torch.arange(2 * num_kv_heads, device=slots.device)
            return (slots // size * (2 * num_kv_heads) + planes) * size + slots % size

        return self.keep(("write", num_kv_heads), make)

    def read_rows(self, block_ids: torch.Tensor, num_kv_heads: int) -> torch.Tensor:
        """[2 * G * HK * M]: the blocks of block_ids [G, M] in the cache seen as rows of BS * D."""

        def make() -> torch.Tensor:
            planes = torch.arange(2 * num_kv_heads, device=block_ids.device).view(2, 1, num_kv_heads, 1)
            blocks = block_ids.to(torch.int64).view(1, block_ids.shape[0], 1, -1)
            return (blocks * (2 * num_kv_heads) + planes).flatten()

        return self.keep(("read", id(block_ids), num_kv_heads), make)

    def value_rows(
        self, block_ids: torch.Tensor, num_kv_heads: int, num_heads: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """[G * HQ * L]: each row's, head's and key's value in the cache seen as rows of D; [G * HQ]: where a row and
        head begins in it. Both int32, of the blocks block_ids [G, M].
        """

        def make() -> tuple[torch.Tensor, torch.Tensor]:
            device, size = block_ids.device, self.step.block_size
            heads = torch.arange(num_kv_heads, dtype=torch.int32, device=device).view(-1, 1, 1, 1)
            blocks = (block_ids.to(torch.int32) * 2 + 1).view(len(block_ids), 1, 1, -1, 1)
            places = (blocks * num_kv_heads + heads) * size + torch.arange(size, dtype=torch.int32, device=device)
            rows = places.expand(-1, -1, num_heads // num_kv_heads, -1, -1).flatten()
            length = block_ids.shape[1] * size
            return rows, torch.arange(0, len(rows), length, dtype=torch.int32, device=device)

        return self.keep(("values", id(block_ids), num_kv_heads, num_heads), make)

    def scratch(self, table: torch.Tensor, rows: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
        """Memory for the rows of a cache; every layer gathers into the same, which stays in the processor's cache.

        dtype: another one than the table's.
        """
        dtype = dtype or table.dtype
        key = ("scratch", id(rows), dtype)
        return self.keep(key, lambda: table.new_empty(len(rows), table.shape[1], dtype=dtype))

    def decode_mask(self, group: DecodeGroup, num_heads: int, window: int | None, dtype: torch.dtype) -> torch.Tensor:
        """[G * num_heads, 1, L], 0 where the row's token sees a key, else -inf."""

        def make() -> torch.Tensor:
            keys = torch.arange(group.block_ids.shape[1] * self.step.block_size, device=group.block_ids.device)
            lens = group.seq_lens.unsqueeze(1)
            hidden = keys >= lens
            if window is not None:
                hidden |= keys < lens - window
            return _additive(hidden, dtype).repeat_interleave(num_heads, dim=0).unsqueeze(1)

        return self.keep(("mask", id(group), num_heads, window, dtype), make)

    def causal_mask(self, num_queries: int, num_before: int, window: int | None, group: int = 1) -> torch.Tensor:
        """[num_queries * group, num_before + num_queries] float32: queries over the keys before them and their own.

        0 where a query sees a key, else -inf. group: rows of each query, one after another.
        """

        def make() -> torch.Tensor:
            device = self.step.block_tables.device
            queries = torch.arange(num_before, num_before + num_queries, device=device).unsqueeze(1)
            keys = torch.arange(num_before + num_queries, device=device)
            hidden = keys > queries
            if window is not None:
                hidden |= keys <= queries - window
            return _additive(hidden, torch.float32).repeat_interleave(group, dim=0)

        return self.keep(("causal", num_queries, num_before, window, group), make)


def _additive(hidden: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return torch.zeros(hidden.shape, dtype=dtype, device=hidden.device).masked_fill_(hidden, float("-inf"))


def attention_plan(step: StepInputs) -> Plan:
    """The plan of a step; the groups and masks follow from its lengths."""
    lens = step.context_lens.astype(np.int64) + step.query_lens
    blocks = -(-lens // step.block_size)
    num_decodes = step.num_decodes
    if step.num_decode_tokens == num_decodes:
        return Plan(step, _groups(step, lens[:num_decodes], blocks[:num_decodes]), [], _rows(step, blocks, num_decodes))
    return Plan(step, [], _rows(step, blocks, 0, num_decodes), _rows(step, blocks, num_decodes))


def _rows(step: StepInputs, blocks: NDArray[np.int64], first: int, last: int | None = None) -> list[SequenceRow]:
    """Rows [first, last) one by one; `start` counts from the first of them."""
    rows = []
    start = 0
    for row in range(first, len(blocks) if last is None else last):
        end = start + int(step.query_lens[row])
        table = step.block_tables[row, : int(blocks[row])]
        rows.append(SequenceRow(start, end, int(step.context_lens[row]), table.unsqueeze(0)))
        start = end
    return rows


def _groups(step: StepInputs, lens: NDArray[np.int64], blocks: NDArray[np.int64]) -> list[DecodeGroup]:
    """Cut the rows, sorted by length, wherever going on would pad more than _MAX_PADDING allows."""
    if not len(blocks):
        return []
    device = step.block_tables.device
    longest = int(blocks.max())
    if longest * len(blocks) <= _MAX_PADDING * int(blocks.sum()):
        table = step.block_tables[: len(blocks), :longest]
        return [DecodeGroup(None, table, torch.from_numpy(lens).to(device))]
    order = np.argsort(-blocks, kind="stable")
    ordered = blocks[order]
    groups = []
    start = 0
    while start < len(ordered):
        padded = int(ordered[start]) * np.arange(1, len(ordered) - start + 1)
        fits = padded <= _MAX_PADDING * np.cumsum(ordered[start:])
        end = start + int(np.nonzero(fits)[0][-1]) + 1
        rows = torch.from_numpy(order[start:end]).to(device)
        table = step.block_tables[rows, : int(ordered[start])]
        groups.append(DecodeGroup(rows, table, torch.from_numpy(lens[order[start:end]]).to(device)))
        start = end
    return groups
