from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.builtin_model import plain
from tools.builtin_model.dialogue import PLAIN_SKILLS, TOOL_SKILLS, skill_dialogue, training_dialogue
from tools.builtin_model.evaluate import make_dialogues
from tools.builtin_model.families import load_families, make_family_tool
from tools.builtin_model.invented import make_invented_tool
from tools.builtin_model.render import message_calls
from tools.builtin_model.suite import load_suite, suite_dialogues
from tools.builtin_model.sums import sums
from tools.builtin_model.wire import FORMAT_NAMES
from tools.builtin_model.words import Words, is_held_out

SEEDS = st.integers(0, 10**9)


def _strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for item in value.values() for text in _strings(item)]
    if isinstance(value, list):
        return [text for item in value for text in _strings(item)]
    return [value] if isinstance(value, str) else []


@given(SEEDS)
@settings(max_examples=60, deadline=None)
def test_a_seed_gives_the_same_dialogue(seed: int) -> None:
    first, second = (training_dialogue(Words(random.Random(seed))) for _ in range(2))
    assert first == second


@given(SEEDS, st.booleans())
@settings(max_examples=150, deadline=None)
def test_an_invented_request_states_every_value(seed: int, held_out: bool) -> None:
    words = Words(random.Random(seed), held_out)
    made = make_invented_tool(words)
    request, arguments = made.request(words)
    enums = [p.name for p in made.tool.parameters if p.kind == "enum"]
    for name, value in arguments.items():
        stated = request.lower() if name in enums else request
        assert all((text.lower() if name in enums else text) in stated for text in _strings(value))
    assert list(arguments) == [p.name for p in made.tool.parameters if p.name in arguments]


def test_every_request_of_every_family_states_or_implies_its_arguments() -> None:
    """All wordings of all families: declared names only, free string values in the request's own words."""
    words = Words(random.Random(3))
    for family in load_families():
        for _ in range(3 * len(family.asks)):
            made = make_family_tool(words, family)
            request, arguments = made.request(words)
            parameters = {p.name: p for p in made.tool.parameters}
            assert set(arguments) <= set(parameters)
            for name, value in arguments.items():
                parameter = parameters[name]
                if not parameter.surfaces and not parameter.fields:
                    assert all(text in request for text in _strings(value)), (request, arguments)
            assert "{" not in request.replace("{}", "") or "json" in request.lower(), request


def test_there_are_enough_families_and_the_suite_is_apart_from_them() -> None:
    families = load_families()
    suite = load_suite()
    assert len(families) >= 150
    assert sum(len(tool.requests) for tool in suite) >= 120
    assert not {name for family in families for name in family.names} & {tool.name for tool in suite}
    asked = {request for tool in suite for request, _ in tool.requests}
    assert not asked & {ask.text for family in families for ask in family.asks}


def test_the_suite_declares_the_arguments_that_it_expects() -> None:
    for tool in load_suite():
        properties = tool.declaration["function"]["parameters"]["properties"]
        for request, arguments in tool.requests:
            assert set(arguments) == set(properties), request
    for dialogue in suite_dialogues("qwen", False, 3):
        assert len({tool["function"]["name"] for tool in dialogue.tools}) == 3


@given(SEEDS)
@settings(max_examples=80, deadline=None)
def test_calls_name_declared_tools_with_required_shapes(seed: int) -> None:
    dialogue = training_dialogue(Words(random.Random(seed)))
    declared = {
        tool["function"]["name"]: tool["function"].get("parameters", {}).get("properties", {})
        for tool in dialogue.tools
    }
    assert len(declared) == len(dialogue.tools) <= 8
    for message in dialogue.messages:
        for call in message_calls(message):
            assert set(call.arguments) <= set(declared[call.name])
    assert dialogue.messages[-1]["role"] == "assistant"
    json.dumps(dialogue.messages)


def test_a_lone_tool_is_never_refused() -> None:
    words = Words(random.Random(4))
    for _ in range(400):
        dialogue = training_dialogue(words)
        if len(dialogue.tools) == 1:
            assert all(message["content"] != plain.NO_TOOL for message in dialogue.messages)


def test_evaluation_draws_words_that_training_never_sees() -> None:
    seen, unseen = Words(random.Random(5)), Words(random.Random(5), held_out=True)
    assert not {seen.dictionary_word() for _ in range(3000)} & {unseen.dictionary_word() for _ in range(3000)}
    assert not {seen.invented_word() for _ in range(500)} & {unseen.invented_word() for _ in range(500)}
    for words, is_unseen in ((seen, False), (unseen, True)):
        for _ in range(100):
            sum_text = sums(words, is_two_digit=True)[2]
            if "*" not in sum_text:
                assert is_held_out("".join(sum_text.split(" ")[:3])) == is_unseen


def test_sums_are_right() -> None:
    words = Words(random.Random(6))
    for index in range(300):
        _, thought, answer = sums(words, is_two_digit=index % 2 == 0)
        for step in [*thought.rstrip(".").split(". "), answer]:
            left, right = step.split(" = ")
            assert eval(left) == int(right)


@pytest.mark.parametrize("skill", [*TOOL_SKILLS, *PLAIN_SKILLS])
def test_every_skill_can_be_drawn_for_evaluation(skill: str) -> None:
    for seed in range(6):
        dialogue = skill_dialogue(Words(random.Random(seed), held_out=True), skill, "qwen", thinking=seed % 2 == 0)
        last = dialogue.messages[-1]
        assert last["role"] == "assistant"
        assert bool(last.get("reasoning_content")) == (seed % 2 == 0)
        assert bool(dialogue.tools) == (skill in TOOL_SKILLS)


def test_every_format_is_scored_on_the_same_dialogues() -> None:
    by_format = {name: make_dialogues(2, False, (name,), with_suite=False) for name in FORMAT_NAMES[:2]}
    first, second = by_format.values()
    assert [d.messages for d in first] == [d.messages for d in second]
