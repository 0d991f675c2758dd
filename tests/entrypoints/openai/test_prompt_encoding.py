"""Prompts read in parts have the ids of prompts read whole, and what was read is not read again."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers

from atom.builtin_model import resolve
from atom.entrypoints.openai.prompt_encoding import PromptEncoder
from atom.tokenizer import Tokenizer

SAMPLE = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n<think>a</think><tool_call>x</tool_call><|im_end|>\n"
PIECES = st.sampled_from(
    [
        "<|im_start|>",
        "<|im_end|>",
        "<think>",
        "</tool_call>",
        "<|im_",
        "start|>",
        "|>",
        "<",
        " ",
        "\n",
        "ab",
        "é",
        "1",
        "▁",
    ]
)
TEXTS = st.lists(PIECES, max_size=40).map("".join)


class Counting(Tokenizer):
    """Remembers what it was given to read."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.read: list[str] = []

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        self.read.append(text)
        return super().encode(text, add_special_tokens)

    def encode_batch(self, texts: Any, add_special_tokens: bool = True) -> list[list[int]]:
        self.read += texts
        return super().encode_batch(texts, add_special_tokens)


def shipped() -> Counting:
    return Counting.load(resolve("atom-tiny").path)


def of_words(added: list[AddedToken], scheme: str = "first", prepend: bool = False) -> Counting:
    """A tokenizer in the manner of sentencepiece: what begins a text is read differently."""
    vocabulary = {
        piece: place for place, piece in enumerate(["<unk>", "▁", "a", "b", "▁a", "ab", "▁ab", "\n", "|", ">", "<"])
    }
    backend = tokenizers.Tokenizer(
        models.Unigram([(piece, -float(place)) for piece, place in vocabulary.items()], unk_id=0, byte_fallback=False)
    )
    if prepend:
        backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    else:
        backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    backend.decoder = decoders.Metaspace()
    backend.add_special_tokens(added)
    return Counting(backend)


MARKS = [AddedToken(text, special=True, normalized=False) for text in ("<|im_start|>", "<|im_end|>", "<think>")]
TOKENIZERS = {
    "shipped": shipped(),
    "metaspace first": of_words(MARKS),
    "metaspace always": of_words(MARKS, "always"),
    "prepend": of_words(MARKS, prepend=True),
    "strips right": of_words([AddedToken("<|im_end|>", rstrip=True, normalized=False), *MARKS[::2]]),
}


@pytest.mark.parametrize("name", TOKENIZERS)
@given(texts=st.lists(TEXTS, min_size=1, max_size=4), part=st.integers(1, 20), budget=st.integers(0, 60))
def test_parts_are_the_whole(name: str, texts: list[str], part: int, budget: int) -> None:
    tokenizer = TOKENIZERS[name]
    encoder = PromptEncoder(tokenizer, SAMPLE, short=1, part=part, budget=budget)
    for text in (*texts, *texts):
        assert encoder.encode(text) == tokenizer.encode(text, add_special_tokens=False)


def test_a_longer_conversation_reads_only_what_is_new() -> None:
    tokenizer = shipped()
    encoder = PromptEncoder(tokenizer, SAMPLE)
    turns = [f"<|im_start|>user\n{place} {'word ' * 300}<|im_end|>\n" for place in range(8)]
    encoder.encode("".join(turns))
    tokenizer.read.clear()
    encoder.encode("".join(turns))
    assert tokenizer.read == []
    longer = "".join(turns) + "<|im_start|>user\nnew<|im_end|>\n"
    ids = encoder.encode(longer)
    assert 0 < sum(map(len, tokenizer.read)) < 2 * len(turns[0])
    assert ids == tokenizer.encode(longer, add_special_tokens=False)


def test_what_was_read_longest_ago_is_forgotten() -> None:
    tokenizer = shipped()
    encoder = PromptEncoder(tokenizer, SAMPLE, short=1, part=1, budget=30)
    for text in ("a" * 10, "b" * 10, "c" * 10, "a" * 10, "d" * 10):
        encoder.encode(text)
    tokenizer.read.clear()
    encoder.encode("a" * 10)
    assert tokenizer.read == []
    encoder.encode("b" * 10)
    assert tokenizer.read == ["b" * 10]


@pytest.mark.parametrize(
    "added",
    [
        AddedToken("<|im_start|>", lstrip=True, normalized=False),
        AddedToken("<|im_start|>", single_word=True, normalized=False),
        AddedToken("<|im_start|>", normalized=True),
    ],
)
def test_tokens_that_look_at_what_is_before_them_are_no_border(added: AddedToken) -> None:
    tokenizer = of_words([added])
    PromptEncoder(tokenizer, SAMPLE, short=1, part=1).encode(SAMPLE)
    assert tokenizer.read[-1] == SAMPLE


def test_tokens_that_overlap_are_no_border() -> None:
    tokenizer = of_words([*MARKS[:1], AddedToken("a<|im_", normalized=False)])
    text = "b<|im_start|>aa<|im_start|>b"
    encoder = PromptEncoder(tokenizer, SAMPLE, short=1, part=1)
    assert encoder.encode(text) == tokenizer.encode(text, add_special_tokens=False)


def test_many_threads_at_once() -> None:
    tokenizer = shipped()
    encoder = PromptEncoder(tokenizer, SAMPLE, short=1, part=4, budget=200)
    texts = [f"<|im_start|>user\n{'x' * place}<|im_end|>\n" * 5 for place in range(20)]
    wrong: list[str] = []

    def work() -> None:
        for text in texts * 3:
            if encoder.encode(text) != Tokenizer.encode(tokenizer, text, False):
                wrong.append(text)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
