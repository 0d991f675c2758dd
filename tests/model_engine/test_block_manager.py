from __future__ import annotations

import pytest

from atom.model_engine.block_manager import BlockManager
from atom.model_engine.messages import EngineRequest
from atom.model_engine.sequence import Sequence
from atom.sampling_params import SamplingParams

SIZE = 4


def sequence(tokens: list[int], salt: str = "", **sampling: object) -> Sequence:
    request = EngineRequest("r", tokens, SamplingParams(**sampling), cache_salt=salt)  # type: ignore[arg-type]  # values of one Any dict
    return Sequence(request, 0, frozenset(), 1000, 0)


def admitted(manager: BlockManager, tokens: list[int], **options: object) -> Sequence:
    new = sequence(tokens, **options)  # type: ignore[arg-type]  # values of one Any dict
    assert manager.admit(new) is not None
    return new


def test_blocks_are_held_and_given_back() -> None:
    manager = BlockManager(4, SIZE)
    first = admitted(manager, [*range(9)])
    assert len(set(first.block_ids)) == 3
    assert (manager.num_used, manager.num_free) == (3, 1)
    assert manager.admit(sequence([1] * 5)) is None
    assert manager.num_free == 1
    manager.release(first)
    assert manager.num_free == 4
    assert first.block_ids == []


def test_a_prompt_is_shared_only_after_it_is_published() -> None:
    manager = BlockManager(16, SIZE)
    first = admitted(manager, [*range(12)])
    second = sequence([*range(12)])
    assert manager.admit(second) == 0
    manager.publish(first, 12)
    third = sequence([*range(12), 50])
    assert manager.admit(third) == 12
    assert third.block_ids[:3] == first.block_ids


def test_the_last_token_is_always_computed() -> None:
    manager = BlockManager(16, SIZE)
    first = admitted(manager, [*range(8)])
    manager.publish(first, 8)
    again = sequence([*range(8)])
    assert manager.admit(again) == 4
    assert again.block_ids[0] == first.block_ids[0]
    assert again.block_ids[1] != first.block_ids[1]


def test_only_full_blocks_of_known_tokens_are_published() -> None:
    manager = BlockManager(16, SIZE)
    first = admitted(manager, [*range(10)])
    manager.publish(first, 10)
    manager.publish(first, 12)
    assert len(manager.cache) == 2


def test_without_caching_nothing_is_shared() -> None:
    manager = BlockManager(16, SIZE, caching=False)
    first = admitted(manager, [*range(12)])
    manager.publish(first, 12)
    assert manager.admit(sequence([*range(12)])) == 0
    assert len(manager.cache) == 0


def test_salts_do_not_share() -> None:
    manager = BlockManager(16, SIZE)
    manager.publish(admitted(manager, [*range(12)], salt="a"), 12)
    assert manager.admit(sequence([*range(12)], salt="b")) == 0
    assert manager.admit(sequence([*range(12)], salt="a")) == 8


def test_prompt_logprobs_need_every_position() -> None:
    manager = BlockManager(16, SIZE)
    manager.publish(admitted(manager, [*range(12)]), 12)
    assert manager.admit(sequence([*range(12)], prompt_logprobs=0)) == 0


def test_freed_blocks_are_taken_least_recently_used_first_and_the_end_of_a_prompt_before_its_beginning() -> None:
    manager = BlockManager(6, SIZE)
    old = admitted(manager, [1] * 8)
    new = admitted(manager, [2] * 8)
    vacant = 6 - len(old.block_ids) - len(new.block_ids)
    old_blocks, new_blocks = old.block_ids, new.block_ids
    for one in (old, new):
        manager.publish(one, 8)
        manager.release(one)
    taken = sequence([3])
    manager.admit(taken)
    manager.grow(taken, vacant - 1)
    assert not {*taken.block_ids} & {*old_blocks, *new_blocks}
    assert manager.grow(taken, 4) == [old_blocks[1], old_blocks[0], new_blocks[1], new_blocks[0]]
    assert len(manager.cache) == 0
    assert manager.grow(taken, 1) is None


def test_a_hit_takes_a_freed_block_back() -> None:
    manager = BlockManager(4, SIZE)
    first = admitted(manager, [*range(12)])
    manager.publish(first, 12)
    manager.release(first)
    assert manager.num_free == 4
    again = sequence([*range(12), 12])
    assert manager.admit(again) == 12
    assert manager.num_free == 0
    # Both hold the shared blocks: they come back only with the last of them.
    manager.release(again)
    assert manager.num_free == 4


def test_hits_count_against_the_free_blocks_that_they_take() -> None:
    manager = BlockManager(3, SIZE)
    first = admitted(manager, [*range(8)])
    manager.publish(first, 8)
    manager.release(first)
    # One free hit and two new blocks are all three; with one in reserve it does not fit.
    assert manager.admit(sequence([*range(4), 9, 9, 9, 9, 9]), reserve=1) is None
    assert manager.admit(sequence([*range(4), 9, 9, 9, 9, 9])) == 4


def test_a_pool_needs_blocks() -> None:
    with pytest.raises(ValueError, match="0 blocks of 4"):
        BlockManager(0, 4)
