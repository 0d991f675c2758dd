"""Log probabilities of an answer: which token's entry goes out with which text, and what an entry looks like.

Owns the two shapes (the four arrays of /v1/completions, the list of entries of chat) and the bookkeeping between tokens
and the text that the pipeline releases: an entry rides with the frame that completes its token's text. Knows nothing of
sampling or of frames.

A token's text in a completion is what it adds: joined, the tokens are the answer, also where a character spans tokens
(the last of them has it) or a stop string cuts one. Only an alternative is written out alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from atom.model_engine.messages import TokenLogprobs
from atom.text.detokenizer import Detokenizer
from atom.tokenizer import Tokenizer

LOWEST = -9999.0  # JSON has no -inf


@dataclass(slots=True)
class TokenEntry:
    """One token of an answer: the text it adds, where in the answer that starts (in characters), its probabilities."""

    text: str
    offset: int
    logprobs: TokenLogprobs | None


class LogprobTracker(Protocol):
    """Pairs tokens with released text."""

    def add(self, token_id: int, logprobs: TokenLogprobs) -> None:
        """A sampled token, in order; before the text that it completes is released."""

    def release(self, text: str) -> list[TokenEntry]:
        """The answer grew by `text`: the entries that are complete with it."""

    def end(self) -> None:
        """No token will follow; text that is still held may."""

    def finish(self, stop: TokenLogprobs | None) -> list[TokenEntry]:
        """All text is out: the entries that are left, `stop` being that of the token that ended the answer."""


class CompletionLogprobs:
    """For text completions: every sampled token has an entry, the one that ended the text included, with no text."""

    def __init__(self, detokenizer: Detokenizer, offset: int = 0) -> None:
        """`detokenizer`: a fresh one, like the pipeline's. `offset`: length of an echoed prompt."""
        self._detokenizer = detokenizer
        self._waiting: deque[TokenEntry] = deque()
        self._end_of_tokens = offset
        self._end_of_text = offset

    def add(self, token_id: int, logprobs: TokenLogprobs) -> None:
        """See LogprobTracker."""
        text = self._detokenizer.feed([token_id])
        self._waiting.append(TokenEntry(text, self._end_of_tokens, logprobs))
        self._end_of_tokens += len(text)

    def release(self, text: str) -> list[TokenEntry]:
        """See LogprobTracker."""
        self._end_of_text += len(text)
        ready = []
        while self._waiting and self._waiting[0].offset + len(self._waiting[0].text) <= self._end_of_text:
            ready.append(self._waiting.popleft())
        return ready

    def end(self) -> None:
        """See LogprobTracker."""
        rest = self._detokenizer.finish()
        if self._waiting:
            self._waiting[-1].text += rest

    def finish(self, stop: TokenLogprobs | None) -> list[TokenEntry]:
        """See LogprobTracker."""
        for entry in self._waiting:
            room = max(0, self._end_of_text - entry.offset)
            entry.text = entry.text[:room]
            entry.offset = min(entry.offset, self._end_of_text)
        entries = list(self._waiting)
        self._waiting.clear()
        if stop is not None:
            entries.append(TokenEntry("", self._end_of_text, stop))
        return entries


class ChatLogprobs:
    """For chat: entries of the tokens that make the message's content; thoughts, markup and the end token have none."""

    def __init__(self, detokenizer: Detokenizer) -> None:
        """`detokenizer`: a fresh one, like the pipeline's."""
        self._detokenizer = detokenizer
        self._waiting: deque[TokenEntry] = deque()
        self._text = ""  # of the waiting tokens
        self._start = 0  # offset of `_text` in all text

    def add(self, token_id: int, logprobs: TokenLogprobs) -> None:
        """See LogprobTracker."""
        text = self._detokenizer.feed([token_id])
        self._waiting.append(TokenEntry(text, self._start + len(self._text), logprobs))
        self._text += text

    def release(self, text: str) -> list[TokenEntry]:
        """See LogprobTracker."""
        place = self._text.find(text)
        if place < 0:  # text that no token spells, such as a replacement for a cut character
            return []
        first, last = self._start + place, self._start + place + len(text)
        ready = []
        while self._waiting and self._waiting[0].offset + len(self._waiting[0].text) <= last:
            entry = self._waiting.popleft()
            if entry.offset + len(entry.text) > first or (not entry.text and entry.offset >= first):
                ready.append(entry)
        self._drop_text(last)
        return ready

    def drop(self) -> None:
        """What waits turned out to be no content."""
        self._waiting.clear()
        self._drop_text(self._start + len(self._text))

    def end(self) -> None:
        """See LogprobTracker."""
        rest = self._detokenizer.finish()
        if self._waiting:
            self._waiting[-1].text += rest
            self._text += rest

    def finish(self, stop: TokenLogprobs | None) -> list[TokenEntry]:
        """See LogprobTracker."""
        self._waiting.clear()
        return []

    def _drop_text(self, end: int) -> None:
        """Forget text up to `end`, but keep what a waiting token still covers."""
        if self._waiting:
            end = min(end, self._waiting[0].offset)
        self._text = self._text[end - self._start :]
        self._start = end


def prompt_entries(
    tokenizer: Tokenizer, token_ids: Sequence[int], logprobs: Sequence[TokenLogprobs | None], skip_special_tokens: bool
) -> list[TokenEntry]:
    """Entries of an echoed prompt; the first has no probabilities."""
    detokenizer = Detokenizer(tokenizer, skip_special_tokens)
    entries: list[TokenEntry] = []
    offset = 0
    for token_id, token_logprobs in zip(token_ids, logprobs, strict=True):
        text = detokenizer.feed([token_id])
        entries.append(TokenEntry(text, offset, token_logprobs))
        offset += len(text)
    if entries:
        entries[-1].text += detokenizer.finish()
    return entries


def completion_arrays(tokenizer: Tokenizer, entries: Iterable[TokenEntry], num_top: int) -> dict[str, list[Any]]:
    """The `logprobs` object of a completion choice: four arrays of one length."""
    arrays: dict[str, list[Any]] = {"tokens": [], "token_logprobs": [], "top_logprobs": [], "text_offset": []}
    for entry in entries:
        arrays["tokens"].append(entry.text)
        arrays["text_offset"].append(entry.offset)
        known = entry.logprobs
        if known is None:
            arrays["token_logprobs"].append(None)
            arrays["top_logprobs"].append(None)
            continue
        top: dict[str, float] = {}
        for token_id, logprob in zip(known.top_ids[:num_top], known.top_logprobs, strict=False):
            text = entry.text if token_id == known.token_id else spell_alone(tokenizer.token_bytes(token_id))
            top.setdefault(text, finite(logprob))
        top.setdefault(entry.text, finite(known.logprob))
        arrays["token_logprobs"].append(finite(known.logprob))
        arrays["top_logprobs"].append(top)
    return arrays


def chat_entry(tokenizer: Tokenizer, entry: TokenEntry, num_top: int) -> dict[str, Any]:
    """One item of a chat choice's `logprobs.content`."""
    known = entry.logprobs
    assert known is not None  # only prompts have tokens without
    top = zip(known.top_ids[:num_top], known.top_logprobs, strict=False)
    return {
        **_chat_token(tokenizer, known.token_id, known.logprob),
        "top_logprobs": [_chat_token(tokenizer, token_id, logprob) for token_id, logprob in top],
    }


def _chat_token(tokenizer: Tokenizer, token_id: int, logprob: float) -> dict[str, Any]:
    spelling = tokenizer.token_bytes(token_id)
    text = spelling.decode("utf-8", "backslashreplace")
    return {"token": text, "logprob": finite(logprob), "bytes": list(spelling)}


def spell_alone(spelling: bytes) -> str:
    """A token outside any text: its characters, or `bytes:` and its bytes where it is no whole characters."""
    try:
        return spelling.decode("utf-8")
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in spelling)


def finite(logprob: float) -> float:
    """A log probability that JSON can carry."""
    return logprob if logprob > LOWEST else LOWEST
