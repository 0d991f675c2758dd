"""The tokenizer of atom-tiny: a byte-level BPE trained on the generator's own text, and a fast encoder for training.

Owns: added tokens and their ids, the splitting rule, tokenizer.json, and `FastEncoder`, which gives the same ids from a
cache. Does not know: the model, or what documents are about.

A space is a token of its own and never part of a word, so a word has the same tokens after a space, a quote, a newline
or an underscore, and copying it into a call is token for token. Every digit is one token. Only JSON punctuation may
join, with the space behind it; other punctuation stands alone.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import regex
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from tools.builtin_model.documents import training_document
from tools.builtin_model.render import Segment
from tools.builtin_model.templates import build
from tools.builtin_model.wire import DSML
from tools.builtin_model.words import Words

VOCAB_SIZE = 3072
TRAINING_DOCUMENTS = 30_000
MAX_POSITIONS = 4096

# (text, special): special where the family that the token comes from marks it so. Ids are the positions.
ADDED_TOKENS: tuple[tuple[str, bool], ...] = (
    ("<|endoftext|>", True),
    ("<|im_start|>", True),
    ("<|im_end|>", True),
    ("<think>", False),
    ("</think>", False),
    ("<tool_call>", False),
    ("</tool_call>", False),
    ("<arg_key>", False),
    ("</arg_key>", False),
    ("<arg_value>", False),
    ("</arg_value>", False),
    ("<|tool_calls_section_begin|>", True),
    ("<|tool_calls_section_end|>", True),
    ("<|tool_call_begin|>", True),
    ("<|tool_call_argument_begin|>", True),
    ("<|tool_call_end|>", True),
    ("<minimax:tool_call>", False),
    ("</minimax:tool_call>", False),
    (DSML, True),
    ("<|open|>", True),
    ("<|close|>", True),
    ("<|sep|>", True),
    ("<|end_of_msg|>", True),
)
TOKEN_IDS = {text: index for index, (text, _) in enumerate(ADDED_TOKENS)}
END_IDS = [TOKEN_IDS["<|im_end|>"], TOKEN_IDS["<|end_of_msg|>"], TOKEN_IDS["<|endoftext|>"]]

SPLIT_PATTERN = (
    r"\p{Lu}?[\p{Ll}\p{M}]+|\p{Lu}+(?!\p{Ll})|\p{L}+|\p{N}"
    r"|[{}\[\]\":,]+(?: [{}\[\]\":,]+)* ?|[<>/=]+|[^\p{L}\p{N}\s]|\n+|\s"
)


def train_tokenizer(num_documents: int = TRAINING_DOCUMENTS, vocab_size: int = VOCAB_SIZE, seed: int = 7) -> Tokenizer:
    """The tokenizer, trained on `num_documents` generated documents; the same seed gives the same vocabulary."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT_PATTERN), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[AddedToken(text, special=special, normalized=False) for text, special in ADDED_TOKENS],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_texts(num_documents, seed), trainer)
    return _with_special_flags(tokenizer)


def _texts(num_documents: int, seed: int) -> Iterator[str]:
    words = Words(random.Random(seed))
    for _ in range(num_documents):
        yield "".join(text for text, _ in training_document(words))


def _with_special_flags(tokenizer: Tokenizer) -> Tokenizer:
    """The trainer marks every added token special; set the flags as the families do."""
    data = json.loads(tokenizer.to_str())
    flags = dict(ADDED_TOKENS)
    for entry in data["added_tokens"]:
        entry["special"] = flags[entry["content"]]
    return Tokenizer.from_str(json.dumps(data, ensure_ascii=False))


def write_tokenizer(folder: Path, tokenizer: Tokenizer) -> None:
    """tokenizer.json and tokenizer_config.json (with the qwen chat template) in a Hugging Face folder."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "bos_token": None,
        "unk_token": None,
        "add_bos_token": False,
        "clean_up_tokenization_spaces": False,
        "model_max_length": MAX_POSITIONS,
        "chat_template": build("qwen"),
    }
    (folder / "tokenizer_config.json").write_text(
        json.dumps(config, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
    )


class FastEncoder:
    """Encodes like the tokenizer, much faster on text whose words repeat: one regex pass and a cache of pieces."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        added = "|".join(regex.escape(text) for text, _ in sorted(ADDED_TOKENS, key=lambda item: -len(item[0])))
        # The tokenizer cuts added tokens out first, so a run of < > / = must end before one.
        pattern = SPLIT_PATTERN.replace("[<>/=]+", f"(?:(?!{added})[<>/=])+")
        self._find = regex.compile(f"{added}|{pattern}").findall
        self._cache: dict[str, list[int]] = {text: [index] for text, index in TOKEN_IDS.items()}

    def encode(self, text: str) -> list[int]:
        """Token ids of the text, markers included."""
        cache, ids = self._cache, []
        for piece in self._find(text):
            known = cache.get(piece)
            if known is None:
                known = self._tokenizer.encode(piece, add_special_tokens=False).ids
                if len(cache) < 400_000:
                    cache[piece] = known
            ids += known
        return ids

    def encode_segments(self, segments: Sequence[Segment]) -> tuple[list[int], list[bool]]:
        """(ids, whether each is trained) of a document."""
        ids: list[int] = []
        trained: list[bool] = []
        for text, is_trained in segments:
            piece = self.encode(text)
            ids += piece
            trained += [is_trained] * len(piece)
        return ids, trained
