"""Random prompts have exactly the length asked for, whatever the tokenizer, and the same seed gives the same ones."""

from __future__ import annotations

from pathlib import Path

import pytest
import tokenizers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers

from atom import builtin_model
from atom.benchmarks.prompts import (
    PromptWriter,
    RandomText,
    find_tokenizer,
    letter_words,
    load_prompt_writer,
)
from atom.tokenizer import Tokenizer, TokenizerError

CORPUS = ["the quick brown fox jumps over the lazy dog, and then it sleeps in the warm sun for an hour or two"] * 20
LENGTHS = [1, 2, 3, 17, 64, 65, 200]


def shipped() -> Tokenizer:
    return Tokenizer.load(builtin_model.resolve("atom-tiny").path)


def byte_level() -> Tokenizer:
    backend = tokenizers.Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<|end|>"],
        show_progress=False,
    )
    backend.train_from_iterator(CORPUS, trainer)
    return Tokenizer(backend)


def sentencepiece() -> Tokenizer:
    """Llama's layout: no splitting before the merges, a metaspace at the start, bytes for the rest, a first token."""
    backend = tokenizers.Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    backend.pre_tokenizer = pre_tokenizers.Split(Regex("▁"), "merged_with_next")
    byte_tokens = [f"<0x{value:02X}>" for value in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=600, special_tokens=["<unk>", "<s>", *byte_tokens], show_progress=False)
    backend.train_from_iterator(CORPUS, trainer)
    backend.pre_tokenizer = None  # type: ignore[assignment]  # the library's setter takes None
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    backend.decoder = decoders.Sequence(steps)
    start = backend.token_to_id("<s>")
    backend.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", start)])
    return Tokenizer(backend, {"bos_token": "<s>"})


def unigram() -> Tokenizer:
    backend = tokenizers.Tokenizer(models.Unigram())
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=120, unk_token="<unk>", special_tokens=["<unk>"], show_progress=False)
    backend.train_from_iterator(CORPUS, trainer)
    return Tokenizer(backend)


@pytest.mark.parametrize("make", [shipped, byte_level, sentencepiece, unigram])
def test_a_prompt_is_encoded_to_exactly_the_length_asked_for(make: object) -> None:
    tokenizer: Tokenizer = make()  # type: ignore[operator]  # a parameter of the test: a factory
    shortest = len(tokenizer.encode("")) + 1
    lengths = [length for length in LENGTHS if length >= shortest] * 10
    texts = RandomText(PromptWriter(tokenizer), seed=0).texts(lengths)
    assert [len(tokenizer.encode(text)) for text in texts] == lengths
    for text in texts:
        assert not set(tokenizer.encode(text, add_special_tokens=False)) & tokenizer.special_ids


def test_long_prompts_of_the_shipped_tokenizer() -> None:
    tokenizer = shipped()
    texts = RandomText(PromptWriter(tokenizer), seed=0).texts([1024] * 50)
    assert {len(tokenizer.encode(text)) for text in texts} == {1024}


def test_no_prompt_is_empty_where_the_length_can_not_be_met() -> None:
    """The first token of the tokenizer alone has length 1."""
    tokenizer = sentencepiece()
    (text,) = RandomText(PromptWriter(tokenizer), seed=0).texts([1])
    assert len(tokenizer.encode(text)) == 2


def test_prompt_i_depends_on_the_seed_and_i_alone() -> None:
    writer = PromptWriter(shipped())
    whole = RandomText(writer, seed=3).texts([20] * 6)
    assert RandomText(writer, seed=3).texts([20] * 2, first_index=4) == whole[4:]
    assert RandomText(writer, seed=3).texts([20] * 6) == whole
    assert len({*whole, *RandomText(writer, seed=4).texts([20] * 6)}) == 12


@pytest.mark.parametrize("make", [shipped, byte_level])
def test_all_prompts_begin_with_the_tokens_of_the_prefix(make: object) -> None:
    tokenizer: Tokenizer = make()  # type: ignore[operator]  # a parameter of the test: a factory
    text = RandomText(PromptWriter(tokenizer), seed=0)
    prefix = text.prefix(30)
    ids = [tokenizer.encode(one) for one in text.texts([50, 51, 52], prefix)]
    assert [len(one) for one in ids] == [50, 51, 52]
    assert ids[0][:30] == ids[1][:30] == ids[2][:30] == tokenizer.encode(prefix)
    assert ids[0][30:] != ids[1][30:50]
    assert text.prefix(0) == ""


@pytest.mark.parametrize("model", ["atom-tiny", "atom-tiny@kimi", "atom-tiny@glm"])
def test_the_chat_template_is_part_of_the_length(model: str) -> None:
    rendered = load_prompt_writer(model, use_chat_template=True, sends_messages=False)
    messages = load_prompt_writer(model, use_chat_template=True, sends_messages=True)
    for writer in (rendered, messages):
        texts = RandomText(writer, seed=0).texts([60, 61] * 10)
        assert writer.lengths(texts) == [60, 61] * 10
    (text,) = RandomText(rendered, seed=0).texts([60])
    assert text in rendered.write(text)[0] != text
    assert messages.write(text) == (text, 60)


def test_words_are_letters_and_no_special_token() -> None:
    words = letter_words(shipped())
    assert len(words) > 1000
    assert all(word.isalpha() and word.isascii() for word in words)


def test_a_vocabulary_without_letters_can_not_write_prompts() -> None:
    backend = tokenizers.Tokenizer(models.WordLevel({"1": 0, "2": 1}, unk_token="1"))
    with pytest.raises(TokenizerError, match="no token of letters"):
        letter_words(Tokenizer(backend))


def test_where_a_tokenizer_is(tmp_path: Path) -> None:
    assert find_tokenizer(str(tmp_path)) == (tmp_path, None)
    folder, template = find_tokenizer("atom-tiny@kimi")
    assert (folder / "tokenizer.json").is_file()
    assert template is not None
    assert template.name == "kimi.jinja"
    with pytest.raises(TokenizerError, match=r"no tokenizer for \./nowhere"):
        find_tokenizer("./nowhere")


def test_a_tokenizer_without_a_chat_template(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes((builtin_model.resolve("atom-tiny").path / "tokenizer.json").read_bytes())
    assert load_prompt_writer(str(tmp_path), use_chat_template=False, sends_messages=False).write("a")[0] == "a"
    with pytest.raises(TokenizerError, match="has no chat template"):
        load_prompt_writer(str(tmp_path), use_chat_template=True, sends_messages=False)
