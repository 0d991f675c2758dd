"""Stop strings: the same cut at every chunking, nothing of a stop string shown, nothing else held."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atom.text.stop_strings import StopStrings

STOPS = st.lists(st.text(alphabet="abc", min_size=1, max_size=5), min_size=1, max_size=5)


def expected(text: str, stops: list[str], include: bool) -> tuple[str, str | None]:
    """The match that ends first, of those the longest; found by trying every end."""
    for end in range(1, len(text) + 1):
        hits = [stop for stop in stops if text[:end].endswith(stop)]
        if hits:
            best = max(hits, key=len)
            return text[:end] if include else text[: end - len(best)], best
    return text, None


def run(text: str, stops: list[str], cuts: list[int], include: bool) -> tuple[str, str | None, list[str]]:
    stage = StopStrings(stops, include)
    borders = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    pieces = [stage.feed(text[start:end]) for start, end in itertools.pairwise(borders)]
    return "".join(pieces) + stage.finish(), stage.matched, pieces


@given(
    text=st.text(alphabet="abc", max_size=30),
    stops=STOPS,
    cuts=st.lists(st.integers(0, 30), max_size=30),
    include=st.booleans(),
)
@settings(max_examples=400, deadline=None)
def test_the_first_match_cuts_at_every_chunking(text: str, stops: list[str], cuts: list[int], include: bool) -> None:
    shown, matched, _ = run(text, stops, cuts, include)
    assert (shown, matched) == expected(text, stops, include)


@given(text=st.text(alphabet="abc", max_size=30), stops=STOPS, least=st.integers(0, 30), include=st.booleans())
@settings(max_examples=300, deadline=None)
def test_what_ends_too_early_is_text(text: str, stops: list[str], least: int, include: bool) -> None:
    ends = [end for end in range(least + 1, len(text) + 1) if any(text[:end].endswith(stop) for stop in stops)]
    for cuts in (range(least, len(text)), range(len(text))):
        stage = StopStrings(stops, include)
        borders = [*cuts, len(text)]
        shown = stage.feed(text[: borders[0]], may_match=False)
        for start, end in itertools.pairwise(borders):
            shown += stage.feed(text[start:end], may_match=start >= least)
        shown += "" if stage.matched else stage.finish()
        if not ends:
            assert (shown, stage.matched) == (text, None)
            continue
        best = max((stop for stop in stops if text[: ends[0]].endswith(stop)), key=len)
        assert (shown, stage.matched) == (text[: ends[0] - (0 if include else len(best))], best)


def test_answers_that_end_by_the_same_strings_do_not_disturb_each_other() -> None:
    one, other = StopStrings(["stop"]), StopStrings(["stop"])
    assert one.feed("a sto") == "a " and other.feed("b") == "b"
    assert one.feed("p") == "" and (one.matched, other.matched) == ("stop", None)
    assert other.feed("p") == "p"


@given(text=st.text(alphabet="abc", max_size=30), stops=STOPS)
@settings(max_examples=200, deadline=None)
def test_only_what_could_be_a_stop_string_is_held(text: str, stops: list[str]) -> None:
    stage, shown = StopStrings(stops), ""
    for place, character in enumerate(text, 1):
        shown += stage.feed(character)
        if stage.matched is not None:
            return
        held = text[len(shown) : place]
        prefixes = {stop[:size] for stop in stops for size in range(len(stop))}
        longest = max((prefix for prefix in prefixes if text[:place].endswith(prefix)), key=len)
        assert held == longest


@pytest.mark.parametrize(
    ("stops", "shown"),
    [
        (["wo"], "Hello "),
        ([". N"], "Hello world"),
        (["line"], "Hello world. Next "),
        (["ld. Next"], "Hello wor"),
        (["zzz", "llo"], "He"),
    ],
)
def test_stop_strings_across_tokens(stops: list[str], shown: str) -> None:
    stage = StopStrings(stops)
    assert "".join(stage.feed(piece) for piece in ["He", "llo wor", "ld. Nex", "t line"]) + stage.finish() == shown
    assert stage.matched in stops


def test_a_long_stop_string_delays_nothing_that_does_not_look_like_it() -> None:
    stage = StopStrings(["<<<THE-END-OF-THE-ANSWER-MARKER>>>"])
    assert stage.feed("Hello") == "Hello"
    assert stage.feed(" <<") == " "
    assert stage.feed("x") == "<<x"


def test_after_a_match_nothing_is_shown() -> None:
    stage = StopStrings(["b"])
    assert stage.feed("abc") == "a"
    assert stage.feed("more") == ""
    assert stage.finish() == ""


def test_without_stop_strings_everything_passes() -> None:
    stage = StopStrings([])
    assert stage.feed("abc") == "abc"
    assert stage.matched is None


def test_an_empty_literal_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        StopStrings(["a", ""])
