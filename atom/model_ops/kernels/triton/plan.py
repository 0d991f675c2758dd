"""What Triton's attention works out once a step.

A step of decodes needs nothing from the host: lengths are the positions on the device, so that its plan can be part of
a captured graph. Prefill rows are cut into tiles of queries, listed on the host; where only the device knows the rows,
on the device, as many tiles as there may be.
Shapes: T tokens, Td decode tokens, B rows, Bp prefill rows, M blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from atom.model_ops.step import DeviceRows, StepInputs

_T = TypeVar("_T")


@dataclass(slots=True)
class PrefillRows:
    """The prefill rows. lens and contexts [Bp] on the host; num_decodes rows of the block tables lie before them."""

    lens: NDArray[np.int64]
    contexts: NDArray[np.int64]
    num_decodes: int
    device: torch.device
    _tiles: dict[int, torch.Tensor] = field(default_factory=dict)
    _bounds: torch.Tensor | None = None

    @property
    def is_fresh(self) -> bool:
        """Whether no row has anything in the cache but its own tokens."""
        return not self.contexts.any()

    def bounds(self) -> torch.Tensor:
        """[Bp + 1] int32: where each row's tokens start among the prefill tokens, and their end."""
        if self._bounds is None:
            self._bounds = upload(np.concatenate(([0], np.cumsum(self.lens))).astype(np.int32), self.device)
        return self._bounds

    def tiles(self, size: int) -> torch.Tensor:
        """[N, 4] int32, the work of up to `size` queries each: first token, number of tokens, row of the block tables,
        position of the first token. Most keys first, so that the last programs to run are short.
        """
        if size not in self._tiles:
            counts = -(-self.lens // size)
            rows = np.repeat(np.arange(len(counts)), counts)
            offsets = (np.arange(len(rows)) - (np.cumsum(counts) - counts)[rows]) * size
            starts = np.cumsum(self.lens) - self.lens
            sizes = np.minimum(size, self.lens[rows] - offsets)
            table = (starts[rows] + offsets, sizes, rows + self.num_decodes, self.contexts[rows] + offsets)
            tiles = np.stack(table, axis=1).astype(np.int32)
            order = np.argsort(-tiles[:, 3], kind="stable")
            self._tiles[size] = upload(np.ascontiguousarray(tiles[order]), self.device)
        return self._tiles[size]


@dataclass(frozen=True, slots=True)
class PaddedRows:
    """Prefill rows of a graph: num_decodes rows of the block tables lie before them, num_tokens places for tokens."""

    rows: DeviceRows
    num_decodes: int
    num_tokens: int
    _tiles: dict[int, torch.Tensor] = field(default_factory=dict)

    def tiles(self, size: int) -> torch.Tensor:
        """As PrefillRows.tiles, for every row as many as all tokens could need: one too many has neither tokens nor
        keys, so that it costs next to nothing.
        """
        if size not in self._tiles:
            starts, lens, contexts = (x.unsqueeze(0) for x in (self.rows.starts, self.rows.lens, self.rows.contexts))
            num_rows, device = lens.shape[1], lens.device
            # Later tiles of all rows first: most keys first, as far as the host can tell.
            offsets = torch.arange(0, self.num_tokens, size, device=device).flip(0).unsqueeze(1)
            counts = (lens - offsets).clamp(0, size)
            rows = torch.arange(self.num_decodes, self.num_decodes + num_rows, device=device).expand_as(counts)
            positions = (contexts + offsets) * (counts > 0)
            tiles = torch.stack((starts + offsets, counts, rows, positions), dim=-1)
            self._tiles[size] = tiles.to(torch.int32).flatten(0, 1)
        return self._tiles[size]


@dataclass(slots=True)
class Plan:
    """positions and slot_mapping [T], block_tables [B, M] as in StepInputs; a negative slot is not written.

    decode_rows [Td]: the row of block_tables of every decode token, None where it is the token's own index.
    is_even: as in StepInputs.
    """

    positions: torch.Tensor
    slot_mapping: torch.Tensor
    block_tables: torch.Tensor
    block_size: int
    decode_rows: torch.Tensor | None
    prefill: PrefillRows | PaddedRows | None
    is_even: bool = True
    _kept: dict[Any, Any] = field(default_factory=dict)

    def keep(self, key: Any, make: Callable[[], _T]) -> _T:
        """`make()`, once for this step and key."""
        if key not in self._kept:
            self._kept[key] = make()
        found: _T = self._kept[key]
        return found


def attention_plan(step: StepInputs) -> Plan:
    """The plan of a step."""
    count = step.num_decodes
    device = step.positions.device
    rows = None
    if step.num_decode_tokens != count:
        rows = upload(np.repeat(np.arange(count, dtype=np.int32), step.query_lens[:count]), device)
    prefill: PrefillRows | PaddedRows | None = None
    if step.device_rows is not None:
        prefill = PaddedRows(step.device_rows, count, step.num_tokens - step.num_decode_tokens)
    elif step.num_tokens > step.num_decode_tokens:
        lens, contexts = (x[count:].astype(np.int64) for x in (step.query_lens, step.context_lens))
        prefill = PrefillRows(lens, contexts, count, device)
    return Plan(step.positions, step.slot_mapping, step.block_tables, step.block_size, rows, prefill, step.is_even)


def upload(array: NDArray[np.int32], device: torch.device) -> torch.Tensor:
    """A host array on the device, without waiting for what the device is doing."""
    tensor = torch.from_numpy(array)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)
