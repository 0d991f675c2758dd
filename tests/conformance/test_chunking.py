"""Chunkings are lossless, and cut where they say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.chunking import (
    BY_CHARACTER,
    WHOLE,
    Chunking,
    all_chunkings,
    at_offsets,
    at_random,
    at_tokens,
    in_pieces,
)


@pytest.mark.parametrize("chunking", all_chunkings(7), ids=lambda chunking: chunking.name)
@given(text=st.text(max_size=60))
def test_pieces_concatenate_to_the_text(chunking: Chunking, text: str) -> None:
    assert "".join(chunking.cut(text)) == text


def test_pieces_have_the_size_that_they_are_named_after() -> None:
    assert in_pieces(3).cut("abcdefg") == ["abc", "def", "g"]
    assert BY_CHARACTER.cut("abc") == ["a", "b", "c"]
    assert WHOLE.cut("abc") == ["abc"]


def test_a_vectors_own_offsets_are_used_and_others_ignored() -> None:
    assert at_offsets([5, 2, 0, 99]).cut("abcdefg") == ["ab", "cde", "fg"]


def test_random_cuts_depend_on_seed_and_text_alone() -> None:
    text = "the same text" * 20
    assert at_random(1).cut(text) == at_random(1).cut(text)
    assert at_random(1).cut(text) != at_random(2).cut(text)
    assert "" in at_random(1).cut(text)


def test_token_borders_are_the_shipped_tokenizers() -> None:
    assert len(at_tokens().cut("Let me look that up for you.")) > 4


def test_a_character_of_several_tokens_is_one_piece() -> None:
    assert all(piece.isprintable() for piece in at_tokens().cut("日本 🎈"))
