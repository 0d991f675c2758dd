"""Steps with prefill rows in a fixed shape: what the host sends of a batch, and the step that the device makes of it.

Owns the places that rows and tokens have in such a step: decodes first, then prefill tokens, padding behind each.
Decodes have as many places as a shape says, so that decode attention takes them as it does in any step. Knows no graph.
Shapes: D places of decodes, C of prefill rows, G = D + C, P of prefill tokens, T = D + P.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from atom.model_engine.batch import ScheduledBatch
from atom.model_engine.input_batch import InputBatch, SampledRows, flat_positions
from atom.model_ops.step import DeviceRows, StepInputs


class Fields(NamedTuple):
    """One packed step, cut into its parts: all int64, numpy arrays on the host, tensors on the device.

    slots [G]: padding has the padding slot. rows [T]: the row of every token. positions [T]: -1 for padding. token_ids
    [P]. starts, lens, contexts [C]: as in DeviceRows. sampled [G], sampled_slots [G]: the tokens to sample after, those
    of the batch first, and the slots that what is sampled goes to; padding samples after some token, for the padding
    slot.
    """

    slots: Any
    rows: Any
    positions: Any
    token_ids: Any
    starts: Any
    lens: Any
    contexts: Any
    sampled: Any
    sampled_slots: Any


@dataclass(frozen=True, slots=True)
class StepShape:
    """D, C and P."""

    num_decodes: int
    num_chunks: int
    num_tokens: int

    @property
    def num_rows(self) -> int:
        """G."""
        return self.num_decodes + self.num_chunks

    def holds(self, batch: ScheduledBatch) -> bool:
        """Whether the batch has at least one prefill row, and places for all it has; decodes of one token each."""
        num_decodes, num_chunks = batch.num_decodes, batch.num_rows - batch.num_decodes
        return (
            num_decodes <= self.num_decodes
            and 0 < num_chunks <= self.num_chunks
            and len(batch.prefill_token_ids) <= self.num_tokens
            and batch.num_tokens == num_decodes + len(batch.prefill_token_ids)
        )

    def ends(self) -> tuple[int, ...]:
        """Where each of Fields ends in the packed array."""
        rows, tokens, chunks = self.num_rows, self.num_decodes + self.num_tokens, self.num_chunks
        return (*accumulate((rows, tokens, tokens, self.num_tokens, chunks, chunks, chunks, rows, rows)),)

    def cut(self, packed: Any) -> Fields:
        """The parts of a packed array or tensor, as views."""
        ends = self.ends()
        return Fields(*(packed[first:end] for first, end in zip((0, *ends), ends, strict=False)))

    def padding(self, padding_slot: int) -> NDArray[np.int64]:
        """A packed step of nothing but padding."""
        packed = np.zeros(self.ends()[-1], dtype=np.int64)
        fields = self.cut(packed)
        fields.slots.fill(padding_slot)
        fields.positions.fill(-1)
        fields.sampled_slots.fill(padding_slot)
        return packed

    def pack(self, batch: ScheduledBatch, sampled: SampledRows, padding_slot: int) -> NDArray[np.int64]:
        """A batch that the shape holds, for one copy to the device."""
        packed = self.padding(padding_slot)
        fields = self.cut(packed)
        places, num_decodes, num_chunks = self.num_decodes, batch.num_decodes, batch.num_rows - batch.num_decodes
        lens, contexts = batch.query_lens[num_decodes:], batch.context_lens[num_decodes:]
        num_tokens, num_sampled = len(batch.prefill_token_ids), len(sampled.rows)
        fields.slots[:num_decodes] = batch.slots[:num_decodes]
        fields.slots[places : places + num_chunks] = batch.slots[num_decodes:]
        rows, positions = flat_positions(lens, contexts)
        fields.rows[:places] = np.arange(places)
        fields.rows[places : places + num_tokens] = rows + places
        fields.positions[:num_decodes] = batch.context_lens[:num_decodes]
        fields.positions[places : places + num_tokens] = positions
        fields.token_ids[:num_tokens] = batch.prefill_token_ids
        fields.starts[:num_chunks] = np.cumsum(lens) - lens
        fields.lens[:num_chunks] = lens
        fields.contexts[:num_chunks] = contexts
        last = sampled.last_tokens
        fields.sampled[:num_sampled] = np.where(last < num_decodes, last, last + (places - num_decodes))
        fields.sampled_slots[:num_sampled] = sampled.slots
        return packed

    def step(self, fields: Fields, inputs: InputBatch) -> StepInputs:
        """The step of packed fields on the device, made there alone. Lengths on the host are unknown, so that decodes
        count as of unequal ones.
        """
        tables = inputs.block_tables.index_select(0, fields.slots)
        in_block = tables[fields.rows, fields.positions.clamp(min=0) // inputs.block_size]
        unknown = np.zeros(self.num_rows, dtype=np.int32)
        decoded = inputs.last_tokens.index_select(0, fields.slots[: self.num_decodes])
        return StepInputs(
            token_ids=torch.cat((decoded, fields.token_ids)),
            positions=fields.positions,
            slot_mapping=inputs.places(in_block, fields.positions),
            block_tables=tables,
            context_lens=unknown,
            query_lens=unknown,
            num_decodes=self.num_decodes,
            num_decode_tokens=self.num_decodes,
            block_size=inputs.block_size,
            is_even=False,
            device_rows=DeviceRows(fields.starts, fields.lens, fields.contexts),
        )
