"""Grammars, compiled for the model's vocabulary.

Owns the vocabulary as llguidance wants it, the compiled grammars by their text, and the matchers that follow one answer
each. A matcher that has ended goes back to its grammar: what its lexer has found out serves the next answer. Knows
neither slots nor logits, and no wire format.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import llguidance
import numpy as np
from numpy.typing import NDArray

from atom.sampling_params import AnswerGrammar

MOST_GRAMMARS = 128
MOST_SPARE_MATCHERS = 32

# Parts of the vocabulary that a grammar mostly allows or forbids as a whole: text inside JSON strings, also where a
# format's markup, which begins with < or ], must not occur in them. The short ones are allowed as a whole in strings of
# a limited length too: without a slice of them, a mask of 152,000 tokens takes 290 us in such answers instead of 85.
SLICES = [
    r'[^"\\\x00-\x1F\x7F<\]]{1,10}',
    r'[^"\\\x00-\x1F\x7F<\]]{1,30}',
    r'[^"\\\x00-\x1F\x7F]{1,30}',
]
# An object takes four items of a row for each of its properties that may be missing, and the library's own 2,000 end an
# answer at 500 of them: it compiles such a schema, so that nothing could refuse the request before.
LIMITS = llguidance.LLParserLimits(max_items_in_row=20_000, verbose_errors=False)


class GrammarError(ValueError):
    """A grammar that can not be compiled or followed; the message is for the request's sender."""


class Vocabulary(Protocol):
    """What of a tokenizer is used: `atom.tokenizer.Tokenizer`."""

    special_ids: frozenset[int]

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """Ids of a text."""
        ...

    def token_bytes(self, token_id: int) -> bytes:
        """What an id adds to a text."""
        ...


@dataclass(slots=True)
class CompiledGrammar:
    """A grammar and its matchers. `first` never moves.

    visible [W]: packed bits, 0 for the special tokens that are no part of the answer's text.
    """

    first: llguidance.LLMatcher
    visible: NDArray[np.int32]
    spare: list[llguidance.LLMatcher] = field(default_factory=list)


class Grammars:
    """The grammars of one model. Safe to use from several threads."""

    def __init__(self, load_vocabulary: Callable[[], Vocabulary], vocab_size: int, end_ids: Sequence[int]) -> None:
        """`vocab_size`: width of the logits. `end_ids`: tokens that end an answer, never part of its text."""
        self.vocab_size = vocab_size
        self.end_ids = tuple(end_ids)
        self._load = load_vocabulary
        self._compiled: OrderedDict[AnswerGrammar, CompiledGrammar] = OrderedDict()
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="grammars")

    def begin_loading(self) -> None:
        """Load the vocabulary in the background: it holds the interpreter for most of a second where it is large."""
        self._thread.submit(lambda: self._vocabulary)

    def prepare(self, grammar: AnswerGrammar) -> Future[None]:
        """Compile in the background. The future raises GrammarError when that fails."""
        return self._thread.submit(self._prepare, grammar)

    def _prepare(self, grammar: AnswerGrammar) -> None:
        self.compiled(grammar)

    def compiled(self, grammar: AnswerGrammar) -> CompiledGrammar:
        """The grammar as it was compiled before, or now. Raises GrammarError."""
        with self._lock:
            found = self._compiled.get(grammar)
            if found is not None:
                self._compiled.move_to_end(grammar)
                return found
        made = self._compile(grammar)
        with self._lock:
            self._compiled[grammar] = made
            while len(self._compiled) > MOST_GRAMMARS:
                self._compiled.popitem(last=False)
        return made

    def take(self, compiled: CompiledGrammar) -> llguidance.LLMatcher:
        """A matcher at the beginning of an answer."""
        with self._lock:
            if compiled.spare:
                return compiled.spare.pop()
        return compiled.first.deep_copy()

    def give_back(self, compiled: CompiledGrammar, matcher: llguidance.LLMatcher) -> None:
        """The matcher's answer has ended."""
        if matcher.is_error() or len(compiled.spare) >= MOST_SPARE_MATCHERS or not matcher.reset():
            return
        with self._lock:
            compiled.spare.append(matcher)

    def single_byte(self, byte: int) -> int | None:
        """The token of one byte."""
        return self._single_bytes.get(byte)

    def shutdown(self) -> None:
        """End the thread; what waits in it is dropped."""
        self._thread.shutdown(cancel_futures=True)

    def _compile(self, grammar: AnswerGrammar) -> CompiledGrammar:
        vocabulary, tokenizer = self._vocabulary
        matcher = llguidance.LLMatcher(tokenizer, grammar.text, log_level=0, limits=LIMITS)
        if matcher.is_error():
            raise GrammarError(f"the grammar can not be compiled: {matcher.get_error()}")
        hidden = vocabulary.special_ids.difference(grammar.text_token_ids, self.end_ids)
        is_visible = np.ones(-(-self.vocab_size // 32) * 32, dtype=np.bool_)
        is_visible[[token_id for token_id in hidden if token_id < self.vocab_size]] = False
        return CompiledGrammar(matcher, np.packbits(is_visible, bitorder="little").view(np.int32))

    @cached_property
    def _vocabulary(self) -> tuple[Vocabulary, llguidance.LLTokenizer]:
        if not self.end_ids:
            raise GrammarError("the model has no end-of-sequence token, so an enforced answer could not end")
        vocabulary = self._load()
        words = _Words(vocabulary, self.vocab_size, self.end_ids)
        tokenizer = llguidance.LLTokenizer(
            words,  # type: ignore[arg-type]  # duck-typed: the library's own class wants a tokenizer object to wrap
            n_vocab=self.vocab_size,
            eos_token=list(self.end_ids),
            slices=SLICES,
        )
        return vocabulary, tokenizer

    @cached_property
    def _single_bytes(self) -> dict[int, int]:
        vocabulary, _ = self._vocabulary
        tokens = ((vocabulary.token_bytes(token_id), token_id) for token_id in range(self.vocab_size))
        return {token[0]: token_id for token, token_id in tokens if len(token) == 1}


class _Words:
    """The vocabulary in the shape that LLTokenizer asks for.

    Every token but those that end an answer stands for the bytes that it adds to the text, special ones too: which of
    these a grammar's text may have differs between grammars.
    """

    is_tokenizer_wrapper = True
    bos_token_id = None

    def __init__(self, vocabulary: Vocabulary, vocab_size: int, end_ids: Sequence[int]) -> None:
        self.eos_token_id = end_ids[0]
        self.special_token_ids = list(end_ids)
        self.tokens = [vocabulary.token_bytes(token_id) for token_id in range(vocab_size)]
        self._vocabulary = vocabulary

    def __call__(self, text: str | bytes) -> list[int]:
        """How the model itself would spell a text that the grammar leaves no choice about."""
        spelt = text if isinstance(text, str) else text.decode("utf-8", "replace")
        return self._vocabulary.encode(spelt, add_special_tokens=False)
