from __future__ import annotations

import pytest

from atom.model_engine.messages import EngineRequest, TokenDelta, TokenLogprobs
from atom.model_engine.offline_request import OfflineRequest
from atom.model_engine.sequence import Sequence
from atom.sampling_params import SamplingParams
from tests.fakes.byte_tokenizer import byte_tokenizer

TOKENIZER = byte_tokenizer()


def request(**sampling: object) -> OfflineRequest:
    params = SamplingParams(**sampling)  # type: ignore[arg-type]  # values of one Any dict
    sequence = Sequence(EngineRequest("r", [1, 2], params), 0, frozenset(), 100, 0)
    return OfflineRequest(sequence, TOKENIZER, 10.0, None)


def entries(text: bytes) -> list[TokenLogprobs]:
    return [TokenLogprobs(token, -1.0, 1, [], []) for token in text]


def test_a_stop_string_inside_an_accepted_run_cuts_tokens_and_logprobs() -> None:
    one = request(stop_strings="ll", logprobs=0)
    one.sequence.append(b"hello you")
    assert one.take(TokenDelta("r", list(b"hello you"), logprobs=entries(b"hello you")), 11.0)
    summary = one.summary()
    assert (summary["text"], summary["finish_reason"]) == ("he", "stop")
    assert summary["token_ids"] == list(b"hell")
    assert summary["logprobs"] == entries(b"hell")
    assert one.ended_sequence().output_token_ids == list(b"hell")


def test_a_stop_string_with_the_last_token_needs_no_abort() -> None:
    one = request(stop_strings="lo")
    assert not one.take(TokenDelta("r", list(b"hello"), "length"), 11.0)
    assert one.summary()["finish_reason"] == "stop"


def test_times() -> None:
    one = request()
    one.take(TokenDelta("r", [104]), 10.5)
    one.take(TokenDelta("r", [105]), 11.0)
    one.take(TokenDelta("r", [], "stop", 256), 11.5)
    summary = one.summary()
    assert (summary["ttft"], summary["tpot"], summary["latency"]) == (0.5, 0.5, 1.5)
    assert (summary["text"], summary["num_tokens_output"]) == ("hi", 2)


def test_a_character_that_never_ends_is_shown_as_such() -> None:
    one = request()
    one.take(TokenDelta("r", [0xE4]), 11.0)
    assert one.summary()["text"] == ""
    one.take(TokenDelta("r", [], "length"), 11.0)
    assert one.summary()["text"] == "\ufffd"


def test_what_could_begin_a_stop_string_is_shown_at_the_end() -> None:
    one = request(stop_strings="<end>")
    one.take(TokenDelta("r", list(b"a<en")), 11.0)
    assert one.summary()["text"] == "a"
    one.take(TokenDelta("r", [], "length"), 12.0)
    assert one.summary()["text"] == "a<en"


@pytest.mark.parametrize(
    ("stops", "text", "num_tokens"),
    [
        (["wo"], "Hello ", 2),
        ([". N"], "Hello world", 3),
        (["line"], "Hello world. Next ", 4),
        (["ld. Next"], "Hello wor", 3),
        (["zzz", "llo"], "He", 2),
    ],
)
def test_the_text_is_cut_before_the_match_and_tokens_count_up_to_its_end(
    stops: list[str], text: str, num_tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tokens of several characters: a stop string may begin and end inside one."""
    pieces = ["He", "llo wor", "ld. Next", " line"]
    monkeypatch.setattr(
        "atom.model_engine.offline_request.Detokenizer.feed", lambda self, ids: "".join(pieces[token] for token in ids)
    )
    one = request(stop_strings=stops)
    for token in range(len(pieces)):
        if one.take(TokenDelta("r", [token]), 11.0):
            break
    summary = one.summary()
    assert (summary["text"], summary["finish_reason"], summary["num_tokens_output"]) == (text, "stop", num_tokens)
