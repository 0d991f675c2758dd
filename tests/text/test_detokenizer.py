"""What a stream shows is the decode of all ids, whatever the ids and the pieces."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from atom.text.detokenizer import Detokenizer
from atom.tokenizer import Tokenizer
from tests.text import vocabularies

FAMILIES = [
    vocabularies.byte_level,
    vocabularies.byte_fallback,
    vocabularies.metaspace,
    vocabularies.word_piece,
]


def streamed(tokenizer: Tokenizer, ids: list[int], cuts: list[int], skip_special_tokens: bool) -> str:
    detokenizer = Detokenizer(tokenizer, skip_special_tokens)
    borders = [0, *sorted(cut % (len(ids) + 1) for cut in cuts), len(ids)]
    pieces = [detokenizer.feed(ids[start:end]) for start, end in itertools.pairwise(borders)]
    return "".join(pieces) + detokenizer.finish()


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
@given(data=st.data(), skip=st.booleans())
@settings(max_examples=150, deadline=None)
def test_streamed_text_is_the_decode_of_all_ids(
    family: Callable[[], tokenizers.Tokenizer], data: st.DataObject, skip: bool
) -> None:
    tokenizer = Tokenizer(family())
    ids = data.draw(st.lists(st.integers(-2, tokenizer.vocab_size + 3), max_size=40))
    cuts = data.draw(st.lists(st.integers(0, 40), max_size=8))
    assert streamed(tokenizer, ids, cuts, skip) == tokenizer.decode(ids, skip)


@pytest.mark.parametrize(
    "family", [f for f in FAMILIES if f is not vocabularies.byte_fallback], ids=lambda f: f.__name__
)
@given(data=st.data(), skip=st.booleans())
@settings(max_examples=150, deadline=None)
def test_decode_is_the_librarys(family: Callable[[], tokenizers.Tokenizer], data: st.DataObject, skip: bool) -> None:
    backend = family()
    tokenizer = Tokenizer(backend)
    ids = data.draw(st.lists(st.integers(0, tokenizer.vocab_size + 3), max_size=40))
    assert tokenizer.decode(ids, skip) == backend.decode(ids, skip_special_tokens=skip)


@given(text=st.text(alphabet="ab c.é🧭東\n", max_size=30), skip=st.booleans())
@settings(max_examples=150, deadline=None)
def test_decode_is_the_librarys_with_byte_tokens_that_spell_characters(text: str, skip: bool) -> None:
    backend = vocabularies.byte_fallback()
    tokenizer = Tokenizer(backend)
    ids = tokenizer.encode(text, add_special_tokens=False)
    assert tokenizer.decode(ids, skip) == backend.decode(ids, skip_special_tokens=skip) == text
    assert streamed(tokenizer, ids, list(range(len(ids))), skip) == text


@given(raw=st.binary(max_size=24), cuts=st.lists(st.integers(0, 24), max_size=6))
@settings(max_examples=300, deadline=None)
def test_invalid_bytes_are_replaced_unit_by_unit(raw: bytes, cuts: list[int]) -> None:
    tokenizer = Tokenizer(vocabularies.byte_fallback())
    ids = [tokenizer.token_to_id("a"), *(tokenizer.token_to_id(f"<0x{byte:02X}>") for byte in raw)]
    assert all(token_id is not None for token_id in ids)
    assert streamed(tokenizer, ids, cuts, True) == (b"a" + raw).decode("utf-8", "replace")


def test_no_replacement_character_in_mid_stream() -> None:
    tokenizer = Tokenizer(vocabularies.byte_level())
    text = "Žluťoučký 東京 🧭 👩‍👩‍👧 ok"
    detokenizer = Detokenizer(tokenizer)
    deltas = [detokenizer.feed([token_id]) for token_id in tokenizer.encode(text)]
    assert "".join(deltas) == text
    assert not any("\ufffd" in delta for delta in deltas)


def test_at_most_one_character_waits() -> None:
    tokenizer = Tokenizer(vocabularies.byte_level())
    detokenizer = Detokenizer(tokenizer)
    ids = tokenizer.encode("🧭🧭")
    shown = ""
    for count, token_id in enumerate(ids, 1):
        shown += detokenizer.feed([token_id])
        so_far = b"".join(tokenizer.token_bytes(i) for i in ids[:count])
        assert shown == so_far.decode("utf-8", "ignore")


def test_an_answer_cut_inside_a_character_ends_with_one_replacement() -> None:
    tokenizer = Tokenizer(vocabularies.byte_level())
    ids = tokenizer.encode("ok 🧭")
    detokenizer = Detokenizer(tokenizer)
    assert detokenizer.feed(ids[:-1]) == "ok "
    assert detokenizer.finish() == "\ufffd"
    assert detokenizer.finish() == ""


def test_a_completion_keeps_the_space_of_its_first_word() -> None:
    tokenizer = Tokenizer(vocabularies.byte_fallback())
    ids = [tokenizer.token_to_id("▁ab")]
    assert Detokenizer(tokenizer).feed(ids) == "ab"
    assert Detokenizer(tokenizer, continues_text=True).feed(ids) == " ab"


def test_special_tokens_that_a_reader_needs_stay() -> None:
    tokenizer = Tokenizer(vocabularies.byte_level())
    end, bos = tokenizer.token_to_id("<|end|>"), tokenizer.token_to_id("<s>")
    assert end is not None and bos is not None
    ids = [bos, *tokenizer.encode("x"), end]
    assert Detokenizer(tokenizer, skip_special_tokens=True).feed(ids) == "x"
    assert Detokenizer(tokenizer, skip_special_tokens=False).feed(ids) == "<s>x<|end|>"
    assert Detokenizer(tokenizer, shown_special_ids=frozenset({end})).feed(ids) == "x<|end|>"
