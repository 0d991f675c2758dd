"""The masks of slots: what a grammar allows, where an answer may end, and that their state survives a preemption."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from atom.model_engine.batch import SlotAdmission
from atom.model_engine.grammars import GrammarError, Grammars
from atom.model_engine.token_masks import TokenMasks
from atom.sampling_params import AnswerGrammar, SamplingParams
from tests.fakes.byte_tokenizer import EOS, byte_tokenizer

VOCAB = 300  # the tokenizer has 259: a model's vocabulary may be padded
ROLE = 258


@pytest.fixture(params=[0, 2], ids=["at once", "beside"])
def masks(request: pytest.FixtureRequest) -> Iterator[TokenMasks]:
    grammars = Grammars(byte_tokenizer, VOCAB, (EOS,))
    made = TokenMasks(4, grammars, request.param)
    yield made
    made.shutdown()
    grammars.shutdown()


def admit(masks: TokenMasks, slot: int, text: str | None, outputs: str = "", **fields: Any) -> None:
    text_ids = fields.pop("text_token_ids", ())
    grammar = None if text is None else AnswerGrammar(text, text_ids)
    sampling = SamplingParams(max_tokens=99, grammar=grammar, **fields)
    masks.admit(SlotAdmission(slot, [1, 2, *outputs.encode()], 2, [], sampling, 0))


def allowed(masks: TokenMasks, slot: int) -> set[int]:
    """The tokens that may come next in a slot."""
    masked = masks.rows(np.array([slot]))
    assert masked is not None and not masked.failures
    bits = np.unpackbits(masked.masks.view(np.uint8), axis=1, bitorder="little")
    return set(np.flatnonzero(bits[0]).tolist())


def sample(masks: TokenMasks, slot: int, token: int | str) -> None:
    chosen = token if isinstance(token, int) else ord(token)
    masks.sampled(np.array([slot]), lambda: [chosen])


def test_only_what_the_grammar_allows(masks: TokenMasks) -> None:
    admit(masks, 1, 'start: "ab" | "ac"')
    assert allowed(masks, 1) == {ord("a")}
    sample(masks, 1, "a")
    assert allowed(masks, 1) == {ord("b"), ord("c")}
    sample(masks, 1, "c")
    assert allowed(masks, 1) == {EOS}


def test_an_object_of_very_many_properties_none_of_which_must_be_there(masks: TokenMasks) -> None:
    schema = {"properties": {f"p{i}": {"type": "null"} for i in range(1500)}, "additionalProperties": False}
    admit(masks, 0, "start: %json " + json.dumps({"type": "object", **schema}))
    for token in '{"p1400":null,"p1':
        assert ord(token) in allowed(masks, 0)
        sample(masks, 0, token)
    assert allowed(masks, 0) == {ord("4")}  # members come in the schema's order


def test_rows_without_a_grammar_are_left_out(masks: TokenMasks) -> None:
    admit(masks, 0, None)
    assert masks.rows(np.array([0])) is None
    admit(masks, 2, 'start: "x"')
    masked = masks.rows(np.array([0, 2]))
    assert masked is not None and masked.rows.tolist() == [1]


def test_a_slot_that_gets_another_sequence_starts_anew(masks: TokenMasks) -> None:
    admit(masks, 1, 'start: "ab"')
    sample(masks, 1, "a")
    admit(masks, 1, 'start: "ab"')
    assert allowed(masks, 1) == {ord("a")}
    admit(masks, 1, None)
    assert masks.rows(np.array([1])) is None


def test_a_preempted_sequence_goes_on_where_it_was(masks: TokenMasks) -> None:
    admit(masks, 3, 'start: "abc" | "abd"', outputs="ab")
    assert allowed(masks, 3) == {ord("c"), ord("d")}


def test_an_answer_may_end_where_the_grammar_does_and_by_its_own_stop_tokens(masks: TokenMasks) -> None:
    admit(masks, 0, 'start: "a" "b"?', stop_token_ids=(7,))
    assert allowed(masks, 0) == {ord("a")}
    sample(masks, 0, "a")
    assert allowed(masks, 0) == {ord("b"), EOS, 7}
    sample(masks, 0, 7)
    assert len(allowed(masks, 0)) >= VOCAB  # it has ended; a step that ran ahead samples anything


def test_min_tokens_holds_as_far_as_the_grammar_can_go_on(masks: TokenMasks) -> None:
    admit(masks, 0, "start: /a+/", min_tokens=3)
    for _ in range(3):
        assert allowed(masks, 0) == {ord("a")}
        sample(masks, 0, "a")
    assert allowed(masks, 0) == {ord("a"), EOS}
    admit(masks, 1, 'start: "a"', min_tokens=3)
    sample(masks, 1, "a")
    assert allowed(masks, 1) == {EOS}


def test_special_tokens_are_text_only_where_the_grammar_says_so(masks: TokenMasks) -> None:
    admit(masks, 0, "start: /(?s:.*)/")
    assert ROLE not in allowed(masks, 0)
    admit(masks, 1, "start: /(?s:.*)/", text_token_ids=(ROLE,))
    assert ROLE in allowed(masks, 1)


def test_a_hidden_token_that_spells_what_must_come_is_spelt_out(masks: TokenMasks) -> None:
    admit(masks, 0, 'start: "<|role|>"')
    for character in "<|role|>":
        assert allowed(masks, 0) == {ord(character)}
        sample(masks, 0, character)
    assert allowed(masks, 0) == {EOS}


def test_a_token_that_the_grammar_does_not_take_ends_the_sequence_with_a_message(masks: TokenMasks) -> None:
    admit(masks, 0, 'start: "ab"')
    sample(masks, 0, "x")
    masked = masks.rows(np.array([0]))
    assert masked is not None and "can not be followed" in masked.failures[0]


def test_a_failure_is_that_of_its_row_alone(masks: TokenMasks) -> None:
    admit(masks, 0, 'start: "ab"')
    admit(masks, 1, "start: nothing")
    admit(masks, 2, 'start: "ab"')
    masks.sampled(np.array([0, 2]), lambda: [ord("x"), ord("a")])
    masked = masks.rows(np.array([2, 0, 1]))
    assert masked is not None and sorted(masked.failures) == [1, 2]
    assert (masked.masks[1:] == -1).all()  # whatever is sampled there is thrown away
    assert allowed(masks, 2) == {ord("b")}


def test_what_fails_in_the_thread_is_raised_where_masks_are_asked_for() -> None:
    grammars = Grammars(byte_tokenizer, VOCAB, (EOS,))
    masks = TokenMasks(4, grammars, num_threads=1)
    admit(masks, 0, 'start: "ab"')
    masks.sampled(np.array([0]), list)
    with pytest.raises(RuntimeError, match="no longer computed"):
        masks.rows(np.array([0]))
    masks.shutdown()
    grammars.shutdown()


def test_grammars_are_compiled_once_and_their_matchers_used_again() -> None:
    grammars = Grammars(byte_tokenizer, VOCAB, (EOS,))
    grammar = AnswerGrammar('start: "ab"')
    grammars.prepare(grammar).result(120)
    compiled = grammars.compiled(AnswerGrammar('start: "ab"'))
    matcher = grammars.take(compiled)
    matcher.consume_tokens([ord("a")])
    grammars.give_back(compiled, matcher)
    assert grammars.take(compiled) is matcher and matcher.consume_tokens([ord("a"), ord("b")])
    with pytest.raises(GrammarError, match="compiled"):
        grammars.prepare(AnswerGrammar("start: nothing")).result(120)
    grammars.shutdown()


def test_a_model_without_an_end_token_has_no_grammars() -> None:
    grammars = Grammars(byte_tokenizer, VOCAB, ())
    with pytest.raises(GrammarError, match="end-of-sequence"):
        grammars.prepare(AnswerGrammar('start: "a"')).result(120)
    grammars.shutdown()
