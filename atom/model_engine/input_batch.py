"""The runner's persistent state of every slot, and a step's inputs made from it.

A slot keeps its last sampled token, its block table and its sampling parameters on the device, so that a step needs
from the host only what the scheduler changed, and a decode can be launched before the step that makes its input has
ended.
Shapes: S slots, T tokens, B rows, M blocks of the longest row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from atom.model_engine.batch import ScheduledBatch
from atom.model_engine.device_copies import upload, upload_packed
from atom.model_engine.sampling_state import SamplingState
from atom.model_ops.step import StepInputs

# Up to this many times the mean of all lengths a sequence is not worth a plan by lengths: measured on an H200, that
# loses up to a tenth where lengths are equal, and gains as much at twice the mean in large batches.
_EVEN = 1.5


@dataclass(frozen=True, slots=True)
class SampledRows:
    """The rows of a step that sample.

    rows: their indices in the batch. last_tokens: index of each row's last token in the flat batch. num_outputs: tokens
    that its sequence generated before this step's.
    """

    rows: NDArray[np.int64]
    slots: NDArray[np.int64]
    last_tokens: NDArray[np.int64]
    num_outputs: NDArray[np.int64]


class InputBatch:
    """State of S slots on `device`, and of one more, padding_slot, that no sequence ever has."""

    def __init__(
        self, num_slots: int, max_blocks: int, block_size: int, sampling: SamplingState, device: torch.device
    ) -> None:
        self.block_size = block_size
        self.sampling = sampling
        self.device = device
        self.padding_slot = num_slots
        self.last_tokens = torch.zeros(num_slots + 1, dtype=torch.int64, device=device)
        self.block_tables = torch.zeros(num_slots + 1, max_blocks, dtype=torch.int32, device=device)
        self.prompt_lens = np.zeros(num_slots, dtype=np.int64)
        self.prompts: dict[int, list[int]] = {}

    def apply(self, batch: ScheduledBatch) -> None:
        """Take over what the scheduler changed: admissions, then appended blocks."""
        for admission in batch.admissions:
            slot = admission.slot
            blocks = np.array(admission.block_ids, dtype=np.int32)
            self.block_tables[slot, : len(blocks)] = upload(blocks, self.device)
            self.prompt_lens[slot] = admission.num_prompt_tokens
            self.prompts[slot] = admission.token_ids[: admission.num_prompt_tokens]
            self.sampling.admit(admission)
        if len(batch.new_blocks):
            slots, indices, blocks = upload(batch.new_blocks.astype(np.int64).T.copy(), self.device)
            self.block_tables[slots, indices] = blocks.to(torch.int32)

    def inputs(self, batch: ScheduledBatch) -> StepInputs:
        """The step's tensors; `apply` comes first."""
        num_decodes = batch.num_decodes
        query_lens, context_lens = batch.query_lens, batch.context_lens
        num_decode_tokens = int(query_lens[:num_decodes].sum())
        if num_decode_tokens != num_decodes:
            raise NotImplementedError("draft tokens arrive with speculative decoding")
        blocks = -(-(context_lens + query_lens) // self.block_size)
        host_slots = batch.slots.astype(np.int64)
        longest = int(blocks.max())
        if num_decodes == batch.num_rows:
            slots, positions = upload_packed((host_slots, context_lens.astype(np.int64)), self.device)
            tables = self.block_tables[:, :longest].index_select(0, slots)
            token_ids = self.last_tokens.index_select(0, slots)
            in_block = tables.gather(1, (positions // self.block_size).unsqueeze(1)).squeeze(1)
        else:
            flat = flat_positions(query_lens, context_lens)
            host_known = batch.prefill_token_ids.astype(np.int64)
            slots, rows, positions, known = upload_packed((host_slots, *flat, host_known), self.device)
            tables = self.block_tables[:, :longest].index_select(0, slots)
            token_ids = torch.cat((self.last_tokens.index_select(0, slots[:num_decodes]), known))
            in_block = tables[rows, positions // self.block_size]
        slot_mapping = in_block.to(torch.int64) * self.block_size + positions % self.block_size
        return StepInputs(
            token_ids=token_ids,
            positions=positions,
            slot_mapping=slot_mapping,
            block_tables=tables,
            context_lens=context_lens,
            query_lens=query_lens,
            num_decodes=num_decodes,
            num_decode_tokens=num_decode_tokens,
            block_size=self.block_size,
            is_even=is_even(context_lens[:num_decodes]),
        )

    def decode_rows(self, slots: torch.Tensor, contexts: torch.Tensor, is_even: bool) -> StepInputs:
        """A step of decodes made of slots and contexts [G] on the device alone, as a captured graph needs it.

        A context of -1 is a row of padding: it has no keys and no place in the cache. Lengths on the host are unknown;
        is_even: what the step says of them (StepInputs).
        """
        tables = self.block_tables.index_select(0, slots)
        known = contexts.clamp(min=0)
        in_block = tables.gather(1, (known // self.block_size).unsqueeze(1)).squeeze(1)
        unknown = np.zeros(len(slots), dtype=np.int32)
        return StepInputs(
            token_ids=self.last_tokens.index_select(0, slots),
            positions=contexts,
            slot_mapping=self.places(in_block, contexts),
            block_tables=tables,
            context_lens=unknown,
            query_lens=unknown + 1,
            num_decodes=len(slots),
            num_decode_tokens=len(slots),
            block_size=self.block_size,
            is_even=is_even,
        )

    def places(self, in_block: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """Where tokens at positions [T] go in the cache, each in the block in_block [T]; -1 for a position of -1."""
        where = in_block.to(torch.int64) * self.block_size + positions % self.block_size
        return torch.where(positions < 0, -1, where)

    def sampled_rows(self, batch: ScheduledBatch) -> SampledRows:
        """Which rows sample, from which tokens."""
        rows = np.flatnonzero(batch.samples)
        ends = np.cumsum(batch.query_lens, dtype=np.int64)
        slots = batch.slots[rows].astype(np.int64)
        lens = (batch.context_lens + batch.query_lens)[rows].astype(np.int64)
        return SampledRows(rows, slots, ends[rows] - 1, lens - self.prompt_lens[slots])


def is_even(context_lens: NDArray[Any]) -> bool:
    """Whether no sequence is much longer than the mean of them; one alone never is."""
    return not len(context_lens) or bool(context_lens.max() + 1 <= _EVEN * (context_lens.mean() + 1))


def flat_positions(
    query_lens: NDArray[np.int32], context_lens: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row and position of every token of the flat batch, both [T]."""
    lens = query_lens.astype(np.int64)
    rows = np.repeat(np.arange(len(lens), dtype=np.int64), lens)
    firsts = context_lens.astype(np.int64) - (np.cumsum(lens) - lens)
    return rows, np.arange(len(rows), dtype=np.int64) + firsts[rows]
