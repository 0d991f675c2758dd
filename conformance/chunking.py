"""The ways in which a text reaches a reader: whole, or in pieces.

Owns where a text is cut. Every chunking is lossless: the pieces concatenate to the text. Knows nothing of what the
text means.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from tokenizers import Tokenizer

from atom import builtin_model

PIECE_SIZES = (1, 3, 7, 16)


@dataclass(frozen=True, slots=True)
class Chunking:
    """A named way to cut; `cut(text)` gives pieces that concatenate to `text`."""

    name: str
    cut: Callable[[str], list[str]]


def cut_at(text: str, offsets: Iterable[int]) -> list[str]:
    """`text` cut at character offsets, in any order; offsets outside the text cut nothing."""
    borders = [0, *sorted({offset for offset in offsets if 0 < offset < len(text)}), len(text)]
    return [text[start:end] for start, end in pairwise(borders)]


def in_pieces(size: int) -> Chunking:
    """Pieces of `size` characters, the last one shorter."""
    return Chunking(str(size), lambda text: cut_at(text, range(size, len(text), size)))


def at_random(seed: int) -> Chunking:
    """Pieces of 0 to 12 characters, the same for the same seed and text; a token may add no text at all."""

    def cut(text: str) -> list[str]:
        rng = random.Random(f"{seed}:{text}")
        pieces, position = [], 0
        while position < len(text):
            size = rng.choice((0, 1, 1, 2, 3, 5, 8, 12))
            pieces.append(text[position : position + size])
            position += size
        return pieces

    return Chunking("random", cut)


def at_offsets(offsets: Iterable[int]) -> Chunking:
    """The cuts that a vector asks for, which lie inside markers."""
    chosen = tuple(offsets)
    return Chunking("splits", lambda text: cut_at(text, chosen))


@lru_cache(maxsize=1)
def shipped_tokenizer() -> Tokenizer:
    """The tokenizer of the model that ships with the package."""
    return Tokenizer.from_file(str(builtin_model.resolve(builtin_model.NAME).path / "tokenizer.json"))


def at_tokens() -> Chunking:
    """One piece a token of the shipped tokenizer; a token that ends inside a character waits for its end."""

    def cut(text: str) -> list[str]:
        offsets = shipped_tokenizer().encode(text, add_special_tokens=False).offsets
        return cut_at(text, (end for _, end in offsets))

    return Chunking("tokens", cut)


WHOLE = Chunking("whole", lambda text: [text])
BY_CHARACTER = in_pieces(1)


def all_chunkings(seed: int) -> tuple[Chunking, ...]:
    """Whole first, then every way of streaming."""
    return (WHOLE, *(in_pieces(size) for size in PIECE_SIZES), at_tokens(), at_random(seed))
