"""The offline engine, over the uniform executor: a vocabulary of bytes, so that every token has a text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from atom import LLMEngine, SamplingParams
from atom.model_engine.llm_engine import as_prompts
from atom.model_engine.offline_request import RequestOutput
from tests.fakes.byte_tokenizer import EOS, byte_tokenizer
from tests.fakes.uniform_executor import UniformConfig, logprobs_of, oracle

VOCAB = 259
CONFIG = UniformConfig(vocab_size=VOCAB, eos_token_ids=(EOS,), num_blocks=200)
TOKENIZER = byte_tokenizer()


@pytest.fixture
def engine() -> Iterator[LLMEngine]:
    with LLMEngine.from_config(CONFIG, TOKENIZER, "tests.fakes.uniform_executor:UniformExecutor") as engine:
        yield engine


def expected(prompt: str | list[int], num_tokens: int) -> list[int]:
    tokens = oracle(TOKENIZER.encode(prompt) if isinstance(prompt, str) else prompt, num_tokens, VOCAB)
    return tokens[: tokens.index(EOS)] if EOS in tokens else tokens


def sampling(**options: Any) -> SamplingParams:
    return SamplingParams(**{"max_tokens": 20, **options})


def test_generate_answers_in_the_order_of_the_prompts(engine: LLMEngine) -> None:
    prompts: list[str | list[int]] = [f"prompt {index}" * (1 + index % 3) for index in range(12)]
    prompts.append([5, 6, 7])
    answers = engine.generate(prompts, sampling())
    for prompt, answer in zip(prompts, answers, strict=True):
        tokens = expected(prompt, 20)
        assert answer["token_ids"] == tokens
        assert answer["text"] == TOKENIZER.decode(tokens)
        assert answer["finish_reason"] == ("length" if len(tokens) == 20 else "stop")
        assert answer["num_tokens_output"] == len(tokens)
        assert answer["num_tokens_input"] == len(prompt)
        assert 0 < answer["ttft"] <= answer["latency"]
        assert answer["ttft"] + 19 * answer["tpot"] == pytest.approx(answer["latency"], rel=0.2) or len(tokens) < 20
        assert "logprobs" not in answer
    assert engine.is_finished()


def test_each_prompt_may_have_its_own_parameters(engine: LLMEngine) -> None:
    answers = engine.generate(["a", "b"], [sampling(max_tokens=3), sampling(max_tokens=7)])
    assert [answer["num_tokens_output"] for answer in answers] == [3, 7]
    with pytest.raises(ValueError, match="2 prompts came with 1 sampling parameters"):
        engine.generate(["a", "b"], [sampling()])


@pytest.mark.parametrize("start", [3, 5])
@pytest.mark.parametrize("include", [False, True])
def test_stop_strings_cut_the_text_and_the_tokens(engine: LLMEngine, start: int, include: bool) -> None:
    tokens = expected([65, 66], 20)
    whole = [bytes([token]).decode("latin1") if token < 128 else None for token in tokens]
    stop = TOKENIZER.decode(tokens[start : start + 2])
    if None in whole[start : start + 2] or stop in TOKENIZER.decode(tokens[: start + 1]):
        stop = TOKENIZER.decode(tokens[start : start + 1])
    [answer] = engine.generate([[65, 66]], sampling(stop_strings=[stop, "never"], include_stop_str_in_output=include))
    text = TOKENIZER.decode(tokens)
    assert answer["finish_reason"] == "stop"
    assert answer["text"] == text[: text.index(stop)] + (stop if include else "")
    assert answer["token_ids"] == tokens[: len(answer["token_ids"])]
    assert stop in TOKENIZER.decode(answer["token_ids"])
    assert stop not in TOKENIZER.decode(answer["token_ids"][:-1])
    least = len(answer["token_ids"]) + 1
    [longer] = engine.generate([[65, 66]], sampling(stop_strings=[stop], min_tokens=least))
    assert longer["num_tokens_output"] >= least and longer["text"].startswith(text[: text.index(stop)] + stop)
    assert engine.is_finished()
    assert engine.generate(["next"], sampling(max_tokens=2))[0]["token_ids"] == expected("next", 2)


def test_logprobs_where_asked_for(engine: LLMEngine) -> None:
    [answer] = engine.generate([[7, 8]], sampling(max_tokens=3, logprobs=2, prompt_logprobs=0))
    tokens = answer["token_ids"]
    assert answer["logprobs"] == [logprobs_of([7, 8, *tokens[:at]], tokens[at], 2, VOCAB) for at in range(3)]
    assert answer["prompt_logprobs"] == [None, logprobs_of([7], 8, 0, VOCAB)]


def test_the_documented_loop_ends_and_returns_each_sequence_once(engine: LLMEngine) -> None:
    ids = engine.add_request(["one", [1, 2]], sampling(max_tokens=5))
    ended = []
    while not engine.is_finished():
        ended += engine.step()
    assert sorted(sequence.request_id for sequence in ended) == sorted(ids)
    by_id = {sequence.request_id: sequence for sequence in ended}
    assert by_id[ids[1]].output_token_ids == expected([1, 2], 5)
    assert by_id[ids[0]].text == TOKENIZER.decode(expected("one", 5))
    assert by_id[ids[0]].finish_reason == "length"
    assert engine.step() == []


def test_a_callback_gets_every_piece(engine: LLMEngine) -> None:
    pieces: list[RequestOutput] = []
    engine.add_request(["abc"], sampling(max_tokens=9), pieces.append)
    [sequence] = run(engine)
    assert "".join(piece.text for piece in pieces) == sequence.text
    assert [token for piece in pieces for token in piece.output_tokens] == expected("abc", 9)
    assert [piece.finished for piece in pieces] == [False] * (len(pieces) - 1) + [True]
    assert (pieces[0].finish_reason, pieces[-1].finish_reason) == (None, sequence.finish_reason)


def run(engine: LLMEngine) -> list[Any]:
    ended = []
    while not engine.is_finished():
        ended += engine.step()
    return ended


def test_generate_leaves_other_requests_to_step(engine: LLMEngine) -> None:
    [other] = engine.add_request(["other"], sampling(max_tokens=2))
    assert engine.generate(["mine"], sampling(max_tokens=30))[0]["token_ids"] == expected("mine", 30)
    assert not engine.is_finished()
    [sequence] = engine.step()
    assert (sequence.request_id, sequence.output_token_ids) == (other, expected("other", 2))
    assert engine.is_finished()


def test_an_aborted_request_is_returned_with_what_it_has(engine: LLMEngine) -> None:
    ids = engine.add_request(["abc"], sampling(max_tokens=90, ignore_eos=True))
    for _ in range(5):
        assert engine.step() == []
    engine.abort([*ids, "unknown"])
    [sequence] = run(engine)
    assert (sequence.finish_reason, sequence.text) == ("abort", TOKENIZER.decode(sequence.output_token_ids))
    assert 0 < len(sequence.output_token_ids) < 6


def test_a_prompt_that_can_never_run_is_refused_before_anything_starts(engine: LLMEngine) -> None:
    with pytest.raises(ValueError, match="the prompt has 257 tokens, the model's context holds 256"):
        engine.generate(["fine", "x" * 257], sampling())
    with pytest.raises(ValueError, match="the prompt is empty"):
        engine.generate([""], sampling())
    with pytest.raises(ValueError, match="token id 400 of the prompt"):
        engine.generate([[400]], sampling())
    assert engine.is_finished()
    assert engine.step() == []


def test_one_prompt_is_a_list_of_one() -> None:
    assert as_prompts("text") == ["text"]
    assert as_prompts([1, 2]) == [[1, 2]]
    assert as_prompts(["a", [1]]) == ["a", [1]]
    assert as_prompts([]) == []
    with pytest.raises(TypeError, match="mix"):
        as_prompts(["a", 1])  # type: ignore[list-item]  # a wrong type is what is tested


def test_what_is_not_there_yet_says_so(engine: LLMEngine) -> None:
    with pytest.raises(NotImplementedError, match=r"print_mtp_statistics needs speculative decoding.*implemented"):
        engine.print_mtp_statistics()


def test_a_closed_engine_does_nothing_more(engine: LLMEngine) -> None:
    engine.close()
    engine.close()
    with pytest.raises(RuntimeError, match="closed"):
        engine.generate(["a"], sampling())


def test_an_unknown_keyword_suggests_the_nearest() -> None:
    with pytest.raises(TypeError, match="did you mean 'max_num_seqs'"):
        LLMEngine("atom-tiny", max_num_seq=4)
