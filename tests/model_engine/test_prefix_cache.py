from __future__ import annotations

import pytest

from atom.model_engine.prefix_cache import PrefixCache, PrefixHashes

SIZE = 4


def hashed(tokens: list[int], salt: str = "") -> PrefixHashes:
    hashes = PrefixHashes(SIZE, salt)
    hashes.extend(tokens, len(tokens) // SIZE)
    return hashes


def published(cache: PrefixCache, tokens: list[int], blocks: list[int], salt: str = "") -> PrefixHashes:
    hashes = hashed(tokens, salt)
    for block in blocks:
        cache.publish(hashes, block)
    return hashes


def found(cache: PrefixCache, tokens: list[int], salt: str = "") -> list[int]:
    return [entry.block_id for entry in cache.match(hashed(tokens, salt), len(tokens) // SIZE)]


def test_the_longest_common_beginning_is_found() -> None:
    cache = PrefixCache()
    published(cache, [*range(12)], [5, 6, 7])
    assert found(cache, [*range(12)]) == [5, 6, 7]
    assert found(cache, [*range(8), 99, 99, 99, 99]) == [5, 6]
    assert found(cache, [99, *range(1, 12)]) == []


def test_equal_tokens_after_another_beginning_are_not_found() -> None:
    cache = PrefixCache()
    published(cache, [0, 0, 0, 0, 1, 1, 1, 1], [1, 2])
    assert found(cache, [1, 1, 1, 1]) == []
    assert found(cache, [2, 2, 2, 2, 1, 1, 1, 1]) == []


def test_salts_keep_apart() -> None:
    cache = PrefixCache()
    published(cache, [*range(8)], [1, 2], salt="a")
    assert found(cache, [*range(8)], salt="b") == []
    assert found(cache, [*range(8)]) == []
    assert found(cache, [*range(8)], salt="a") == [1, 2]


def test_hashes_are_computed_once_and_grow_with_the_tokens() -> None:
    hashes = PrefixHashes(SIZE, "")
    hashes.extend([*range(7)], 1)
    first = hashes.hashes[0]
    hashes.extend([*range(12)], 3)
    assert hashes.hashes[0] == first
    assert hashes.hashes == hashed([*range(12)]).hashes


def test_a_second_block_of_equal_content_is_not_published() -> None:
    cache = PrefixCache()
    published(cache, [*range(8)], [1, 2])
    published(cache, [*range(8)], [3, 4])
    assert found(cache, [*range(8)]) == [1, 2]
    assert not cache.holds(3)
    assert len(cache) == 2


def test_a_forgotten_block_ends_the_walk() -> None:
    cache = PrefixCache()
    published(cache, [*range(12)], [1, 2, 3])
    cache.forget(2)
    assert found(cache, [*range(12)]) == [1]
    cache.forget(99)
    assert len(cache) == 2


def test_a_collision_is_no_hit(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a hash that always collides only equal tokens after the same entry may be found."""
    monkeypatch.setattr("atom.model_engine.prefix_cache.xxhash.xxh64_intdigest", lambda data: 7)
    cache = PrefixCache()
    published(cache, [1, 1, 1, 1], [1])
    assert found(cache, [2, 2, 2, 2]) == []
    assert found(cache, [1, 1, 1, 1]) == [1]
    published(cache, [2, 2, 2, 2], [2])
    assert found(cache, [1, 1, 1, 1]) == []
    assert found(cache, [2, 2, 2, 2]) == [2]
    assert len(cache) == 1
    cache.forget(1)
    assert found(cache, [2, 2, 2, 2]) == [2]


def test_a_block_found_by_a_colliding_hash_must_follow_the_very_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a hash that forgets the parent, the continuation of one prompt must not serve another."""
    monkeypatch.setattr("atom.model_engine.prefix_cache.xxhash.xxh64_intdigest", lambda data: sum(data[-16:]))
    cache = PrefixCache()
    published(cache, [1, 1, 1, 1, 3, 3, 3, 3], [1, 2])
    published(cache, [2, 2, 2, 2], [4])
    assert found(cache, [1, 1, 1, 1, 3, 3, 3, 3]) == [1, 2]
    assert found(cache, [2, 2, 2, 2, 3, 3, 3, 3]) == [4]
    published(cache, [2, 2, 2, 2, 3, 3, 3, 3], [5, 6])
    assert found(cache, [2, 2, 2, 2, 3, 3, 3, 3]) == [4, 6]
    assert not cache.holds(2)
