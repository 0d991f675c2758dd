"""What AITER's attention works out once a step.

A step of decodes needs nothing from the host, so that its plan can be part of a captured graph; lengths that the host
would know are replaced by what the block tables can hold. The kernels take int32 tables and lengths without looking.
Shapes: T tokens, Td decode tokens, Bp prefill rows, M blocks of the longest row, Lp keys of all prefill rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from atom.model_ops.step import StepInputs


@dataclass(frozen=True, slots=True)
class CachedRows:
    """Rows of queries that end in the cache. query_bounds [B + 1], key_lens [B] and tables [B, M] are int32."""

    query_bounds: torch.Tensor
    max_query_len: int
    key_lens: torch.Tensor
    max_key_len: int
    tables: torch.Tensor


@dataclass(frozen=True, slots=True)
class PrefillRows:
    """The prefill rows. key_bounds [Bp + 1] int32: where each row's keys start when all of them lie in one run.

    is_fresh: no row has anything in the cache but its own tokens.
    """

    cached: CachedRows
    key_bounds: torch.Tensor
    is_fresh: bool


@dataclass(frozen=True, slots=True)
class DecodeSlots:
    """Where the decode rows' keys lie in the cache, token by token, row behind row.

    slots [Td * M * BS] int32, 0 behind the last row's; bounds [Td + 1] int32: where each row's begin.
    page_lens [Td] int32: ones, the tokens of a row's last page when a page is a token.
    """

    bounds: torch.Tensor
    slots: torch.Tensor
    page_lens: torch.Tensor


@dataclass(slots=True)
class Plan:
    """positions [T] int64, not below 0; slot_mapping [T] int64, below 0 for a token that is not kept.

    decode: every decode token as a row of its own.
    """

    positions: torch.Tensor
    slot_mapping: torch.Tensor
    decode: CachedRows | None
    prefill: PrefillRows | None
    _step: StepInputs
    _kept: dict[Any, Any] = field(default_factory=dict)

    def rotary(self, cos_sin: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """cos and sin [T, 1, 1, R/2] of the step's tokens, and the places [T, 1] int64 of the tokens in them.

        The kernel takes no strides of its tables, and the halves of `cos_sin` [P, R] are not dense.
        """

        def make() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
            cos, sin = cos_sin[self.positions].chunk(2, dim=-1)
            places = torch.arange(len(self.positions), device=cos_sin.device).unsqueeze(1)
            return cos.contiguous()[:, None, None], sin.contiguous()[:, None, None], places

        return self._keep(("rotary", cos_sin.data_ptr()), make)

    def prefill_slots(self) -> torch.Tensor:
        """[Lp] int64: where the prefill rows' keys lie in the cache, those of this step among them."""
        return self._keep("slots", lambda: _key_slots(self._step))

    def decode_slots(self) -> DecodeSlots:
        """Of the decode rows."""
        return self._keep("decode slots", lambda: _decode_slots(self.decode, self._step.block_size))

    def _keep(self, key: Any, make: Callable[[], Any]) -> Any:
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]


def attention_plan(step: StepInputs) -> Plan:
    """The plan of a step."""
    decode = _decode_rows(step) if step.num_decode_tokens else None
    prefill = _prefill_rows(step) if step.num_tokens > step.num_decode_tokens else None
    slots = step.slot_mapping.to(torch.int64)
    return Plan(step.positions.clamp(min=0), slots, decode, prefill, step)


def _decode_rows(step: StepInputs) -> CachedRows:
    count, device = step.num_decode_tokens, step.positions.device
    tables = step.block_tables[: step.num_decodes]
    if count != step.num_decodes:
        rows = np.repeat(np.arange(step.num_decodes), step.query_lens[: step.num_decodes])
        tables = tables.index_select(0, _upload(rows, device))
    # A row of padding has position -1; the kernels are given one key of it.
    lens = (step.positions[:count] + 1).clamp(min=1).to(torch.int32)
    bounds = torch.arange(count + 1, dtype=torch.int32, device=device)
    return CachedRows(bounds, 1, lens, tables.shape[1] * step.block_size, tables.to(torch.int32))


def _prefill_rows(step: StepInputs) -> PrefillRows:
    first, device = step.num_decodes, step.positions.device
    query_lens = step.query_lens[first:].astype(np.int32)
    key_lens = query_lens + step.context_lens[first:].astype(np.int32)
    query_bounds, key_bounds = (np.concatenate(([0], np.cumsum(x))).astype(np.int32) for x in (query_lens, key_lens))
    cached = CachedRows(
        query_bounds=_upload(query_bounds, device),
        max_query_len=int(query_lens.max()),
        key_lens=_upload(key_lens, device),
        max_key_len=int(key_lens.max()),
        tables=step.block_tables[first:].to(torch.int32),
    )
    return PrefillRows(cached, _upload(key_bounds, device), is_fresh=not step.context_lens[first:].any())


def _key_slots(step: StepInputs) -> torch.Tensor:
    first, device = step.num_decodes, step.positions.device
    lens = (step.query_lens[first:] + step.context_lens[first:]).astype(np.int64)
    rows = np.repeat(np.arange(len(lens)), lens)
    positions = np.arange(len(rows)) - np.repeat(np.cumsum(lens) - lens, lens)
    where, which = _upload(positions, device), _upload(rows, device)
    blocks = step.block_tables[first:][which, where // step.block_size].to(torch.int64)
    return blocks * step.block_size + where % step.block_size


def _decode_slots(rows: CachedRows | None, block_size: int) -> DecodeSlots:
    """All on the device: what is behind a row's end goes to one place behind the last row's, which is cut off."""
    assert rows is not None
    lens, device = rows.key_lens, rows.key_lens.device
    bounds = F.pad(lens.cumsum(0, dtype=torch.int32), (1, 0))
    places = torch.arange(rows.max_key_len, device=device)
    slots = rows.tables[:, places // block_size] * block_size + (places % block_size).to(torch.int32)
    where = (bounds[:-1, None] + places).masked_fill_(places >= lens[:, None], slots.numel())
    dense = slots.new_zeros(slots.numel() + 1).scatter_(0, where.flatten(), slots.flatten())
    return DecodeSlots(bounds, dense[:-1], torch.ones_like(lens))


def _upload(array: NDArray[Any], device: torch.device) -> torch.Tensor:
    """A host array on the device, without waiting for what the device is doing."""
    tensor = torch.from_numpy(array)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)
