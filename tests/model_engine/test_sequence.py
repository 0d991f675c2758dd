from __future__ import annotations

import pytest

from atom.model_engine.messages import EngineRequest, TokenLogprobs
from atom.model_engine.sequence import Sequence, stop_ids_for
from atom.sampling_params import SamplingParams

EOS = frozenset({9})


def sequence(prompt_len: int = 2, limit: int = 100, **sampling: object) -> Sequence:
    params = SamplingParams(**sampling)  # type: ignore[arg-type]  # values of one Any dict
    return Sequence(EngineRequest("r", [1] * prompt_len, params), 0, stop_ids_for(params, EOS), limit, 0)


def test_a_stop_token_ends_an_accepted_run_and_is_not_kept() -> None:
    one = sequence(max_tokens=3)
    assert one.append([5]) == 1
    assert one.append([6, 9, 7]) == 1
    assert one.output_token_ids == [5, 6]
    assert (one.finish_reason, one.stop_token) == ("stop", 9)


def test_max_tokens_cuts_an_accepted_run() -> None:
    one = sequence(max_tokens=2)
    one.append([5])
    assert one.append([6, 7, 8]) == 1
    assert one.output_token_ids == [5, 6]
    assert (one.finish_reason, one.stop_token) == ("length", None)


def test_ignore_eos_goes_on_to_the_limit() -> None:
    one = sequence(max_tokens=4, ignore_eos=True)
    assert one.append([5, 6, 9, 7]) == 4
    assert (one.output_token_ids, one.finish_reason) == ([5, 6, 9, 7], "length")


def test_own_stop_tokens_work_with_ignore_eos() -> None:
    one = sequence(ignore_eos=True, stop_token_ids=(4,))
    one.append([9, 4])
    assert (one.output_token_ids, one.stop_token) == ([9], 4)


def test_a_stop_token_within_min_tokens_is_an_ordinary_token() -> None:
    one = sequence(min_tokens=2, max_tokens=5)
    assert one.append([9, 9, 9, 3]) == 2
    assert (one.output_token_ids, one.stop_token) == ([9, 9], 9)


def test_a_stop_token_right_after_the_last_possible_token_does_not_count() -> None:
    one = sequence(max_tokens=1)
    one.append([5, 9])
    assert (one.finish_reason, one.stop_token) == ("length", None)


def test_the_context_limit_ends_with_length() -> None:
    one = sequence(prompt_len=3, limit=5, max_tokens=50)
    assert one.append([5, 6, 7]) == 2
    assert one.finish_reason == "length"


def entry(position: int) -> TokenLogprobs:
    return TokenLogprobs(position, -1.0, 1, [], [])


def test_prompt_logprobs_are_put_together_from_chunks() -> None:
    one = sequence(prompt_len=5, prompt_logprobs=0)
    assert one.wants_prompt_logprobs
    one.add_prompt_logprobs(0, [entry(1), entry(2)])
    one.add_prompt_logprobs(0, [entry(1), entry(2), entry(3)])
    one.add_prompt_logprobs(3, [entry(4)])
    assert one.prompt_logprobs == [None, entry(1), entry(2), entry(3), entry(4)]
    assert not one.wants_prompt_logprobs


def test_the_token_after_the_prompt_is_no_prompt_logprob() -> None:
    one = sequence(prompt_len=3, prompt_logprobs=0)
    one.add_prompt_logprobs(0, [entry(1), entry(2), entry(3)])
    assert one.prompt_logprobs == [None, entry(1), entry(2)]


def test_a_chunk_behind_the_prompt_has_none() -> None:
    one = sequence(prompt_len=3, prompt_logprobs=0)
    one.add_prompt_logprobs(0, [entry(1), entry(2)])
    one.add_prompt_logprobs(7, [])
    assert one.prompt_logprobs == [None, entry(1), entry(2)]


def test_a_missing_chunk_is_an_error() -> None:
    with pytest.raises(ValueError, match="positions 1 to 2"):
        sequence(prompt_len=5, prompt_logprobs=0).add_prompt_logprobs(2, [entry(3)])
