"""How one request is sampled.

Owns the ranges of the sampling parameters. Knows nothing of HTTP, text or tensors: the API fills it from a request, the
offline engine from the caller, and it travels to the engine process inside `EngineRequest` as it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

MAX_STOP_STRINGS = 16
MAX_LOGPROBS = 20
# Logits are divided by it; by less, they are no finite floats any more.
LEAST_REPETITION_PENALTY = 0.01


class AnswerGrammar(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an answer may look like: every prefix of its text must be one of the grammar's, and its end an end there.

    text: llguidance's Lark dialect; the answer as it is detokenized. text_token_ids: special tokens that are part of
    that text, because markup is spelt with them; no other special token can occur before the end.
    """

    text: str
    text_token_ids: tuple[int, ...] = ()


class SamplingParams(msgspec.Struct, frozen=True, omit_defaults=True):
    """Sampling parameters of one sequence. Raises ValueError that names the field when a value is out of range.

    temperature: 0 is argmax. max_tokens: new tokens, 0 scores the prompt only. top_k: -1 or 0 is off. top_p in (0, 1],
    min_p in [0, 1]. presence and frequency penalties in [-2, 2], over generated tokens; repetition_penalty in
    [0.01, 10000], over prompt and generated tokens. logit_bias: token id to bias in [-100, 100]. seed: any int64; None
    draws a fresh one.
    stop_strings match on text and are not returned unless include_stop_str_in_output. logprobs: number of alternatives
    a token besides the sampled one (0 gives the sampled one alone); None is off; values are of the raw distribution.
    prompt_logprobs: the same for the prompt's tokens. grammar: only tokens that it allows are sampled; it also says
    where the answer can end, so that min_tokens holds only as far as it can go on, and ignore_eos can not be met.
    """

    temperature: float = 1.0
    max_tokens: int = 64
    ignore_eos: bool = False
    stop_strings: Sequence[str] | str | None = None
    top_p: float = 1.0
    top_k: int = -1
    min_p: float = 0.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: dict[int, float] | None = None
    seed: int | None = None
    stop_token_ids: tuple[int, ...] = ()
    min_tokens: int = 0
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    skip_special_tokens: bool = True
    include_stop_str_in_output: bool = False
    grammar: AnswerGrammar | None = None

    def __post_init__(self) -> None:
        for name, low, high in _RANGES:
            value = getattr(self, name)
            if value is None:
                continue
            if not math.isfinite(value) or not low <= value <= high:
                raise ValueError(f"{name} must be between {low} and {high}, got {value}")
        if not 0.0 < self.top_p <= 1.0:
            raise ValueError(f"top_p must be in (0, 1], got {self.top_p}")
        for token, bias in (self.logit_bias or {}).items():
            if token < 0 or not math.isfinite(bias) or not -100.0 <= bias <= 100.0:
                raise ValueError(f"logit_bias[{token}] must map a token id to a value between -100 and 100, got {bias}")
        stops = self.stop_list
        if len(stops) > MAX_STOP_STRINGS:
            raise ValueError(f"stop takes at most {MAX_STOP_STRINGS} strings, got {len(stops)}")
        if any(not stop for stop in stops):
            raise ValueError("stop strings must not be empty")
        if self.min_tokens > self.max_tokens:
            raise ValueError(f"min_tokens ({self.min_tokens}) must not exceed max_tokens ({self.max_tokens})")
        if self.grammar is not None and self.ignore_eos:
            raise ValueError("ignore_eos can not be met where a grammar says how the answer ends")

    @property
    def stop_list(self) -> tuple[str, ...]:
        """The stop strings as a tuple, whichever way they were given."""
        if self.stop_strings is None:
            return ()
        return (self.stop_strings,) if isinstance(self.stop_strings, str) else tuple(self.stop_strings)

    @property
    def is_greedy(self) -> bool:
        """Whether the likeliest token is always taken."""
        return self.temperature == 0.0


_INT64 = 2**63 - 1
_RANGES: tuple[tuple[str, float, float], ...] = (
    ("temperature", 0.0, 100.0),
    ("max_tokens", 0, 2**31 - 1),
    ("top_p", 0.0, 1.0),
    ("top_k", -1, 2**31 - 1),
    ("min_p", 0.0, 1.0),
    ("presence_penalty", -2.0, 2.0),
    ("frequency_penalty", -2.0, 2.0),
    ("repetition_penalty", LEAST_REPETITION_PENALTY, 1e4),
    ("seed", -_INT64 - 1, _INT64),
    ("min_tokens", 0, 2**31 - 1),
    ("logprobs", 0, MAX_LOGPROBS),
    ("prompt_logprobs", 0, MAX_LOGPROBS),
)
