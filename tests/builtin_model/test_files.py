from __future__ import annotations

import json
import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builtin_model.fixtures import FOLDER, encoder, model, tokenizer
from tools.builtin_model.documents import training_document
from tools.builtin_model.greedy import generate
from tools.builtin_model.model import config, save_model
from tools.builtin_model.vocabulary import ADDED_TOKENS, END_IDS, VOCAB_SIZE
from tools.builtin_model.words import Words


def test_the_weights_fit_the_promised_size() -> None:
    assert (FOLDER / "model.safetensors").stat().st_size <= 16_000_000


def test_the_configuration_is_the_one_that_training_writes() -> None:
    assert json.loads((FOLDER / "config.json").read_text()) == config(model().shape)
    generation = json.loads((FOLDER / "generation_config.json").read_text())
    assert generation["eos_token_id"] == END_IDS
    assert [tokenizer().id_to_token(i) for i in END_IDS] == ["<|im_end|>", "<|end_of_msg|>", "<|endoftext|>"]


def test_saving_and_loading_keeps_every_weight(tmp_path: pytest.TempPathFactory) -> None:
    save_model(model(), tmp_path)  # type: ignore[arg-type]  # a fixture's stand-in model
    assert (tmp_path / "model.safetensors").read_bytes() == (FOLDER / "model.safetensors").read_bytes()  # type: ignore[operator]  # the constant is a folder


def test_transformers_runs_the_folder_with_the_same_result() -> None:
    """Qwen3ForCausalLM on our files and our own forward pass: the same greedy tokens."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    theirs = AutoModelForCausalLM.from_pretrained(FOLDER, dtype=torch.float32)
    loaded = AutoTokenizer.from_pretrained(FOLDER)
    prompt = loaded.apply_chat_template(
        [{"role": "user", "content": "What is 27 + 58?"}],
        add_generation_prompt=True,
        enable_thinking=True,
        tokenize=False,
    )
    assert isinstance(prompt, str)
    ids = loaded(prompt, add_special_tokens=False).input_ids
    assert ids == encoder().encode(prompt)
    output = theirs.generate(torch.tensor([ids]), max_new_tokens=48, do_sample=False, eos_token_id=END_IDS)
    assert output[0, len(ids) :].tolist() == generate(model(), [ids], END_IDS, 48)[0]


def test_added_tokens_have_the_ids_and_flags_of_their_families() -> None:
    entries = json.loads((FOLDER / "tokenizer.json").read_text())["added_tokens"]
    assert [(entry["content"], entry["special"]) for entry in entries] == list(ADDED_TOKENS)
    assert [entry["id"] for entry in entries] == list(range(len(ADDED_TOKENS)))
    assert tokenizer().get_vocab_size() == VOCAB_SIZE


def test_special_tokens_vanish_and_plain_added_tokens_stay() -> None:
    text = "<think>a</think><tool_call>b</tool_call><|tool_calls_section_begin|>c<|open|>d<|im_end|>"
    ids = tokenizer().encode(text).ids
    assert tokenizer().decode(ids, skip_special_tokens=False) == text
    assert tokenizer().decode(ids, skip_special_tokens=True) == "<think>a</think><tool_call>b</tool_call>cd"


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
@settings(max_examples=150, deadline=None)
def test_any_text_survives_the_tokenizer(text: str) -> None:
    ids = tokenizer().encode(text).ids
    assert tokenizer().decode(ids, skip_special_tokens=False) == text
    assert encoder().encode(text) == ids


@given(st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_the_fast_encoder_agrees_on_training_text(seed: int) -> None:
    words = Words(random.Random(seed))
    segments = training_document(words)
    text = "".join(piece for piece, _ in segments)
    ids, trained = encoder().encode_segments(segments)
    assert ids == tokenizer().encode(text, add_special_tokens=False).ids
    assert len(ids) == len(trained)
    kept = tokenizer().decode(
        [i for i, is_trained in zip(ids, trained, strict=True) if is_trained], skip_special_tokens=False
    )
    assert kept == "".join(piece for piece, is_trained in segments if is_trained)


@pytest.mark.parametrize("word", ["weather", "Luigi", "mozzarella", "ß", "x7"])
def test_a_word_has_the_same_tokens_wherever_it_stands(word: str) -> None:
    alone = tokenizer().encode(word).ids
    for before, after in ((" ", " "), ('"', '"'), ("\n", "\n"), ("_", "_"), ('": "', '", '), (">", "</")):
        inside = tokenizer().encode(before + word + after).ids
        assert any(inside[i : i + len(alone)] == alone for i in range(len(inside)))


def test_every_digit_is_a_token() -> None:
    assert tokenizer().encode("20394").tokens == list("20394")
