"""What the format files say of themselves: their examples are read as they say, their counter-examples stay text."""

from __future__ import annotations

import json

import pytest
from atom_spec.formats import FORMATS, Example, FormatSpec

from atom.entrypoints.openai.tool_parser.stream import Tool
from tests.entrypoints.openai.tool_parser.reading import TOOLS, read_every_way

EXAMPLES = [(name, example) for name, spec in FORMATS.items() for example in spec.examples]
NOT_CALLS = [(name, text) for name, spec in FORMATS.items() for text in spec.not_calls]


def tools_of(example: Example) -> list[Tool]:
    """The tools that an example calls, their parameters typed by the example."""
    kinds = {str: "string", int: "integer", dict: "object", list: "array", bool: "boolean"}
    tools = []
    for name, arguments in example.calls:
        properties = {key: {"type": kinds[type(value)]} for key, value in json.loads(arguments).items()}
        tools.append(Tool(name, {"type": "object", "properties": properties}))
    return tools


@pytest.mark.parametrize(("name", "example"), EXAMPLES, ids=[f"{name}-{n}" for n, (name, _) in enumerate(EXAMPLES)])
def test_an_example_is_read_as_its_file_says(name: str, example: Example) -> None:
    answer = read_every_way(name, example.text, tools_of(example))
    assert answer.parsed == [(tool, json.loads(arguments)) for tool, arguments in example.calls]
    assert answer.content == example.content
    assert not answer.num_undeclared


@pytest.mark.parametrize(("name", "example"), EXAMPLES, ids=[f"{name}-{n}" for n, (name, _) in enumerate(EXAMPLES)])
def test_an_example_without_its_tools_calls_nothing(name: str, example: Example) -> None:
    answer = read_every_way(name, example.text, [])
    assert not answer.calls
    assert answer.num_undeclared == len(example.calls)
    if FORMATS[name].undeclared == "release":
        assert answer.content == example.text
    else:
        assert answer.content == example.content


@pytest.mark.parametrize(("name", "text"), NOT_CALLS, ids=[f"{name}-{n}" for n, (name, _) in enumerate(NOT_CALLS)])
def test_a_counter_example_stays_text(name: str, text: str) -> None:
    for tools in (TOOLS, ()):
        answer = read_every_way(name, f"{text}\nEnd.", tools)
        assert answer.content == f"{text}\nEnd."
        assert not answer.calls


@pytest.mark.parametrize("name", FORMATS)
def test_a_call_behind_a_quoted_opener_is_read(name: str) -> None:
    spec: FormatSpec = FORMATS[name]
    example = spec.examples[0]
    if spec.has_start_forms or spec.channels:
        example = spec.examples[-1]
    quoted = f"{spec.not_calls[0]}\n"
    answer = read_every_way(name, quoted + example.text, tools_of(example))
    assert [tool for tool, _ in answer.calls] == [tool for tool, _ in example.calls]
    assert answer.content == quoted + example.content
