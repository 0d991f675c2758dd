"""Counts: how often each property was checked under each chunking, how often it broke, and by which case.

Owns the matrix of one subject. Knows how to deliver a case and nothing of how cases are drawn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from conformance.case import Case, Request
from conformance.chunking import WHOLE, Chunking
from conformance.delivery import Delivery, Reader, deliver
from conformance.properties import PROPERTIES, Breach, Property

OpenReader = Callable[[Request], Reader]


@dataclass(frozen=True, slots=True)
class Finding:
    """A case that breaks a property under a chunking."""

    property: str
    chunking: str
    scenario: str
    form: str
    text: str
    message: str
    is_shrunk: bool = False


@dataclass(slots=True)
class Cell:
    """One property under one chunking."""

    num_checked: int = 0
    num_red: int = 0
    finding: Finding | None = None

    def add(self, finding: Finding | None) -> None:
        """Count one check; the shortest text among the findings is kept."""
        self.num_checked += 1
        if finding is not None:
            self.num_red += 1
            if self.finding is None or len(finding.text) < len(self.finding.text):
                self.finding = finding


@dataclass(slots=True)
class Tally:
    """The matrix of one subject, how many cases each scenario gave, and how many sections each form."""

    cells: dict[tuple[str, str], Cell] = field(default_factory=dict)
    num_cases: Counter[str] = field(default_factory=Counter)
    num_forms: Counter[str] = field(default_factory=Counter)
    num_deliveries: int = 0

    def cell(self, name: str, chunking: str) -> Cell:
        """The cell of a property under a chunking, made on first use."""
        return self.cells.setdefault((name, chunking), Cell())

    @property
    def red_cells(self) -> dict[tuple[str, str], Cell]:
        """The cells with a breach."""
        return {key: cell for key, cell in self.cells.items() if cell.num_red}

    def record(self, name: str, chunking: str, case: Case, message: str | None) -> None:
        """Count one check of a case; `message` is the breach's, None when there is none."""
        self.cell(name, chunking).add(None if message is None else finding(name, chunking, case, message))

    def add_case(self, case: Case, open_reader: OpenReader, chunkings: Sequence[Chunking]) -> None:
        """Deliver a case whole and by every chunking, and check every property of every delivery."""
        self.num_cases[case.scenario] += 1
        self.num_forms.update(case.forms)
        whole = deliver(open_reader(case.request), [case.text])
        for chunking in chunkings:
            delivered = whole if chunking is WHOLE else deliver(open_reader(case.request), chunking.cut(case.text))
            self.num_deliveries += 1
            for one in PROPERTIES[:1] if delivered.answer is None else PROPERTIES:
                if case.spans is not None or not one.needs_expectation:
                    message = breach_of(one, case, delivered, whole)
                    self.record(one.name, chunking.name, case, message)


def finding(name: str, chunking: str, case: Case, message: str) -> Finding:
    """A breach, with what is needed to read it."""
    return Finding(name, chunking, case.scenario, " + ".join(case.forms), case.text, message)


def breach_of(one: Property, case: Case, delivered: Delivery, whole: Delivery) -> str | None:
    """The message of a breach, or None."""
    try:
        one.check(case, delivered, whole)
    except Breach as breach:
        return str(breach)
    return None
