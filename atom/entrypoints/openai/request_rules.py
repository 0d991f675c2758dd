"""Rules over several fields of a request, which spec/openapi.yaml states and a struct can not hold.

Each rule raises RuleError with the field's path. Knows neither the model's vocabulary nor its context length.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from atom_spec.openai import ChatCompletionRequest, CompletionRequest
from atom_spec.responses import ResponsesRequest

MAX_PROMPTS = 1024
OUTPUT_LOGPROBS = "message.output_text.logprobs"  # of a Responses request's `include`


class RuleError(ValueError):
    """A field that does not go with another one. `param` is its path."""

    def __init__(self, message: str, param: str) -> None:
        super().__init__(message)
        self.param = param


def check_rules(request: Any) -> None:
    """Raise RuleError when the request breaks a rule of its kind; a kind without rules passes."""
    rule = _RULES.get(type(request))
    if rule is not None:
        rule(request)


def _check_chat(request: ChatCompletionRequest) -> None:
    if request.messages is None and request.prompt is None:
        raise RuleError("messages is missing", "messages")
    if request.messages is not None and request.prompt is not None:
        raise RuleError("prompt is another name of messages: give one of them", "prompt")
    if request.top_logprobs and not request.logprobs:
        raise RuleError("top_logprobs needs logprobs to be true", "top_logprobs")
    _check_logit_bias(request.logit_bias)


def _check_completion(request: CompletionRequest) -> None:
    prompt = request.prompt
    if isinstance(prompt, list) and len({type(item) for item in prompt}) > 1:
        raise RuleError("prompt mixes texts, token ids and lists of token ids: give one kind", "prompt")
    if isinstance(prompt, list) and not isinstance(prompt[0], int) and len(prompt) > MAX_PROMPTS:
        raise RuleError(f"prompt takes at most {MAX_PROMPTS} prompts, got {len(prompt)}", "prompt")
    if request.best_of is not None and request.best_of != (request.n or 1):
        raise RuleError("best_of must be equal to n: there is no ranking of several samples", "best_of")
    _check_logit_bias(request.logit_bias)


def _check_response(request: ResponsesRequest) -> None:
    if request.previous_response_id is not None:
        why = "this server keeps no responses; send the whole conversation as input"
        raise RuleError(f"previous_response_id is not supported: {why}", "previous_response_id")
    if request.background:
        raise RuleError("background is not supported: nothing is kept that could be asked for later", "background")
    if request.truncation not in (None, "disabled"):
        raise RuleError("truncation must be 'disabled': nothing is ever cut from a prompt", "truncation")
    if request.top_logprobs and OUTPUT_LOGPROBS not in (request.include or ()):
        raise RuleError(f"top_logprobs needs include to have {OUTPUT_LOGPROBS!r}", "top_logprobs")


def _check_logit_bias(logit_bias: dict[str, float] | None) -> None:
    for key in logit_bias or ():
        if not (key.isascii() and key.isdigit() and len(key) <= 9):
            raise RuleError(f"logit_bias: {key[:40]!r} is no token id", "logit_bias")


_RULES: dict[type, Callable[[Any], None]] = {
    ChatCompletionRequest: _check_chat,
    CompletionRequest: _check_completion,
    ResponsesRequest: _check_response,
}
