"""What a request may ask for: sampling parameters, and how prompt and answer share the context.

Owns the order of defaults (request, the model's generation_config.json, the table), the clamping of max_tokens, and the
checks that need the model: ids inside the vocabulary, a prompt that fits. Ranges of single fields are the contract's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from atom.entrypoints.openai.errors import bad_request, context_length_exceeded
from atom.sampling_params import SamplingParams

DEFAULT_MAX_TOKENS = 256
# Below this the scaled logits of 32-bit floats overflow; the distribution is an argmax long before.
LEAST_TEMPERATURE = 1e-4
MOST_SEQUENCES = 1024
# Text with more characters than this for each token of the context is looked at before it is tokenized.
MOST_CHARACTERS_A_TOKEN = 16
_INT64 = 2**63

# Request field -> sampling parameter, where the names differ.
_COPIED = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "min_p": "min_p",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "repetition_penalty": "repetition_penalty",
    "seed": "seed",
    "min_tokens": "min_tokens",
    "ignore_eos": "ignore_eos",
    "skip_special_tokens": "skip_special_tokens",
    "include_stop_str_in_output": "include_stop_str_in_output",
}


def room_for_answer(num_prompt_tokens: int, max_model_len: int, asked: int, param: str) -> int:
    """max_tokens, cut down to what the context leaves. Raises ApiError 400 when the prompt alone leaves nothing."""
    room = max_model_len - num_prompt_tokens
    if room < min(asked, 1):
        raise context_length_exceeded(num_prompt_tokens, max_model_len, param)
    return min(asked, room)


def encode_prompt(encode: Callable[[str], list[int]], text: str, max_model_len: int, param: str) -> list[int]:
    """The ids of a prompt. Raises ApiError 400 for a text far too long, after a look at its beginning only.

    Tokenizing costs seconds a megabyte, and a body may have 32 of them. Anything that may fit is tokenized as a whole.
    """
    size = MOST_CHARACTERS_A_TOKEN * max_model_len
    if len(text) > size:
        num_tokens = len(encode(text[:size]))
        if num_tokens > 2 * max_model_len:
            raise context_length_exceeded(num_tokens * len(text) // size, max_model_len, param, about=True)
    return encode(text)


def asked_max_tokens(request: Any, default: int = DEFAULT_MAX_TOKENS) -> int:
    """How many tokens the request asks for; max_completion_tokens wins."""
    for name in ("max_completion_tokens", "max_tokens", "max_output_tokens"):
        asked = getattr(request, name, None)
        if asked is not None:
            return int(asked)
    return default


def sampling_params(
    request: Any,
    defaults: Mapping[str, float | int],
    *,
    max_tokens: int,
    vocab_size: int,
    logprobs: int | None = None,
    prompt_logprobs: int | None = None,
) -> SamplingParams:
    """The request's sampling parameters; fields that its kind lacks count as absent. Raises ApiError 400 by field."""
    values: dict[str, Any] = dict(defaults)
    values.update(
        (ours, given) for name, ours in _COPIED.items() if (given := getattr(request, name, None)) is not None
    )
    if 0.0 < values.get("temperature", 1.0) < LEAST_TEMPERATURE:
        values["temperature"] = 0.0
    if values.get("top_k") == 0:
        values["top_k"] = -1
    values["min_tokens"] = min(values.get("min_tokens", 0), max_tokens)
    stop = getattr(request, "stop", None) or getattr(request, "stop_sequences", None)
    values["stop_strings"] = (stop,) if isinstance(stop, str) else tuple(stop or ())
    values["stop_token_ids"] = tuple(getattr(request, "stop_token_ids", None) or ())
    check_token_ids(values["stop_token_ids"], vocab_size, "stop_token_ids")
    values["logit_bias"] = _logit_bias(getattr(request, "logit_bias", None), vocab_size)
    try:
        return SamplingParams(max_tokens=max_tokens, logprobs=logprobs, prompt_logprobs=prompt_logprobs, **values)
    except ValueError as error:
        raise bad_request(str(error), _field_of(str(error))) from None


def seed_of_sample(seed: int | None, sample: int) -> int | None:
    """The seed of one of n answers to a prompt: seed, seed + 1, …, within 64 bits."""
    return None if seed is None else (seed + sample + _INT64) % (2 * _INT64) - _INT64


def check_token_ids(ids: Sequence[int], vocab_size: int, param: str) -> None:
    """Raise ApiError 400 when an id is outside the vocabulary."""
    if ids and not (min(ids) >= 0 and max(ids) < vocab_size):
        wrong = next(token_id for token_id in ids if not 0 <= token_id < vocab_size)
        raise bad_request(f"{param}: token id {wrong} is outside the vocabulary of {vocab_size}", param)


def check_num_sequences(num_prompts: int, n: int) -> None:
    """Raise ApiError 400 when one request asks for more answers than the server gives at once."""
    if num_prompts * n > MOST_SEQUENCES:
        raise bad_request(f"{num_prompts} prompts with n={n} are more than {MOST_SEQUENCES} answers", "n")


def _logit_bias(given: Mapping[str, float] | None, vocab_size: int) -> dict[int, float] | None:
    if not given:
        return None
    bias: dict[int, float] = {}
    for key, value in given.items():
        if not (key.isascii() and key.isdigit()):
            raise bad_request(f"logit_bias: {key[:50]!r} is no token id", "logit_bias")
        bias[int(key)] = float(value)
    check_token_ids(list(bias), vocab_size, "logit_bias")
    return bias


def _field_of(message: str) -> str | None:
    """The field that a message of SamplingParams begins with."""
    word = message.split(maxsplit=1)[0].partition("[")[0]
    return word if word.isidentifier() else None
