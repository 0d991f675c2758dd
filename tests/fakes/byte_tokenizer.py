"""A real tokenizer over raw bytes: one id a byte, and a few special tokens behind them.

So a test can cut a text anywhere, also inside a character, and knows every id without a model.
"""

from __future__ import annotations

from typing import Any, TypeVar

import tokenizers
from tokenizers import AddedToken, decoders, models, pre_tokenizers

from atom.token_pieces import byte_alphabet
from atom.tokenizer import Tokenizer

EOS, BOS = 256, 257
SPECIAL = ("<|end|>", "<|begin|>", "<|role|>")
T = TypeVar("T", bound=Tokenizer)


def byte_backend() -> tokenizers.Tokenizer:
    """What a tokenizer.json would hold: ids 0 … 255 are the bytes, then `SPECIAL`."""
    backend = tokenizers.Tokenizer(models.BPE(vocab=byte_alphabet(), merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([AddedToken(text, special=True) for text in SPECIAL])
    return backend


def byte_tokenizer(kind: type[T] = Tokenizer, **config: Any) -> T:  # type: ignore[assignment]  # values of one Any dict
    """The tokenizer. `config`: more members of tokenizer_config.json."""
    return kind(byte_backend(), {"eos_token": SPECIAL[0], **config})
