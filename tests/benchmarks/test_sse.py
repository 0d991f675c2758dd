from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from atom.benchmarks.sse import EventSplitter

STREAM = (
    b": hello\n\ndata: one\n\ndata:two\n\nevent: message\r\ndata: th\xc3\xa9\r\n\r\n"
    b"data: a\ndata: b\n\nid: 7\n\ndata:  two spaces\n\ndata:\n\ndata: cut off"
)
EVENTS = [b"one", b"two", "thé".encode(), b"a\nb", b" two spaces", b"", b"cut off"]


@given(st.lists(st.integers(0, len(STREAM))))
def test_events_do_not_depend_on_where_the_stream_is_cut(cuts: list[int]) -> None:
    splitter = EventSplitter()
    borders = [0, *sorted(cuts), len(STREAM)]
    found = []
    for start, end in itertools.pairwise(borders):
        found += splitter.feed(STREAM[start:end])
    assert found + splitter.finish() == EVENTS


def test_an_event_is_given_out_with_the_piece_that_completes_it() -> None:
    splitter = EventSplitter()
    assert splitter.feed(b"data: one\n") == []
    assert splitter.feed(b"\ndata: two\n\nda") == [b"one", b"two"]
    assert splitter.feed(b"ta: three\n\n") == [b"three"]
    assert splitter.finish() == []
