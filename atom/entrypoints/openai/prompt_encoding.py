"""Prompts to token ids, with the parts of earlier prompts remembered.

An agent sends its whole conversation again with every turn, and asks for its count besides: what was read before need
not be read again. Owns where a prompt may be cut so that the parts' ids are the whole's: only before a special token
of the chat template that no other token can overlap; a tokenizer takes those out first, and reads what lies between
them piece by piece. Knows neither templates nor requests.
"""

from __future__ import annotations

import logging
import re
from array import array
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from threading import Lock

from tokenizers import AddedToken

from atom.tokenizer import Tokenizer

logger = logging.getLogger(__name__)

SHORT = 4096  # characters up to which remembering costs more than reading
PART = 1024  # a part has at least so many characters
BUDGET = 16_000_000  # characters of all parts that are remembered; with their ids, some five bytes each


class PromptEncoder:
    """`Tokenizer.encode` without the tokenizer's own beginning, for prompts; safe to share between threads.

    `sample`: a prompt of the model's template, where the special tokens to cut at are found. Without any, a prompt is
    one part.
    """

    def __init__(
        self, tokenizer: Tokenizer, sample: str, *, short: int = SHORT, part: int = PART, budget: int = BUDGET
    ) -> None:
        self._tokenizer = tokenizer
        self._short, self._part, self._budget = short, part, budget
        self._known: OrderedDict[str, array[int]] = OrderedDict()  # least recently used first
        self._num_known = 0
        self._lock = Lock()
        self._border = _border_pattern(tokenizer.added_tokens, sample)
        if self._border is not None and not self._agrees(sample):
            logger.warning("this tokenizer reads a prompt differently in parts: prompts are read whole")
            self._border = None

    def encode(self, text: str) -> list[int]:
        """The ids of a prompt."""
        if len(text) < self._short:
            return self._tokenizer.encode(text, add_special_tokens=False)
        parts = list(self._parts(text))
        ids: list[int] = []
        for known in self._ids_of(parts):
            ids.extend(known)
        return ids

    def _parts(self, text: str) -> Iterator[str]:
        """The text in parts. They depend on what comes before them only, so a longer prompt has the same, and more."""
        start = 0
        for border in self._border.finditer(text) if self._border is not None else ():
            if border.start() - start >= self._part:
                yield text[start : border.start()]
                start = border.start()
        yield text[start:]

    def _ids_of(self, parts: Sequence[str]) -> list[array[int]]:
        with self._lock:
            known = {part: self._known[part] for part in parts if part in self._known}
            for part in known:
                self._known.move_to_end(part)
        missing = [part for part in dict.fromkeys(parts) if part not in known]
        if len(missing) == 1:
            new = [self._tokenizer.encode(missing[0], add_special_tokens=False)]
        else:
            new = self._tokenizer.encode_batch(missing, add_special_tokens=False)
        known |= {part: array("I", ids) for part, ids in zip(missing, new, strict=True)}
        with self._lock:
            for part in missing:
                self._remember(part, known[part])
        return [known[part] for part in parts]

    def _remember(self, part: str, ids: array[int]) -> None:
        if part in self._known or len(part) > self._budget:
            return
        self._known[part] = ids
        self._num_known += len(part)
        while self._num_known > self._budget:
            forgotten, _ = self._known.popitem(last=False)
            self._num_known -= len(forgotten)

    def _agrees(self, sample: str) -> bool:
        """Whether the sample, cut wherever it may be, has the ids of the whole."""
        assert self._border is not None
        starts = [0, *(border.start() for border in self._border.finditer(sample)), len(sample)]
        parts = [sample[a:b] for a, b in pairwise(starts)]
        ids = [token_id for each in self._tokenizer.encode_batch(parts, add_special_tokens=False) for token_id in each]
        return ids == self._tokenizer.encode(sample, add_special_tokens=False)


def _border_pattern(tokens: Sequence[AddedToken], sample: str) -> re.Pattern[str] | None:
    """What matches the tokens of the sample that a text may be cut before; None when there is none."""
    texts = [token.content for token in tokens]
    borders = [
        token.content
        for token in tokens
        if token.content in sample
        and not (token.normalized or token.lstrip or token.single_word)
        # What follows must not be a space that the token before it takes, or a letter that goes on a word.
        and not re.match(r"[\w\s]", token.content)
        and not any(_overlaps(other, token.content) for other in texts)
    ]
    return re.compile("|".join(map(re.escape, borders))) if borders else None


def _overlaps(token: str, border: str) -> bool:
    """Whether `token`, found a little earlier, could reach over the place where `border` begins."""
    ends = (token[at:] for at in range(1, len(token)))
    return any(end.startswith(border) or border.startswith(end) for end in ends)
