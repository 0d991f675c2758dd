"""The sequences that wait for a slot: lower `priority` first, then by arrival.

A preempted sequence keeps its arrival order and so goes to the front of its priority.
"""

from __future__ import annotations

import heapq

from atom.model_engine.sequence import Sequence, SequenceStatus


class WaitingQueue:
    """A heap; a sequence that leaves from the middle is only marked (it is no longer WAITING) and skipped later."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Sequence]] = []
        self._num_left = 0

    def __len__(self) -> int:
        return len(self._heap) - self._num_left

    def push(self, sequence: Sequence) -> None:
        """Add a waiting sequence."""
        heapq.heappush(self._heap, (sequence.priority, sequence.order, sequence))

    def first(self) -> Sequence | None:
        """The sequence whose turn it is, None when none waits."""
        heap = self._heap
        while heap and heap[0][2].status is not SequenceStatus.WAITING:
            heapq.heappop(heap)
            self._num_left -= 1
        return heap[0][2] if heap else None

    def pop(self) -> Sequence:
        """Take out what `first` returned."""
        return heapq.heappop(self._heap)[2]

    def leave(self, sequence: Sequence) -> None:
        """The sequence ended while it waited; its status is no longer WAITING."""
        if sequence.status is SequenceStatus.WAITING:
            raise ValueError(f"sequence {sequence.request_id} still waits")
        self._num_left += 1

    def oldest_arrival(self) -> float:
        """Arrival time of the sequence that has waited longest; the queue is not empty."""
        return min(item[2].arrival_time for item in self._heap if item[2].status is SequenceStatus.WAITING)

    def num_tokens(self) -> int:
        """Tokens of all that wait."""
        return sum(len(item[2].token_ids) for item in self._heap if item[2].status is SequenceStatus.WAITING)
