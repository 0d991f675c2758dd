from __future__ import annotations

import pytest

from atom.model_engine.messages import EngineRequest
from atom.model_engine.sequence import Sequence, SequenceStatus
from atom.model_engine.waiting_queue import WaitingQueue
from atom.sampling_params import SamplingParams


def sequence(order: int, priority: int = 0, arrived: float = 0.0) -> Sequence:
    request = EngineRequest(str(order), [1], SamplingParams(), arrived, priority)
    return Sequence(request, order, frozenset(), 10, 0)


def drain(queue: WaitingQueue) -> list[int]:
    taken = []
    while queue.first() is not None:
        taken.append(queue.pop().order)
    return taken


def test_lower_priority_first_then_arrival() -> None:
    queue = WaitingQueue()
    for order, priority in enumerate([1, 0, 1, -1, 0]):
        queue.push(sequence(order, priority))
    assert drain(queue) == [3, 1, 4, 0, 2]


def test_one_that_ended_is_skipped_and_not_counted() -> None:
    queue = WaitingQueue()
    sequences = [sequence(order, arrived=10.0 - order) for order in range(3)]
    for one in sequences:
        queue.push(one)
    for index in (0, 2):
        sequences[index].status = SequenceStatus.FINISHED
        queue.leave(sequences[index])
    assert len(queue) == 1
    assert queue.oldest_arrival() == 9.0
    assert drain(queue) == [1]
    assert len(queue) == 0


def test_leaving_while_waiting_is_a_mistake() -> None:
    queue = WaitingQueue()
    one = sequence(0)
    queue.push(one)
    with pytest.raises(ValueError, match="still waits"):
        queue.leave(one)
