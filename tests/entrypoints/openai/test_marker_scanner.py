"""The first complete marker, and what must be held for one that isn't complete."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atom.entrypoints.openai.marker_scanner import MarkerScanner

MARKERS = ["<tool_call>", "<function=", "[T]", "<", "[TT]"]
TEXTS = st.lists(st.sampled_from(["<", "<t", "tool_call>", "<tool_", "[", "T", "]", "x", "<function", "="])).map(
    "".join
)


def expected_hold(markers: list[str], text: str) -> int:
    """By the definition: the longest suffix that is the beginning of a marker, and none that is complete."""
    for start in range(len(text)):
        suffix = text[start:]
        if any(marker.startswith(suffix) and marker != suffix for marker in markers):
            return start
    return len(text)


@given(TEXTS, st.sets(st.sampled_from(MARKERS), min_size=1))
def test_it_holds_the_longest_suffix_that_begins_a_marker(text: str, markers: set[str]) -> None:
    scanner = MarkerScanner(markers)
    assert scanner.hold_from(text) == expected_hold(sorted(markers), text)
    assert len(text) - scanner.hold_from(text) < max(map(len, markers))


@given(TEXTS, st.sets(st.sampled_from(MARKERS), min_size=1))
def test_plain_text_can_be_no_part_of_a_marker(text: str, markers: set[str]) -> None:
    scanner = MarkerScanner(markers)
    if scanner.is_plain(text):
        assert scanner.search(text) is None
        assert scanner.hold_from(text) == len(text)


def test_it_finds_the_first_marker_and_of_two_the_longer() -> None:
    scanner = MarkerScanner(["<tool", "<tool_call>"])
    match = scanner.search("a <tool_call> <tool", 0)
    assert match is not None
    assert (match.start(), match.group()) == (2, "<tool_call>")
    assert scanner.longest == len("<tool_call>")


def test_text_before_the_start_is_not_held() -> None:
    scanner = MarkerScanner(["<abc>"])
    assert scanner.hold_from("<a", 1) == 2
    assert scanner.hold_from("x<a", 1) == 1


@pytest.mark.parametrize("markers", [[], [""], ["<a>", ""]])
def test_there_must_be_something_to_look_for(markers: list[str]) -> None:
    with pytest.raises(ValueError, match="marker"):
        MarkerScanner(markers)
