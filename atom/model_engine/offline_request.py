"""One request of the offline engine: its text as it comes, its stop strings and its times.

Knows tokens and text of one sequence; knows neither the scheduler nor other requests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from atom.model_engine.messages import FinishReason, TokenDelta, TokenLogprobs
from atom.model_engine.sequence import Sequence
from atom.text.detokenizer import Detokenizer
from atom.text.stop_strings import StopStrings
from atom.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class RequestOutput:
    """What a stream callback gets: the new text and tokens of one request, and on the last one why it ended."""

    request_id: str
    text: str
    output_tokens: list[int]
    finished: bool
    finish_reason: FinishReason | None
    num_cached_tokens: int


StreamCallback = Callable[[RequestOutput], None]


class OfflineRequest:
    """Follows a sequence from its first token to its end. Times are seconds of the clock that the caller reads."""

    def __init__(
        self, sequence: Sequence, tokenizer: Tokenizer, arrived: float, callback: StreamCallback | None
    ) -> None:
        sampling = sequence.sampling
        self.sequence = sequence
        self.logprobs: list[TokenLogprobs] = []
        self.finish_reason: FinishReason | None = None
        self._detokenizer = Detokenizer(tokenizer, sampling.skip_special_tokens, continues_text=True)
        self._stops = StopStrings(sampling.stop_list, sampling.include_stop_str_in_output)
        self._texts: list[str] = []
        self._token_ids: list[int] = []
        self._num_sampled = 0  # the stop token included, which is not among the ids
        self._arrived = arrived
        self._first_token_at: float | None = None
        self._last_token_at = arrived
        self._callback = callback

    def take(self, delta: TokenDelta, now: float) -> bool:
        """Take new tokens; returns whether a stop string ended the request, so that the engine must be told."""
        text = ""
        num_taken = len(delta.token_ids)
        for index, token in enumerate(delta.token_ids):
            may_stop = len(self._token_ids) + index + 1 >= self.sequence.sampling.min_tokens
            text += self._stops.feed(self._detokenizer.feed([token]), may_match=may_stop)
            if self._stops.matched is not None:
                num_taken = index + 1
                break
        self._token_ids += delta.token_ids[:num_taken]
        self.logprobs += (delta.logprobs or [])[:num_taken]
        num_sampled = num_taken + (delta.stop_token is not None)
        if num_sampled:
            self._num_sampled += num_sampled
            self._first_token_at = self._first_token_at or now
            self._last_token_at = now
        is_stopped = self._stops.matched is not None
        self.finish_reason = "stop" if is_stopped else delta.finish_reason
        if self.finish_reason is not None and not is_stopped:
            text += self._stops.feed(self._detokenizer.finish()) + self._stops.finish()
        self._texts.append(text)
        if self._callback is not None and (text or num_taken or self.finish_reason is not None):
            self._callback(self._output(text, delta.token_ids[:num_taken], delta.num_cached_tokens))
        return is_stopped and delta.finish_reason is None

    def _output(self, text: str, token_ids: list[int], num_cached_tokens: int) -> RequestOutput:
        is_finished = self.finish_reason is not None
        return RequestOutput(
            self.sequence.request_id, text, token_ids, is_finished, self.finish_reason, num_cached_tokens
        )

    def ended_sequence(self) -> Sequence:
        """The sequence as its caller gets it: the text filled in, nothing beyond a stop string's last token."""
        sequence = self.sequence
        sequence.text = "".join(self._texts)
        sequence.finish_reason = self.finish_reason
        del sequence.token_ids[sequence.num_prompt_tokens + len(self._token_ids) :]
        return sequence

    def summary(self) -> dict[str, Any]:
        """The entry of `LLMEngine.generate`. Times are in seconds; tpot is the mean time a token after the first."""
        sequence = self.sequence
        first = self._last_token_at if self._first_token_at is None else self._first_token_at
        entry: dict[str, Any] = {
            "text": "".join(self._texts),
            "token_ids": list(self._token_ids),
            "latency": self._last_token_at - self._arrived,
            "finish_reason": self.finish_reason,
            "num_tokens_input": sequence.num_prompt_tokens,
            "num_tokens_output": len(self._token_ids),
            "ttft": first - self._arrived,
            "tpot": (self._last_token_at - first) / max(self._num_sampled - 1, 1),
        }
        if sequence.sampling.logprobs is not None:
            entry["logprobs"] = self.logprobs
        if sequence.sampling.prompt_logprobs is not None:
            entry["prompt_logprobs"] = sequence.prompt_logprobs
        return entry
