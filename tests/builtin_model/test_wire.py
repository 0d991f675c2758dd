from __future__ import annotations

import pytest

from tests.builtin_model.fixtures import case_of
from tools.builtin_model.evaluate import is_exact, make_dialogues
from tools.builtin_model.wire import FORMAT_NAMES, FORMATS, Call
from tools.builtin_model.wire_reader import read_answer

CALLS = [
    Call("get_weather", {"city": 'Pa"ris </x> & Ü', "days": 3, "on": True, "tags": ["a", "b"], "where": {"zip": "1"}}),
    Call("now", {}),
]
PROPERTIES = {
    "get_weather": {
        "days": {"type": "integer"},
        "on": {"type": "boolean"},
        "tags": {"type": "array"},
        "where": {"type": "object"},
    },
    "now": {},
}


@pytest.mark.parametrize("format_name", FORMAT_NAMES)
def test_what_is_written_reads_back(format_name: str) -> None:
    spec = FORMATS[format_name]
    written = spec.write_calls(CALLS, 2)
    if spec.is_xtml:
        text = f"Hm.<|close|>response<|sep|>{written}<|close|>message<|sep|><|end_of_msg|>"
    else:
        text = f"Hm.{written}<|im_end|>"
    reading = read_answer(format_name, text, PROPERTIES, 2)
    assert reading.is_valid
    assert reading.has_ended
    assert (reading.content, reading.calls) == ("Hm.", CALLS)


@pytest.mark.parametrize("format_name", FORMAT_NAMES)
def test_a_cut_call_is_invalid(format_name: str) -> None:
    spec = FORMATS[format_name]
    written = spec.write_calls(CALLS, 0)
    lead = "<|close|>response<|sep|>" if spec.is_xtml else ""
    for cut in range(len(written) - 40, len(written)):
        reading = read_answer(format_name, lead + written[:cut], PROPERTIES)
        assert not reading.is_valid or reading.calls != CALLS


@pytest.mark.parametrize("thinking", [False, True])
def test_every_expected_answer_scores_as_exact_and_any_change_does_not(thinking: bool) -> None:
    for dialogue in make_dialogues(1, thinking, FORMAT_NAMES):
        case = case_of(dialogue)
        assert is_exact(case, case.expected) == (True, True, True, True)
        assert not is_exact(case, case.expected[:-1])[0]
