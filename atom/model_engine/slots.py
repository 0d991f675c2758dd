"""The slots of the running sequences and their numbers, one numpy array a number, indexed by slot.

A slot is a row of the runner's persistent state; the arrays here are the scheduler's view of the same rows. Knows
neither blocks nor when a sequence joins or leaves.
"""

from __future__ import annotations

import numpy as np

from atom.model_engine.sequence import Sequence


class SlotTable:
    """num_computed: tokens scheduled into the KV cache. capacity: tokens that the slot's blocks hold.

    max_length: most tokens of the sequence. samples_left: steps that may still sample for it, each worth a token at
    least; 0 means that it only waits for results.
    """

    def __init__(self, num_slots: int) -> None:
        self.sequences: list[Sequence | None] = [None] * num_slots
        self.num_computed = np.zeros(num_slots, dtype=np.int32)
        self.capacity = np.zeros(num_slots, dtype=np.int32)
        self.max_length = np.zeros(num_slots, dtype=np.int32)
        self.samples_left = np.zeros(num_slots, dtype=np.int32)
        self._free = list(range(num_slots - 1, -1, -1))

    @property
    def num_free(self) -> int:
        """Slots without a sequence."""
        return len(self._free)

    @property
    def num_taken(self) -> int:
        """Slots with a sequence."""
        return len(self.sequences) - len(self._free)

    def take(self, sequence: Sequence, num_computed: int, capacity: int) -> int:
        """Put a sequence whose tokens are all known into a free slot."""
        slot = self._free.pop()
        self.sequences[slot] = sequence
        self.num_computed[slot] = num_computed
        self.capacity[slot] = capacity
        self.max_length[slot] = sequence.max_length
        self.samples_left[slot] = sequence.max_length - len(sequence.token_ids)
        sequence.slot = slot
        return slot

    def give_back(self, sequence: Sequence) -> None:
        """The sequence leaves its slot."""
        self.sequences[sequence.slot] = None
        self._free.append(sequence.slot)
        sequence.slot = -1
