"""Vectors: how files are read, and what counts as a match."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conformance.answer import Answer, Call
from conformance.corpus import CorpusError, Vector, load_corpus, same_json

ROW: dict[str, Any] = {
    "id": "v1",
    "format": "hermes",
    "tools": [],
    "text": "x",
    "starts_in_reasoning": False,
    "engine_finish": "stop",
    "expect": {
        "content": "hi",
        "reasoning_content": None,
        "tool_calls": [{"name": "now", "arguments": {"n": 1}}],
        "finish_reason": "tool_calls",
    },
    "why": "w",
    "splits": [1],
}


def _load(folder: Path, row: dict[str, Any]) -> Vector:
    (folder / "x.jsonl").write_text(json.dumps(row) + "\n\n", encoding="utf-8")
    return load_corpus(folder)[0]


def _answer(arguments: str = '{"n":1}', content: str = "hi") -> Answer:
    return Answer(content, "", (Call("now", arguments),), "tool_calls")


def test_an_exact_answer_matches_with_numbers_by_value(tmp_path: Path) -> None:
    vector = _load(tmp_path, ROW)
    assert vector.accepts(_answer())
    assert vector.accepts(_answer('{"n": 1.0}'))


@pytest.mark.parametrize(
    "answer",
    [_answer(content="hi "), _answer('{"n":true}'), _answer('{"n":"1"}'), _answer("{"), Answer("hi", "", (), "stop")],
    ids=["content", "boolean", "string", "no JSON", "no call"],
)
def test_anything_else_is_a_miss(tmp_path: Path, answer: Answer) -> None:
    assert not _load(tmp_path, ROW).accepts(answer)


def test_raw_arguments_match_byte_for_byte(tmp_path: Path) -> None:
    call = {"name": "now", "arguments": {"__raw__": "{'n': 1}"}}
    vector = _load(tmp_path, {**ROW, "expect": {**ROW["expect"], "tool_calls": [call]}})
    assert vector.accepts(_answer("{'n': 1}"))
    assert not vector.accepts(_answer("{'n':1}"))


def test_an_ambiguous_vector_takes_each_alternative_merged_over_expect(tmp_path: Path) -> None:
    vector = _load(tmp_path, {**ROW, "ambiguous": True, "alt": [{"content": "ho"}, {"content": "hu"}]})
    assert all(vector.accepts(_answer(content=content)) for content in ("hi", "ho", "hu"))
    assert not vector.accepts(_answer(content="he"))


def test_alternatives_of_a_firm_vector_are_ignored(tmp_path: Path) -> None:
    assert not _load(tmp_path, {**ROW, "alt": [{"content": "ho"}]}).accepts(_answer(content="ho"))


def test_a_bad_line_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text(json.dumps(ROW) + '\n{"id": 1}\n', encoding="utf-8")
    with pytest.raises(CorpusError, match=r"x\.jsonl:2: KeyError"):
        load_corpus(tmp_path)


def test_a_folder_without_vectors_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"no \*\.jsonl"):
        load_corpus(tmp_path)


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ({"a": 1, "b": [1.0]}, {"b": [1], "a": 1.0}, True),
        ([1], [True], False),
        ([None], [0], False),
        ([1, 2], [2, 1], False),
        ({"a": 1}, {"a": 1, "b": 1}, False),
        ("1", 1, False),
    ],
)
def test_json_equality(left: Any, right: Any, same: bool) -> None:
    assert same_json(left, right) is same
