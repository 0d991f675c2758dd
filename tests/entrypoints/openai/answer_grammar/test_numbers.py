"""Numbers that the grammar library can not hold are refused, and bounds of 64 bits still bound."""

from __future__ import annotations

from typing import Any

import pytest

from atom.entrypoints.openai.answer_grammar.schema_tree import SchemaError
from atom.entrypoints.openai.answer_grammar.schemas import enforceable, with_formats
from tests.entrypoints.openai.answer_grammar.test_schemas import accepts

INT64 = {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1}


@pytest.mark.parametrize(
    ("schema", "word"),
    [
        ({"const": -(2**63)}, "'const'"),
        ({"enum": [1, {"a": [1 - 2**63]}]}, "'enum'"),
        ({"enum": [-float(2**63)]}, "'enum'"),
        ({"properties": {"id": {"const": 2**53 + 1}}}, "'const' (at #/properties/id)"),
        ({"const": 10**400}, "'const'"),
        ({"type": "integer", "minimum": -(2**63), "maximum": -(2**63)}, "'maximum'"),
        ({"type": "integer", "exclusiveMaximum": 1 - 2**63}, "'exclusiveMaximum'"),
        ({"type": "integer", "minimum": 10**400}, "'minimum'"),
        ({"type": "integer", "multipleOf": 999_983}, "'multipleOf'"),
        ({"$ref": "#/x-hidden", "x-hidden": {"const": -(2**63)}}, "too large"),
        ({"$ref": "#/default", "default": {"const": -(2**63)}}, "/default"),
    ],
)
def test_numbers_that_would_end_the_process_or_be_other_ones_are_refused(schema: Any, word: str) -> None:
    with pytest.raises(SchemaError) as error:
        enforceable(schema)
    assert word in str(error.value)


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        (INT64, (2**63 - 1, 0, -(2**62)), (2**63, -(2**63) - 1)),
        ({**INT64, "default": -(2**63)}, (1,), (2**63,)),
        ({"type": "integer", "minimum": 0, "maximum": 2**64 - 1}, (0, 2**63 - 1), (-1,)),
        ({"type": "integer", "minimum": 2**53 + 1, "maximum": 2**60 + 1}, (2**53 + 2, 2**60), (2**53, 2**60 + 2)),
        ({"type": "integer", "exclusiveMinimum": -(2**53) - 1}, (-(2**53) + 1, 7), (-(2**53) - 2,)),
        ({"type": "integer", "minimum": 1 - 2**53, "maximum": 2**53 - 1}, (1 - 2**53, 2**53 - 1), (-(2**53), 2**53)),
        ({"type": "integer", "minimum": -1e300, "maximum": 1e300}, (5, -5), (1.5,)),
        ({"const": 2**60}, (2**60,), (2**60 + 1,)),
        ({"type": "number", "multipleOf": 0.01}, (1.25,), (1.255,)),
    ],
)
def test_what_is_within_bounds_can_be_written_and_nothing_else(
    schema: Any, good: tuple[int, ...], bad: tuple[int, ...]
) -> None:
    enforceable(schema)
    ready = with_formats(schema)
    assert all(accepts(ready, str(number)) for number in good)
    assert not any(accepts(ready, str(number)) for number in bad)
