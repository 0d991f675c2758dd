"""A model folder's tokenizer: text to ids, ids to text, and the bytes behind every id.

Owns tokenizer.json (the `tokenizers` library) and what tokenizer_config.json says of special tokens. Imports no torch:
the API process uses it. Knows neither chat templates (it only hands their text out) nor streams; the pieces that
`token_pieces` computes are what an incremental detokenizer is built on.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import tokenizers

from atom.token_pieces import TokenPieces, pieces_for, token_of
from atom.tokenizer_conversion import ConversionError, convert_slow_tokenizer

logger = logging.getLogger(__name__)


class TokenizerError(ValueError):
    """A folder without a tokenizer that can be used; the message says what is missing."""


class Tokenizer:
    """A tokenizer that never cuts, never pads, and is safe to share between threads.

    `special_ids`: ids that skip_special_tokens drops. `vocab_size`: number of tokens, or one more than the
    largest added id.
    """

    def __init__(self, backend: tokenizers.Tokenizer, config: Mapping[str, Any] | None = None) -> None:
        """`config`: tokenizer_config.json's content, as far as there is one."""
        backend.no_truncation()
        backend.no_padding()
        config = config or {}
        self._backend = backend
        self.config = config
        self.bos_token = _token_text(config.get("bos_token"))
        self.eos_token = _token_text(config.get("eos_token"))
        self.pad_token = _token_text(config.get("pad_token"))
        self.unk_token = _token_text(config.get("unk_token"))
        self.bos_token_id = self._id_of(self.bos_token)
        self.eos_token_id = self._id_of(self.eos_token)
        self.pad_token_id = self._id_of(self.pad_token)
        self.special_ids = self._special_ids()
        self._beginning = self._find_beginning(add_bos=config.get("add_bos_token") is True)
        added = max(backend.get_added_tokens_decoder(), default=-1)
        self.vocab_size = max(backend.get_vocab_size(), added + 1)
        self.pieces: TokenPieces = pieces_for(backend)

    @classmethod
    def load(cls, path: str | Path, trust_remote_code: bool = False) -> Self:
        """The tokenizer of a local model folder. Raises TokenizerError when there is none that can be used.

        A folder without tokenizer.json is converted by transformers in a process of its own, which takes seconds.
        """
        folder = Path(path)
        file = folder / "tokenizer.json"
        if file.is_file():
            try:
                backend = tokenizers.Tokenizer.from_file(str(file))
            except Exception as error:  # the library raises plain Exception for a file that it can not read
                raise TokenizerError(f"{file} can not be read: {error}") from error
        else:
            try:
                backend = convert_slow_tokenizer(folder, trust_remote_code)
            except ConversionError as error:
                raise TokenizerError(str(error)) from error
        return cls(backend, read_tokenizer_config(folder))

    @property
    def chat_template(self) -> str | list[Any] | dict[str, Any] | None:
        """What tokenizer_config.json has under `chat_template`: a template, or several named ones."""
        return self.config.get("chat_template")

    @property
    def added_tokens(self) -> list[tokenizers.AddedToken]:
        """Tokens that are taken out of a text before it is read: the special ones, and others beside the vocabulary."""
        return list(self._backend.get_added_tokens_decoder().values())

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """Ids of `text`. Special tokens written out in the text become their ids.

        add_special_tokens: the tokenizer's own beginning, but never a second beginning-of-sequence token where the text
        spells one, and no end-of-sequence token: what is encoded here is always continued.
        """
        # Not `encode`: that one holds the GIL to the end, so that a thread which tokenizes megabytes stops all others.
        (encoding,) = self._backend.encode_batch_fast([text], add_special_tokens=False)
        ids: list[int] = encoding.ids
        return self._begin(ids) if add_special_tokens else ids

    def encode_batch(self, texts: Sequence[str], add_special_tokens: bool = True) -> list[list[int]]:
        """`encode` of each text, in parallel."""
        all_ids = [encoding.ids for encoding in self._backend.encode_batch_fast(list(texts), add_special_tokens=False)]
        return [self._begin(ids) for ids in all_ids] if add_special_tokens else all_ids

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        """Text of `ids`; each invalid UTF-8 unit is one U+FFFD; ids without a token give nothing."""
        hidden: Container[int] = self.special_ids if skip_special_tokens else ()
        return self.pieces.join(ids, hidden).decode("utf-8", "replace")

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes that the id adds to a text, other than at its start; empty for an id without a token."""
        return self.pieces.bytes_of(token_id)

    def id_to_token(self, token_id: int) -> str | None:
        """The vocabulary's own spelling of an id, None where there is none."""
        return token_of(self._backend, token_id)

    def token_to_id(self, token: str) -> int | None:
        """The id of a token in the vocabulary's own spelling, None where there is none."""
        token_id: int | None = self._backend.token_to_id(token)
        return token_id

    def _id_of(self, token: str | None) -> int | None:
        return None if token is None else self.token_to_id(token)

    def _special_ids(self) -> frozenset[int]:
        added = self._backend.get_added_tokens_decoder()
        ids = {token_id for token_id, token in added.items() if token.special}
        named = (self.bos_token_id, self.eos_token_id, self.pad_token_id)
        return frozenset(ids | {token_id for token_id in named if token_id is not None and token_id in added})

    def _find_beginning(self, add_bos: bool) -> list[int]:
        """The ids that the tokenizer puts before any text."""
        plain = self._backend.encode("a", add_special_tokens=False).ids
        whole = self._backend.encode("a", add_special_tokens=True).ids
        place = next((i for i in range(len(whole)) if whole[i : i + len(plain)] == plain), 0)
        beginning: list[int] = whole[:place]
        if add_bos and self.bos_token_id is not None and self.bos_token_id not in beginning:
            beginning = [self.bos_token_id, *beginning]
        return beginning

    def _begin(self, ids: list[int]) -> list[int]:
        beginning = self._beginning
        if beginning and beginning[-1] == self.bos_token_id and ids[:1] == beginning[-1:]:
            ids = ids[1:]
        return beginning + ids


def read_tokenizer_config(folder: Path) -> dict[str, Any]:
    """tokenizer_config.json over special_tokens_map.json; empty without either. Raises TokenizerError for bad JSON."""
    merged: dict[str, Any] = {}
    for name in ("special_tokens_map.json", "tokenizer_config.json"):
        file = folder / name
        if not file.is_file():
            continue
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise TokenizerError(f"{file} is not valid JSON: {error}") from error
        if not isinstance(content, dict):
            raise TokenizerError(f"{file} must hold a JSON object")
        merged.update({key: value for key, value in content.items() if value is not None})
    return merged


def _token_text(value: Any) -> str | None:
    """A special token's text: written as a string or as an object with `content`."""
    if isinstance(value, Mapping):
        value = value.get("content")
    return value if isinstance(value, str) else None
