"""The report's data, as one plain object: what was run, the matrix of every subject, the findings, the corpus' results.

Owns the JSON form. The Markdown and HTML pages are made from it, so that the three say the same.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from conformance import linearity, truncation
from conformance.corpus_run import CorpusRow
from conformance.properties import PROPERTIES
from conformance.suite import SubjectResult
from conformance.tally import Cell, Finding

TITLES: dict[str, str] = {
    **{one.name: one.title for one in PROPERTIES},
    truncation.NAME: truncation.TITLE,
    linearity.NAME: linearity.TITLE,
}
"""The rows of the matrix, in order."""


@dataclass(frozen=True, slots=True)
class Report:
    """One run of the suite."""

    command: str
    profile: str
    seed: int
    seconds: float
    columns: tuple[str, ...]
    subjects: tuple[SubjectResult, ...]
    corpus_folder: str | None = None
    corpus: tuple[CorpusRow, ...] = ()

    @property
    def findings(self) -> list[tuple[str, Finding]]:
        """By subject's name: one case of each property that broke, a shrunk one first, then the shortest."""
        return [
            (result.name, min(found, key=lambda one: (not one.is_shrunk, len(one.text))))
            for result in self.subjects
            for row in TITLES
            if (found := [cell.finding for cell in self.cells_of(result, row) if cell is not None and cell.finding])
        ]

    @property
    def num_red_cells(self) -> int:
        """Cells with a breach, over all matrices."""
        return sum(len(result.tally.red_cells) for result in self.subjects)

    @property
    def num_misses(self) -> int:
        """Corpus misses; a vector counts once for each chunking that misses it."""
        return sum(len(row.misses) for row in self.corpus)

    @property
    def is_green(self) -> bool:
        """No red cell and no miss."""
        return not self.findings and not self.num_misses

    @property
    def num_cases(self) -> int:
        """Drawn cases, of every subject and scenario."""
        return sum(result.tally.num_cases.total() for result in self.subjects)

    @property
    def num_deliveries(self) -> int:
        """Answers that were read: each case at each chunking, each cut twice, each vector at each chunking."""
        return sum(result.tally.num_deliveries for result in self.subjects) + sum(
            row.num_deliveries for row in self.corpus
        )

    @property
    def num_checks(self) -> int:
        """Properties checked."""
        return sum(cell.num_checked for result in self.subjects for cell in result.tally.cells.values())

    def cells_of(self, result: SubjectResult, row: str) -> list[Cell | None]:
        """A matrix row's cells, one a column; None where the property has no meaning for the chunking."""
        return [result.tally.cells.get((row, column)) for column in self.columns]

    def summary(self) -> str:
        """One line for the terminal and the top of the pages."""
        state = "green" if self.is_green else f"RED: {self.num_red_cells} cells, {self.num_misses} misses"
        return (
            f"{state}; {self.num_cases} cases, {self.num_deliveries} answers read, {self.num_checks} checks, "
            f"profile {self.profile}, seed {self.seed}, {self.seconds:.0f} s"
        )


def to_json(report: Report) -> str:
    """The report as JSON text."""
    return json.dumps(_plain(report), ensure_ascii=False, indent=1)


def _plain(report: Report) -> dict[str, Any]:
    return {
        "green": report.is_green,
        "summary": report.summary(),
        "command": report.command,
        "profile": report.profile,
        "seed": report.seed,
        "seconds": round(report.seconds, 1),
        "cases": report.num_cases,
        "answers_read": report.num_deliveries,
        "checks": report.num_checks,
        "chunkings": list(report.columns),
        "properties": TITLES,
        "subjects": [_plain_subject(report, result) for result in report.subjects],
        "findings": [{"subject": name, **asdict(finding)} for name, finding in report.findings],
        "corpus": {"folder": report.corpus_folder, "formats": [asdict(row) for row in report.corpus]},
    }


def _plain_subject(report: Report, result: SubjectResult) -> dict[str, Any]:
    matrix = {
        row: {
            column: {"checked": cell.num_checked, "red": cell.num_red} for column, cell in _filled(report, result, row)
        }
        for row in TITLES
    }
    return {
        "name": result.name,
        "seconds": round(result.seconds, 1),
        "cases": dict(result.tally.num_cases),
        "forms": dict(sorted(result.tally.num_forms.items())),
        "matrix": {row: cells for row, cells in matrix.items() if cells},
    }


def _filled(report: Report, result: SubjectResult, row: str) -> Sequence[tuple[str, Cell]]:
    pairs = zip(report.columns, report.cells_of(result, row), strict=True)
    return [(column, cell) for column, cell in pairs if cell is not None]
