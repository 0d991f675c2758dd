"""The pool of KV blocks: who holds which, which are free, and in what order free ones are used again.

Owns reference counts and the free lists; what a block holds is the prefix cache's subject. A freed block that is
published stays findable until it is taken, least recently freed first; blocks that hold nothing of use go before them.
"""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf

from atom.model_engine.prefix_cache import CachedBlock, PrefixCache, PrefixHashes
from atom.model_engine.sequence import Sequence


class BlockManager:
    """Allocates blocks of `block_size` tokens. With `caching` off no block is ever shared."""

    def __init__(self, num_blocks: int, block_size: int, caching: bool = True) -> None:
        if num_blocks < 1 or block_size < 1:
            raise ValueError(f"the KV cache needs blocks: got {num_blocks} blocks of {block_size} tokens")
        self.num_blocks = num_blocks
        self.block_size = block_size
        self.caching = caching
        self.cache = PrefixCache()
        self._ref_counts = [0] * num_blocks
        self._vacant = list(range(num_blocks - 1, -1, -1))
        self._reusable: dict[int, None] = {}

    @property
    def num_free(self) -> int:
        """Blocks that no sequence holds, reusable ones included."""
        return len(self._vacant) + len(self._reusable)

    @property
    def num_used(self) -> int:
        """Blocks that a sequence holds."""
        return self.num_blocks - self.num_free

    def blocks_for(self, num_tokens: int) -> int:
        """Blocks that hold `num_tokens` tokens."""
        return -(-num_tokens // self.block_size)

    def lookup(self, sequence: Sequence) -> list[CachedBlock]:
        """Published blocks that the sequence's known tokens begin with; never the block of the last token."""
        if not self.caching:
            return []
        hashes = sequence.hashes
        if hashes is None:
            hashes = sequence.hashes = PrefixHashes(self.block_size, sequence.cache_salt)
        if sequence.wants_prompt_logprobs:
            return []
        num_blocks = (len(sequence.token_ids) - 1) // self.block_size
        hashes.extend(sequence.token_ids, num_blocks)
        return self.cache.match(hashes, num_blocks)

    def admit(self, sequence: Sequence, reserve: int = 0) -> int | None:
        """Give the sequence blocks for all its tokens, shared ones first; returns the number of tokens already there.

        None, and nothing happens, when fewer than `reserve` blocks would stay free.
        """
        hits = self.lookup(sequence)
        num_new = self.blocks_for(len(sequence.token_ids)) - len(hits)
        num_free_hits = sum(1 for hit in hits if not self._ref_counts[hit.block_id])
        if num_new + num_free_hits + reserve > self.num_free:
            return None
        for hit in hits:
            self._claim(hit.block_id)
        blocks = [hit.block_id for hit in hits]
        blocks.extend(self._take() for _ in range(num_new))
        sequence.block_ids = blocks
        if hits and sequence.hashes is not None:
            sequence.hashes.num_published = len(hits)
            sequence.hashes.tail = hits[-1]
        return len(hits) * self.block_size

    def grow(self, sequence: Sequence, num_blocks: int) -> list[int] | None:
        """Append `num_blocks` blocks to the sequence's table and return them; None when the pool has fewer."""
        if num_blocks > self.num_free:
            return None
        blocks = [self._take() for _ in range(num_blocks)]
        sequence.block_ids.extend(blocks)
        return blocks

    def publish(self, sequence: Sequence, num_computed: int) -> None:
        """Make the sequence's full blocks among the first `num_computed` tokens findable."""
        hashes = sequence.hashes
        if hashes is None:
            return
        num_full = min(num_computed, len(sequence.token_ids)) // self.block_size
        hashes.extend(sequence.token_ids, num_full)
        for index in range(hashes.num_published, num_full):
            self.cache.publish(hashes, sequence.block_ids[index])

    def release(self, sequence: Sequence) -> None:
        """Take the sequence's blocks back. The end of a prompt is used again before its beginning."""
        self._free(sequence.block_ids)
        sequence.block_ids = []
        if sequence.hashes is not None:
            sequence.hashes.restart()

    def _take(self) -> int:
        if self._vacant:
            block = self._vacant.pop()
        else:
            block = next(iter(self._reusable))
            del self._reusable[block]
            self.cache.forget(block)
        self._ref_counts[block] = 1
        return block

    def _claim(self, block: int) -> None:
        if not self._ref_counts[block]:
            del self._reusable[block]
        self._ref_counts[block] += 1

    def _free(self, blocks: SequenceOf[int]) -> None:
        counts = self._ref_counts
        for block in reversed(blocks):
            counts[block] -= 1
            if not counts[block]:
                if self.cache.holds(block):
                    self._reusable[block] = None
                else:
                    self._vacant.append(block)
