"""The rows of a step, put together into the arrays of a `ScheduledBatch`. Decides nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from atom.model_engine.batch import BoolArray, Int32Array, ScheduledBatch, SlotAdmission
from atom.model_engine.sequence import Sequence

NO_TOKENS: Int32Array = np.empty(0, dtype=np.int32)
NO_BLOCKS: Int32Array = np.empty((0, 3), dtype=np.int32)


class DecodeRows(NamedTuple):
    """The decodes' part of a batch's arrays, one entry a row."""

    slots: Int32Array
    query_lens: Int32Array
    context_lens: Int32Array
    samples: BoolArray


@dataclass(frozen=True, slots=True)
class Chunk:
    """A prefill row: tokens [start, start + length) of the sequence."""

    sequence: Sequence
    start: int
    length: int
    samples: bool


def assemble(
    step: int,
    decodes: DecodeRows,
    chunks: list[Chunk],
    new_blocks: list[tuple[int, int, int]],
    admissions: list[SlotAdmission],
) -> ScheduledBatch:
    """One batch: the decodes, then the chunks. A batch of decodes alone takes their arrays as they are."""
    slots, query_lens, context_lens, samples = decodes
    token_ids = NO_TOKENS
    if chunks:
        slots = _join(slots, [chunk.sequence.slot for chunk in chunks])
        query_lens = _join(query_lens, [chunk.length for chunk in chunks])
        context_lens = _join(context_lens, [chunk.start for chunk in chunks])
        samples = np.concatenate((samples, np.array([chunk.samples for chunk in chunks], dtype=np.bool_)))
        token_ids = np.concatenate([_tokens_of(chunk) for chunk in chunks])
    return ScheduledBatch(
        step=step,
        slots=slots,
        query_lens=query_lens,
        context_lens=context_lens,
        samples=samples,
        num_decodes=len(decodes.slots),
        prefill_token_ids=token_ids,
        new_blocks=np.array(new_blocks, dtype=np.int32) if new_blocks else NO_BLOCKS,
        admissions=admissions,
    )


def slots_of(sequences: list[Sequence]) -> Int32Array:
    """The sequences' slots, in their order."""
    return np.fromiter([sequence.slot for sequence in sequences], dtype=np.int32, count=len(sequences))


def _join(decodes: Int32Array, chunks: list[int]) -> Int32Array:
    return np.concatenate((decodes, np.array(chunks, dtype=np.int32)))


def _tokens_of(chunk: Chunk) -> Int32Array:
    return np.array(chunk.sequence.token_ids[chunk.start : chunk.start + chunk.length], dtype=np.int32)
