"""The corpus runner: what it counts, and what a miss says."""

from __future__ import annotations

from dataclasses import replace

from conformance.chunking import WHOLE, in_pieces
from conformance.corpus import Expected, Vector
from conformance.corpus_run import corpus_table, run_corpus
from tests.conformance.scripts import Echo, call_events

CHUNKINGS = (WHOLE, in_pieces(5))
VECTOR = Vector(
    id="v1",
    format="hermes",
    variant=None,
    tools=(),
    text="some text",
    starts_in_reasoning=False,
    engine_finish="stop",
    is_ambiguous=False,
    accepted=(Expected("some text", "", (), "stop"),),
    splits=(2,),
    why="plain text",
)


def test_an_exact_vector_is_counted_once_and_read_at_every_chunking() -> None:
    (row,) = run_corpus([VECTOR], lambda _: Echo(), CHUNKINGS)
    assert (row.num_vectors, row.num_exact, row.num_deliveries, row.misses) == (1, 1, 3, [])


def test_a_miss_names_the_vector_the_chunking_and_both_texts() -> None:
    (row,) = run_corpus([VECTOR], lambda _: Echo(lambda text: text.strip()), CHUNKINGS)
    assert row.num_exact == 0
    assert [miss.chunking for miss in row.misses] == ["5"]
    assert "'some text'" in row.misses[0].wanted
    assert "'sometext'" in row.misses[0].got


def test_an_ambiguous_vector_must_be_the_same_at_every_chunking() -> None:
    both = (Expected("some text", "", (), "stop"), Expected("sometext", "", (), "stop"))
    ambiguous = replace(VECTOR, is_ambiguous=True, accepted=both)
    (row,) = run_corpus([ambiguous], lambda _: Echo(lambda text: text.strip()), CHUNKINGS)
    assert (row.num_ambiguous, row.num_ambiguous_held) == (1, 0)
    assert row.misses[0].why == "not the whole answer's bytes"


def test_what_the_reader_raises_is_a_miss() -> None:
    def fail(text: str) -> str:
        raise RuntimeError("no such state")

    (row,) = run_corpus([VECTOR], lambda _: Echo(fail), CHUNKINGS)
    assert all("RuntimeError: no such state" in miss.got for miss in row.misses)


def test_the_engines_finish_reason_decides_by_d1() -> None:
    cut = replace(VECTOR, engine_finish="length", accepted=(Expected("some text", "", (), "tool_calls"),))
    (row,) = run_corpus([cut], lambda _: Echo(last=call_events(0, "now", "{}")), CHUNKINGS)
    assert all("finish_reason 'length'" in miss.got for miss in row.misses)


def test_the_table_has_a_line_for_each_format_and_a_total() -> None:
    rows = run_corpus([VECTOR, replace(VECTOR, id="v2", format="qwen")], lambda _: Echo(), CHUNKINGS)
    table = corpus_table(rows).splitlines()
    assert table[2:] == [
        "| hermes | 1 | 1/1 | 0/0 | 3 |",
        "| qwen | 1 | 1/1 | 0/0 | 3 |",
        "| total | 2 | 2/2 | 0/0 | 6 |",
    ]
