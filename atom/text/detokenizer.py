"""Token ids of one answer to text, as they come.

Owns the characters that are not whole yet: what `feed` returned so far and `finish` returns is the decode of all ids,
byte for byte, whatever the pieces. At most one incomplete character is held, and U+FFFD appears only where the ids
spell no valid UTF-8. Linear, and a look-up a token on the common path. Knows nothing of stop strings or formats.
"""

from __future__ import annotations

from codecs import utf_8_decode
from collections.abc import Sequence

from atom.token_pieces import as_text
from atom.tokenizer import Tokenizer


class Detokenizer:
    """The text of one answer.

    continues_text: the ids continue a text (a completion's prompt), so the first word keeps the space that
    sentencepiece vocabularies drop at the start of a text. shown_special_ids: special tokens that stay in the text even
    where skip_special_tokens drops the others, because a later stage reads them.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        skip_special_tokens: bool = True,
        continues_text: bool = False,
        shown_special_ids: frozenset[int] = frozenset(),
    ) -> None:
        self._pieces = tokenizer.pieces
        self._known = tokenizer.pieces.texts
        self._hidden = tokenizer.special_ids - shown_special_ids if skip_special_tokens else frozenset()
        self._at_start = not continues_text
        self._pending = b""  # the first bytes of a character that is not complete yet

    def feed(self, ids: Sequence[int]) -> str:
        """The text that these ids complete."""
        known, hidden = self._known, self._hidden
        parts: list[str] = []
        for token_id in ids:
            if token_id in hidden:
                continue
            if self._at_start:
                if not self._pieces.has_token(token_id):
                    continue
                self._at_start = False
                piece = as_text(self._pieces.first_bytes_of(token_id))
            else:
                piece = known.get(token_id) or self._pieces.text_of(token_id)
            if self._pending or isinstance(piece, bytes):
                piece = self._complete(piece)
            parts.append(piece)
        return "".join(parts)

    def finish(self) -> str:
        """What an answer that ends inside a character shows for it: U+FFFD."""
        pending, self._pending = self._pending, b""
        return pending.decode("utf-8", "replace")

    def _complete(self, piece: str | bytes) -> str:
        raw = self._pending + (piece.encode("utf-8") if isinstance(piece, str) else piece)
        text, used = utf_8_decode(raw, "replace", False)
        self._pending = raw[used:]
        return text
