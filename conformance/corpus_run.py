"""Runs recorded vectors: each one whole, at every chunking, and cut where the vector asks for it.

Owns what is counted and what a miss says. A vector that isn't ambiguous must be exact at every chunking; an ambiguous
one must be one of its accepted answers, and the same one at every chunking.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from conformance.answer import Answer
from conformance.chunking import WHOLE, Chunking, at_offsets
from conformance.corpus import Expected, Vector
from conformance.delivery import Delivery, Reader, deliver

OpenReader = Callable[[Vector], Reader]


@dataclass(frozen=True, slots=True)
class Miss:
    """A vector whose answer is wrong under one chunking, with both answers as text."""

    vector: str
    chunking: str
    why: str
    text: str
    wanted: str
    got: str


@dataclass(slots=True)
class CorpusRow:
    """The table's line for one format."""

    format: str
    num_vectors: int = 0
    num_exact: int = 0
    num_ambiguous: int = 0
    num_ambiguous_held: int = 0
    num_deliveries: int = 0
    misses: list[Miss] = field(default_factory=list)

    @property
    def num_firm(self) -> int:
        """Vectors with a single right answer."""
        return self.num_vectors - self.num_ambiguous


def run_corpus(vectors: Iterable[Vector], open_reader: OpenReader, chunkings: Sequence[Chunking]) -> list[CorpusRow]:
    """One row a format, in the order of first appearance. `open_reader` gives a fresh reader for a vector."""
    rows: dict[str, CorpusRow] = {}
    for vector in vectors:
        row = rows.setdefault(vector.format, CorpusRow(vector.format))
        row.num_vectors += 1
        row.num_ambiguous += vector.is_ambiguous
        deliveries = _deliver_all(vector, open_reader, chunkings)
        row.num_deliveries += len(deliveries)
        misses = list(_misses(vector, deliveries))
        row.misses += misses
        if vector.is_ambiguous:
            row.num_ambiguous_held += not misses
        else:
            row.num_exact += not misses
    return list(rows.values())


def _deliver_all(vector: Vector, open_reader: OpenReader, chunkings: Sequence[Chunking]) -> list[tuple[str, Delivery]]:
    own = [at_offsets(vector.splits)] if vector.splits else []
    return [
        (chunking.name, deliver(open_reader(vector), chunking.cut(vector.text), vector.engine_finish))
        for chunking in (WHOLE, *(c for c in chunkings if c.name != WHOLE.name), *own)
    ]


def _misses(vector: Vector, deliveries: Sequence[tuple[str, Delivery]]) -> Iterable[Miss]:
    whole = deliveries[0][1]
    for chunking, delivery in deliveries:
        if delivery.answer is None or not vector.accepts(delivery.answer):
            yield _miss(vector, chunking, vector.why, " or ".join(map(_told, vector.accepted)), delivery)
        elif delivery.answer != whole.answer:
            yield _miss(vector, chunking, "not the whole answer's bytes", str(whole.answer), delivery)


def _miss(vector: Vector, chunking: str, why: str, wanted: str, delivery: Delivery) -> Miss:
    return Miss(vector.id, chunking, why, vector.text, wanted, delivery.error or _told(delivery.answer))


def _told(answer: Expected | Answer | None) -> str:
    """An answer as one line, expected and actual ones spelled alike so that they can be laid over each other."""
    if answer is None:
        return "no answer"
    calls = ", ".join(f"{call.name}({call.arguments})" for call in answer.calls)
    text = f"content {answer.content!r}, reasoning {answer.reasoning!r}"
    return f"{text}, calls [{calls}], finish_reason {answer.finish_reason!r}"


def corpus_table(rows: Sequence[CorpusRow]) -> str:
    """The table as Markdown: format, vectors, exact, ambiguous held."""
    lines = ["| format | vectors | exact | ambiguous held | deliveries |", "|---|---:|---:|---:|---:|"]
    for row in [*rows, _total(rows)]:
        lines.append(
            f"| {row.format} | {row.num_vectors} | {row.num_exact}/{row.num_firm} "
            f"| {row.num_ambiguous_held}/{row.num_ambiguous} | {row.num_deliveries} |"
        )
    return "\n".join(lines)


def _total(rows: Sequence[CorpusRow]) -> CorpusRow:
    return CorpusRow(
        "total",
        *(
            sum(getattr(row, name) for row in rows)
            for name in ("num_vectors", "num_exact", "num_ambiguous", "num_ambiguous_held", "num_deliveries")
        ),
    )
