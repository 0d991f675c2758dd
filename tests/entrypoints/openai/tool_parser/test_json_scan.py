"""JSON objects as they arrive: where they end, what they can't be, and how a cut one is closed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atom.entrypoints.openai.tool_parser.json_scan import JsonScanner, decoded, quoted

TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=12
)
OBJECTS = st.dictionaries(TEXT, VALUES, max_size=4)


def scan(text: str, size: int) -> tuple[JsonScanner, str]:
    """The scanner after `text` in pieces of `size`, and what it left unread."""
    scanner, held = JsonScanner(), ""
    for start in range(0, len(text), size):
        held += text[start : start + size]
        held = held[scanner.scan(held, 0) :]
    return scanner, held


@given(OBJECTS, st.sampled_from([None, 1, 2]), st.booleans(), st.sampled_from([1, 2, 5, 1000]))
def test_an_object_is_read_to_its_end_and_written_compactly(
    value: dict[str, Any], indent: int | None, ascii_only: bool, size: int
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    scanner, held = scan(f" {text} }} tail", size)
    assert scanner.is_done
    assert held.strip() == "} tail"
    assert json.loads(scanner.closed()) == value
    assert scanner.closed() == json.dumps(value, ensure_ascii=False, separators=(",", ":")) or "\x7f" in text


@given(OBJECTS, st.data())
def test_a_cut_object_is_closed_to_valid_json_that_agrees_with_it(value: dict[str, Any], data: st.DataObject) -> None:
    text = json.dumps(value, ensure_ascii=False)
    cut = text[: data.draw(st.integers(1, len(text)))]
    scanner, held = scan(cut, data.draw(st.integers(1, 8)))
    scanner.scan(held, 0, at_end=True)
    closed = json.loads(scanner.closed())
    assert list(closed) == list(value)[: len(closed)]
    for key in list(closed)[:-1]:
        assert closed[key] == value[key]


@pytest.mark.parametrize(
    ("text", "closed"),
    [
        ('{"a": "x', '{"a":"x"}'),
        ('{"a": "x\\', '{"a":"x"}'),
        ('{"a": "x\\u00', '{"a":"x"}'),
        ('{"a": "x\\\\u00', '{"a":"x\\\\u00"}'),
        ('{"a": 1', '{"a":"1"}'),
        ('{"a": tru', '{"a":"tru"}'),
        ('{"a": 1, "b', '{"a":1}'),
        ('{"a": 1, "b":', '{"a":1}'),
        ('{"a": 1,', '{"a":1}'),
        ('{"a": [1, {"b": "c', '{"a":[1,{"b":"c"}]}'),
        ('{"a": {"b": [', '{"a":{"b":[]}}'),
        ("{", "{}"),
    ],
)
def test_a_half_value_is_a_string_and_a_key_without_a_value_goes(text: str, closed: str) -> None:
    scanner, held = scan(text, 3)
    scanner.scan(held, 0, at_end=True)
    assert scanner.closed() == closed


@pytest.mark.parametrize(
    "text",
    [
        "[1]",
        '"a"',
        "x",
        "{a",
        "{'a'",
        '{"a" 1',
        '{"a": 1 2',
        '{"a": }',
        '{"a": 1,}',
        '{"a": [1,]',
        '{"a": 1]',
        "{,",
        "{]",
    ],
)
def test_what_is_no_object_fails_at_the_first_wrong_byte(text: str) -> None:
    for size in (1, 100):
        scanner, _ = scan(f"{text} ", size)
        assert scanner.has_failed


def test_what_models_get_wrong_is_put_right() -> None:
    text = '{"a": True, "b": None, "c": "two\nlines\\d \\x", "n": 007, "i": NaN}'
    scanner, _ = scan(text, 4)
    assert json.loads(scanner.closed()) == {"a": True, "b": None, "c": "two\nlines\\d \\x", "n": "007", "i": "NaN"}


def test_numbers_keep_their_digits() -> None:
    text = '{"a":1.10,"b":1e2,"c":12345678901234567890.5,"d":-0}'
    scanner, _ = scan(text, 7)
    assert scanner.closed() == text


def test_outer_values_are_found_by_key_and_the_first_one_counts() -> None:
    scanner, _ = scan('{"name": "x", "arguments": {"name": "y"}, "name": "z"}', 5)
    assert (scanner.value_of("name"), scanner.value_of("arguments")) == ('"x"', '{"name":"y"}')
    assert scanner.value_of("other") is None
    assert scanner.opened == {"arguments"}


def test_unknown_keys_before_any_opened_value_can_be_refused() -> None:
    scanner = JsonScanner(frozenset({"name", "arguments"}))
    scanner.scan('{"name": "x", "age": 3}', 0)
    assert scanner.has_failed
    later = JsonScanner(frozenset({"name", "arguments"}))
    later.scan('{"arguments": {"a": 1}, "age": 3}', 0)
    assert later.is_done


def test_half_a_surrogate_pair_stays_an_escape() -> None:
    assert quoted("\\ud83d") == '"\\ud83d"'
    assert quoted("\\ud83c\\udf88") == '"🎈"'
    assert decoded("\\ud83c\\udf88") == "🎈"
