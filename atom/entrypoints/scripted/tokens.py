"""Tokens for texts that no tokenizer would cut this way: pieces of text become ids behind the real vocabulary.

Owns those ids. The text stages see an ordinary tokenizer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import tokenizers

from atom.entrypoints.scripted.script import Script
from atom.token_pieces import TokenPieces, as_text
from atom.tokenizer import Tokenizer


class ScriptedTokenizer(Tokenizer):
    """A tokenizer whose vocabulary grows by every piece that a script asks for."""

    def __init__(self, backend: tokenizers.Tokenizer, config: Mapping[str, Any] | None = None) -> None:
        super().__init__(backend, config)
        self._own = self.pieces
        self._added = _AddedPieces(backend, self._own, self.vocab_size)
        self.pieces = self._added

    def ids_of(self, script: Script) -> list[int]:
        """The script's text as token ids, cut the way it asks for."""
        pieces = list(_cut(script))
        if not pieces:
            return self.encode(script.text, add_special_tokens=False)
        return [self._added.intern(piece) for piece in pieces]

    def id_to_token(self, token_id: int) -> str | None:
        """See Tokenizer; an added piece is spelt as its text."""
        if token_id < self.vocab_size:
            return super().id_to_token(token_id)
        return self._added.bytes_of(token_id).decode("utf-8", "backslashreplace")


class _AddedPieces(TokenPieces):
    """The real vocabulary's pieces, and behind them the added ones."""

    def __init__(self, backend: tokenizers.Tokenizer, own: TokenPieces, vocab_size: int) -> None:
        super().__init__(backend)
        self._own = own
        self._first_id = vocab_size
        self._pieces_added: list[bytes] = []
        self._ids: dict[bytes, int] = {}
        self.texts = own.texts

    def intern(self, piece: bytes) -> int:
        """The id of a piece, the same each time."""
        token_id = self._ids.get(piece)
        if token_id is None:
            token_id = self._ids[piece] = self._first_id + len(self._pieces_added)
            self._pieces_added.append(piece)
        return token_id

    def has_token(self, token_id: int) -> bool:
        return self._own.has_token(token_id) or self._added(token_id) is not None

    def _spell(self, token: str) -> bytes:
        return self._own._spell(token)

    def text_of(self, token_id: int) -> str | bytes:
        added = self._added(token_id)
        return self._own.text_of(token_id) if added is None else as_text(added)

    def bytes_of(self, token_id: int) -> bytes:
        added = self._added(token_id)
        return self._own.bytes_of(token_id) if added is None else added

    def first_bytes_of(self, token_id: int) -> bytes:
        added = self._added(token_id)
        return self._own.first_bytes_of(token_id) if added is None else added

    def _added(self, token_id: int) -> bytes | None:
        place = token_id - self._first_id
        return self._pieces_added[place] if 0 <= place < len(self._pieces_added) else None


def _cut(script: Script) -> Iterator[bytes]:
    """The pieces that the script asks for; none when the tokenizer is to cut."""
    text = script.text
    if script.byte_chunk is not None:
        raw = text.encode()
        yield from (raw[at : at + script.byte_chunk] for at in range(0, len(raw), script.byte_chunk))
    elif script.chunk is not None:
        yield from (text[at : at + script.chunk].encode() for at in range(0, len(text), script.chunk))
    elif script.cuts is not None:
        borders = [0, *sorted(set(script.cuts)), len(text)]
        yield from (text[a:b].encode() for a, b in pairwise(borders))
