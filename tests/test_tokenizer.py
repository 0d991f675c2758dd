"""A model folder's tokenizer: files, special tokens, beginnings, bytes; and that it loads without torch."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tokenizers import processors

from atom.tokenizer import Tokenizer, TokenizerError
from tests.text import vocabularies


def folder(tmp_path: Path, config: dict[str, Any] | None = None, **special: Any) -> Path:
    vocabularies.byte_level().save(str(tmp_path / "tokenizer.json"))
    if config is not None:
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    if special:
        (tmp_path / "special_tokens_map.json").write_text(json.dumps(special))
    return tmp_path


def test_load_reads_special_tokens_in_either_spelling(tmp_path: Path) -> None:
    config = {"eos_token": {"content": "<|end|>", "lstrip": False}, "bos_token": None}
    tokenizer = Tokenizer.load(folder(tmp_path, config, bos_token="<s>", pad_token={"content": "</s>"}))
    assert (tokenizer.eos_token, tokenizer.bos_token, tokenizer.pad_token) == ("<|end|>", "<s>", "</s>")
    assert tokenizer.special_ids == {0, 1, 2}
    assert tokenizer.vocab_size == 331
    assert tokenizer.token_to_id("<tool call>") == 330
    assert tokenizer.id_to_token(330) == "<tool call>"


def test_ids_without_a_token(tmp_path: Path) -> None:
    tokenizer = Tokenizer.load(folder(tmp_path))
    for token_id in (-1, 331, 10**9):
        assert tokenizer.token_bytes(token_id) == b""
    assert tokenizer.id_to_token(331) is None
    assert tokenizer.id_to_token(-1) is None
    assert tokenizer.decode([331, *tokenizer.encode("x"), -1]) == "x"


def test_token_bytes_are_what_the_tokens_add() -> None:
    for backend, text in (
        (vocabularies.byte_level(), "a 東🧭 <tool call>"),
        (vocabularies.byte_fallback(), "ab 🧭東 a\n"),
    ):
        tokenizer = Tokenizer(backend)
        raw = b"".join(tokenizer.token_bytes(token_id) for token_id in tokenizer.encode(text))
        assert raw.decode("utf-8").removeprefix(" ") == text


def test_beginning_of_sequence_comes_once() -> None:
    backend = vocabularies.byte_level()
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    tokenizer = Tokenizer(backend, {"bos_token": "<s>", "eos_token": "</s>"})
    plain = tokenizer.encode("ab", add_special_tokens=False)
    assert tokenizer.encode("ab") == [1, *plain]
    assert tokenizer.encode("<s>ab") == [1, *plain]
    assert tokenizer.encode("<s><s>ab") == [1, 1, *plain]
    assert tokenizer.encode("ab</s>") == [1, *plain, 2]
    assert tokenizer.encode("<s>ab", add_special_tokens=False) == [1, *plain]
    assert tokenizer.encode_batch(["ab", "<s>ab"]) == [[1, *plain]] * 2


def test_add_bos_token_of_the_config() -> None:
    config = {"bos_token": "<s>", "add_bos_token": True}
    tokenizer = Tokenizer(vocabularies.byte_level(), config)
    assert tokenizer.encode("ab")[0] == 1
    assert tokenizer.encode("<s>ab").count(1) == 1
    assert 1 not in tokenizer.encode("ab", add_special_tokens=False)


def test_nothing_is_cut_or_padded(tmp_path: Path) -> None:
    path = folder(tmp_path) / "tokenizer.json"
    stored = json.loads(path.read_text())
    stored["truncation"] = {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0}
    stored["padding"] = {
        "strategy": {"Fixed": 64},
        "direction": "Right",
        "pad_to_multiple_of": None,
        "pad_id": 2,
        "pad_type_id": 0,
        "pad_token": "</s>",
    }
    path.write_text(json.dumps(stored))
    tokenizer = Tokenizer.load(tmp_path)
    text = "The quick brown fox jumps over it."
    assert tokenizer.decode(tokenizer.encode(text), skip_special_tokens=False) == text


def test_encode_in_many_threads() -> None:
    tokenizer = Tokenizer(vocabularies.byte_level())
    texts = [f"{sentence} {number}" for number in range(40) for sentence in vocabularies.SENTENCES]
    alone = [tokenizer.encode(text) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(tokenizer.encode, texts)) == alone


def test_other_threads_run_while_a_long_text_is_encoded() -> None:
    """No thread is made to give way here, so this one has a turn before the other has ended only if that lets it."""
    tokenizer = Tokenizer(vocabularies.byte_level())
    turns, num_encoded = threading.Event(), 0

    def encode() -> None:
        nonlocal num_encoded
        while num_encoded < 20 and not turns.is_set():
            tokenizer.encode("word " * 100_000)
            num_encoded += 1

    interval = sys.getswitchinterval()
    thread = threading.Thread(target=encode)
    sys.setswitchinterval(1000.0)
    try:
        thread.start()  # waits for the thread, which goes on to encode
        turns.set()
        thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert num_encoded < 20


def test_chat_template_is_handed_out(tmp_path: Path) -> None:
    assert Tokenizer.load(folder(tmp_path, {"chat_template": "x"})).chat_template == "x"
    assert Tokenizer(vocabularies.byte_level()).chat_template is None


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(TokenizerError, match=r"tokenizer\.json"):
        Tokenizer.load(tmp_path)
    folder(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text("[")
    with pytest.raises(TokenizerError, match=r"tokenizer_config\.json is not valid JSON"):
        Tokenizer.load(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text("[]")
    with pytest.raises(TokenizerError, match="JSON object"):
        Tokenizer.load(tmp_path)


def test_a_folder_without_any_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TokenizerError, match="not a folder"):
        Tokenizer.load(tmp_path / "absent")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2"}))
    with pytest.raises(TokenizerError, match=r"neither tokenizer\.json nor any of"):
        Tokenizer.load(tmp_path)


def test_a_tokenizer_that_can_not_be_converted_says_why(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2"}))
    (tmp_path / "vocab.json").write_text("{")
    with pytest.raises(TokenizerError, match=r"can not be converted: .*Error"):
        Tokenizer.load(tmp_path)


def test_a_folder_of_the_older_files_is_converted(tmp_path: Path) -> None:
    backend = vocabularies.byte_level()
    backend.model.save(str(tmp_path))
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2"}))
    config = {
        "tokenizer_class": "GPT2Tokenizer",
        "eos_token": "<|end|>",
        "bos_token": "<|end|>",
        "unk_token": "<|end|>",
    }
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    tokenizer = Tokenizer.load(tmp_path)
    text = "The quick 🧭 fox"
    assert tokenizer.encode(text) == backend.encode(text).ids
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_the_text_side_imports_no_torch() -> None:
    program = (
        "import sys\n"
        "import atom.tokenizer, atom.text.detokenizer, atom.text.stop_strings\n"
        "import atom.entrypoints.openai.pipeline, atom.entrypoints.openai.chat_profile\n"
        "import atom.entrypoints.openai.chat_encoder_adapters\n"
        "print([name for name in ('torch', 'transformers', 'triton', 'aiter', 'ray') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
