"""Markers with holes, matched against text that may end inside them."""

from __future__ import annotations

import pytest

from atom.entrypoints.openai.tool_parser.patterns import PARTIAL, Choice, Matched

CASES = [
    ("<function={name}>", "<function=look>", {"name": "look"}),
    ('<invoke name="{name}">', '<invoke name="look">', {"name": "look"}),
    ("<arg_key>{key}</arg_key>{ws}<arg_value>", "<arg_key>a b</arg_key> \n<arg_value>", {"key": "a b"}),
    ("<parameter={key}>", "<parameter=a<b>", {"key": "a<b"}),
    ("<{key}>", "<city>", {"key": "city"}),
    ("<k>{key}</k>", "<k>a <b> </c</k>", {"key": "a <b> </c"}),
    ('key="{key}" type="{type}">', 'key="<p> \'x\'\ny" type="string">', {"key": "<p> 'x'\ny", "type": "string"}),
    ("name='{key}'>", "name='say \"x\"'>", {"key": 'say "x"'}),
    ("name={key} string={is_string}>", "name=a b string=true>", {"key": "a b", "is_string": "true"}),
    ("[T]{ws}[", "[T]\n [", {}),
]


@pytest.mark.parametrize(("pattern", "text", "holes"), CASES)
def test_it_is_partial_until_it_is_complete(pattern: str, text: str, holes: dict[str, str]) -> None:
    choice = Choice([pattern])
    for end in range(1, len(text)):
        assert choice.match(text[:end], 0) is PARTIAL, text[:end]
    assert choice.match(f"{text} more", 0) == Matched(len(text), 0, holes)
    assert choice.match(f"ab{text}", 2) == Matched(len(text) + 2, 0, holes)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("<function={name}>", "<function=two words>"),
        ("<function={name}>", "<function=>"),
        ("<function={name}>", f"<function={'x' * 300}"),
        ("<{key}>", "</city>"),
        ("<{key}>", '<invoke name="x">'),
        ("<a>", "<b>"),
    ],
)
def test_what_can_not_become_the_marker_is_none(pattern: str, text: str) -> None:
    assert Choice([pattern]).match(text, 0) is None


def test_a_hole_at_the_end_ends_where_its_characters_do() -> None:
    choice = Choice(["<call>{name}"])
    assert choice.match("<call>look", 0) is PARTIAL
    assert choice.match("<call>look<", 0) == Matched(10, 0, {"name": "look"})
    assert choice.match("<call><", 0) is None


def test_an_open_spelling_makes_the_later_ones_wait() -> None:
    choice = Choice(["</call></sep>", "</call>"])
    assert choice.match("</call>", 0) is PARTIAL
    assert choice.match("</call></s", 0) is PARTIAL
    assert choice.match("</call> ", 0) == Matched(7, 1, {})
    assert choice.match("</call></sep>", 0) == Matched(13, 0, {})
    assert choice.match("</call></s", 0, at_end=True) == Matched(7, 1, {})
    assert choice.match("</ca", 0, at_end=True) is PARTIAL
    assert Choice([]).match("x", 0) is None
