"""Nested elements: objects, arrays, and what only looks like an element."""

from __future__ import annotations

from typing import Any

import pytest

from atom.entrypoints.openai.tool_parser.stream import Tool
from tests.entrypoints.openai.tool_parser.reading import Answer, read_every_way

NS = "]<]minimax[>["
TOOL = Tool(
    "order",
    {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "count": {"type": "integer"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "items": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}},
            "who": {"type": "object", "properties": {"id": {"type": "integer"}, "names": {"type": "array"}}},
        },
    },
)


def order(inside: str) -> Answer:
    """`<` and `</` at the start of a tag are written `~` and `~/`, with the namespace token understood."""
    body = inside.replace("~", f"{NS}<")
    text = f'{NS}<tool_call>\n{NS}<invoke name="order">{body}{NS}</invoke>\n{NS}</tool_call>'
    answer = read_every_way("minimax", f"{text}.", [TOOL])
    assert answer.content == "."
    return answer


@pytest.mark.parametrize(
    ("inside", "arguments"),
    [
        ("~text>a\n~/text>~count>3~/count>", {"text": "a\n", "count": 3}),
        ("\n~text>a~/text>\n~count>3~/count>\n", {"text": "a", "count": 3}),
        ("~tags>~item>a~/item>~item>b~/item>~/tags>", {"tags": ["a", "b"]}),
        ("~tags>\n~item>a~/item>\n~/tags>", {"tags": ["a"]}),
        ("~tags>~/tags>~who>~/who>", {"tags": [], "who": {}}),
        ("~tags>a~/tags>~tags>b~/tags>", {"tags": ["a", "b"]}),
        ('~tags>["a", "b"]~/tags>', {"tags": ["a", "b"]}),
        ("~items>~item>~n>1~/n>~/item>~item>~n>2~/n>~/item>~/items>", {"items": [{"n": 1}, {"n": 2}]}),
        ("~who>~id>7~/id>~names>~item>x~/item>~/names>~/who>", {"who": {"id": 7, "names": ["x"]}}),
        ("~text><b>x</b> </text> <item>~/text>", {"text": "<b>x</b> </text> <item>"}),
        ("~text>a ~b>c~/b> d~/text>", {"text": f"a {NS}<b>c{NS}</b> d"}),
        ("~text>Oslo~count>3~/count>", {"text": "Oslo", "count": 3}),
        ("~who>~id>7~/who>", {"who": {"id": 7}}),
        ("~more>~a>1~/a>~/more>", {"more": {"a": "1"}}),
        ("~more>~item>1~/item>~/more>", {"more": ["1"]}),
        ("~text>~/text>", {"text": ""}),
        ("~text>x ~/other> y~/text>", {"text": f"x {NS}</other> y"}),
    ],
)
def test_elements_become_what_the_schema_says(inside: str, arguments: dict[str, Any]) -> None:
    assert order(inside).parsed == [("order", arguments)]


def test_elements_deeper_than_anyone_nests_are_text() -> None:
    [(_, arguments)] = order("~more>" + "~a>" * 200 + "x" + "~/a>" * 200 + "~/more>").parsed
    assert list(arguments) == ["more"]


def test_a_cut_element_is_a_string_and_its_parents_keep_their_shape() -> None:
    text = f'{NS}<invoke name="order">{NS}<who>{NS}<names>{NS}<item>ab'
    tool_call = f"{NS}<tool_call>{text}"
    assert read_every_way("minimax", tool_call, [TOOL]).parsed == [("order", {"who": {"names": ["ab"]}})]
