"""Which full KV blocks hold which tokens, so that a prompt with a known beginning is not computed again.

A full block is known by the xxhash64 of its parent's hash and its token ids. A hash only finds a candidate: a hit also
compares the tokens, and the parent must be the very entry that the walk came from, so that neither an accidental nor a
crafted collision can hand out another prompt's cache. Owns the map; knows neither reference counts nor free blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xxhash


@dataclass(frozen=True, slots=True, eq=False)
class CachedBlock:
    """A published block. `parent` is the entry of the block before it, for a first block the request's salt."""

    block_id: int
    hash: int
    tokens: bytes
    parent: CachedBlock | str


class PrefixHashes:
    """The chained hashes of one sequence's full blocks, computed once each, and how far they are published.

    tail: entry of the last published (or matched) block, the salt while there is none.
    """

    __slots__ = ("block_size", "hashes", "num_published", "salt", "tail", "tokens")

    def __init__(self, block_size: int, salt: str) -> None:
        self.block_size = block_size
        self.salt = salt
        self.hashes: list[int] = []
        self.tokens: list[bytes] = []
        self.num_published = 0
        self.tail: CachedBlock | str = salt

    def extend(self, token_ids: Sequence[int], num_blocks: int) -> None:
        """Make sure that the first `num_blocks` blocks of `token_ids` are hashed."""
        done = len(self.hashes)
        if num_blocks <= done:
            return
        size = self.block_size
        data = np.asarray(token_ids[done * size : num_blocks * size], dtype=np.int32).tobytes()
        parent = self.hashes[-1] if done else xxhash.xxh64_intdigest(self.salt.encode())
        width = 4 * size
        for start in range(0, len(data), width):
            tokens = data[start : start + width]
            parent = xxhash.xxh64_intdigest(parent.to_bytes(8, "little") + tokens)
            self.hashes.append(parent)
            self.tokens.append(tokens)

    def restart(self) -> None:
        """Forget what is published: the sequence gave its blocks back. The hashes stay."""
        self.num_published = 0
        self.tail = self.salt


class PrefixCache:
    """hash -> published block."""

    def __init__(self) -> None:
        self._entries: dict[int, CachedBlock] = {}
        self._by_block: dict[int, CachedBlock] = {}

    def __len__(self) -> int:
        return len(self._by_block)

    def holds(self, block_id: int) -> bool:
        """Whether the block is published."""
        return block_id in self._by_block

    def match(self, hashes: PrefixHashes, num_blocks: int) -> list[CachedBlock]:
        """The longest run of published blocks that equals the beginning of the sequence, at most `num_blocks` long."""
        found: list[CachedBlock] = []
        parent: CachedBlock | str = hashes.salt
        for index in range(num_blocks):
            entry = self._entries.get(hashes.hashes[index])
            if entry is None or entry.tokens != hashes.tokens[index] or entry.parent != parent:
                break
            found.append(entry)
            parent = entry
        return found

    def publish(self, hashes: PrefixHashes, block_id: int) -> None:
        """Publish the sequence's next block, which `block_id` holds. A block of equal content stays the known one."""
        index = hashes.num_published
        key, tokens, parent = hashes.hashes[index], hashes.tokens[index], hashes.tail
        entry = self._entries.get(key)
        if entry is None or entry.tokens != tokens or entry.parent != parent:
            if entry is not None:
                del self._by_block[entry.block_id]
            entry = CachedBlock(block_id, key, tokens, parent)
            self._entries[key] = entry
            self._by_block[block_id] = entry
        hashes.num_published = index + 1
        hashes.tail = entry

    def forget(self, block_id: int) -> None:
        """The block is about to hold something else."""
        entry = self._by_block.pop(block_id, None)
        if entry is not None:
            del self._entries[entry.hash]
