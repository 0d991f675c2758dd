"""What each token id adds to a text, as bytes.

Owns the two families of vocabularies: byte-level BPE, where a token is spelt in 256 printable characters that stand
for bytes, and all others, where the tokenizer's own decoder says what a token reads like and `<0xE2>` tokens stand for
single bytes. Knows no special tokens and no streams.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Container, Iterable
from typing import Any

import tokenizers

_MAX_ID = 2**32 - 1
_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def byte_alphabet() -> dict[str, int]:
    """Character to byte of byte-level BPE: printable Latin-1 is itself, the rest is U+0100 and on, in order."""
    itself = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    alphabet = {chr(byte): byte for byte in itself}
    others = [byte for byte in range(256) if byte not in set(itself)]
    alphabet.update({chr(0x100 + place): byte for place, byte in enumerate(others)})
    return alphabet


_ALPHABET = byte_alphabet()


class TokenPieces(ABC):
    """The bytes of every id, computed when first asked for. Ids without a token give b"".

    texts: `text_of` as far as it was asked for; a look-up there is the detokenizer's common path.
    """

    def __init__(self, backend: tokenizers.Tokenizer) -> None:
        self._backend = backend
        self._bytes: dict[int, bytes] = {}
        self.texts: dict[int, str | bytes] = {}

    def has_token(self, token_id: int) -> bool:
        """Whether the vocabulary has the id: the model's may be padded beyond it."""
        return self._token(token_id) is not None

    def text_of(self, token_id: int) -> str | bytes:
        """`bytes_of` as a string where it is whole characters by itself, else as bytes."""
        text = self.texts.get(token_id)
        if text is None:
            text = as_text(self.bytes_of(token_id))
            if text:
                self.texts[token_id] = text
        return text

    def bytes_of(self, token_id: int) -> bytes:
        """What the id adds in the middle of a text."""
        piece = self._bytes.get(token_id)
        if piece is None:
            token = self._token(token_id)
            if token is None:
                return b""
            piece = self._bytes[token_id] = self._spell(token)
        return piece

    def first_bytes_of(self, token_id: int) -> bytes:
        """What the id adds at a text's start, where sentencepiece vocabularies lose the space of a word."""
        return self.bytes_of(token_id)

    def join(self, ids: Iterable[int], hidden: Container[int] = ()) -> bytes:
        """The bytes of a whole text; ids in `hidden` are left out."""
        bytes_of = self.bytes_of
        shown = iter([token_id for token_id in ids if token_id not in hidden])
        start = next((self.first_bytes_of(token_id) for token_id in shown if self.has_token(token_id)), b"")
        return start + b"".join([bytes_of(token_id) for token_id in shown])

    def _token(self, token_id: int) -> str | None:
        return token_of(self._backend, token_id)

    @abstractmethod
    def _spell(self, token: str) -> bytes:
        """The bytes that the vocabulary writes as `token`."""


class ByteLevelPieces(TokenPieces):
    """Byte-level BPE. A token with a character outside the alphabet (an added one) is its own text."""

    def _spell(self, token: str) -> bytes:
        try:
            return bytes([_ALPHABET[character] for character in token])
        except KeyError:
            return token.encode("utf-8")


class DecodedPieces(TokenPieces):
    """Any other vocabulary: pieces are read off the tokenizer's decoder, one token behind a plain letter.

    Holds for decoders that look at one token at a time and at whether it is the first: Metaspace, Replace,
    ByteFallback, Fuse, Strip at the start, WordPiece. A run of byte tokens that is not valid UTF-8 is replaced unit by
    unit here, while the library gives up on the whole run: a stream can not take back characters that it has shown.
    """

    _ANCHOR = "a"

    def __init__(self, backend: tokenizers.Tokenizer, has_byte_tokens: bool) -> None:
        super().__init__(backend)
        self._has_byte_tokens = has_byte_tokens
        self._first: dict[int, bytes] = {}
        decoder = backend.decoder
        self._decode = decoder.decode if decoder is not None else " ".join
        self._anchor_size = len(self._decode([self._ANCHOR]))

    def first_bytes_of(self, token_id: int) -> bytes:
        """See TokenPieces."""
        piece = self._first.get(token_id)
        if piece is None:
            token = self._token(token_id)
            if token is None:
                return b""
            piece = self._high_byte(token) or self._decode([token]).encode("utf-8")
            self._first[token_id] = piece
        return piece

    def _spell(self, token: str) -> bytes:
        return self._high_byte(token) or self._decode([self._ANCHOR, token])[self._anchor_size :].encode("utf-8")

    def _high_byte(self, token: str) -> bytes | None:
        """The byte of a byte token that is no character by itself."""
        match = _BYTE_TOKEN.fullmatch(token) if self._has_byte_tokens else None
        return bytes([int(match[1], 16)]) if match and int(match[1], 16) >= 0x80 else None


def token_of(backend: tokenizers.Tokenizer, token_id: int) -> str | None:
    """The vocabulary's spelling of an id; None for a number that is none of its ids."""
    return backend.id_to_token(token_id) if 0 <= token_id <= _MAX_ID else None


def as_text(piece: bytes) -> str | bytes:
    """`piece` as a string when it is valid UTF-8, else itself."""
    try:
        return piece.decode("utf-8")
    except UnicodeDecodeError:
        return piece


def pieces_for(backend: tokenizers.Tokenizer) -> TokenPieces:
    """The pieces of a tokenizer, by the decoder that its file names."""
    kinds = _decoder_kinds(_decoder_settings(backend))
    if kinds == {"ByteLevel"}:
        return ByteLevelPieces(backend)
    return DecodedPieces(backend, has_byte_tokens="ByteFallback" in kinds)


def _decoder_settings(backend: tokenizers.Tokenizer) -> Any:
    """The `decoder` entry of tokenizer.json. Pickling is how the library hands out one component's JSON."""
    return None if backend.decoder is None else json.loads(backend.decoder.__getstate__())


def _decoder_kinds(settings: Any) -> set[str]:
    if not settings:
        return set()
    if settings["type"] == "Sequence":
        return set().union(*(_decoder_kinds(part) for part in settings["decoders"]))
    return {settings["type"]}
