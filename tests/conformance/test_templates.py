"""Templates: holes, escapes, places."""

from __future__ import annotations

import pytest

from conformance.templates import fill, literals


def test_holes_are_filled_and_other_braces_are_literal() -> None:
    assert fill('{"name": {name|json}, "n": {}}', {"name": 'a"b'}).text == '{"name": "a\\"b", "n": {}}'


def test_places_are_offsets_into_the_filled_text() -> None:
    filled = fill("<{key}>{value}</{key}>", {"key": "city", "value": "Oslo"})
    assert filled.text[filled.places["value"] :].startswith("Oslo")
    assert filled.places["key"] == 1


def test_attributes_are_escaped() -> None:
    assert fill('k="{key|attribute}"', {"key": 'a&"b"'}).text == 'k="a&amp;&quot;b&quot;"'


def test_what_was_filled_in_is_not_filled_again() -> None:
    assert fill("{name}{key}", {"name": "{key}", "key": "k"}).text == "{key}k"


@pytest.mark.parametrize("template", ["{nobody}", "{name|rot13}"])
def test_unknown_holes_and_escapes_are_errors(template: str) -> None:
    with pytest.raises(KeyError):
        fill(template, {"name": "n"})


def test_literals_are_what_stands_between_holes() -> None:
    assert literals("<f={name}>{arguments}</f>") == ["<f=", ">", "</f>"]
