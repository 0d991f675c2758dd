"""The report as one Markdown page."""

from __future__ import annotations

from collections import Counter

from conformance.corpus_run import corpus_table
from conformance.report import TITLES, Report
from conformance.suite import SubjectResult
from conformance.tally import Cell


def to_markdown(report: Report) -> str:
    """Summary, overview, the matrix of every subject, findings, corpus."""
    parts = ["# Conformance", "", report.summary(), "", f"Again: `{report.command}`", ""]
    if report.subjects:
        parts += [_overview(report), ""]
    for result in report.subjects:
        parts += [_matrix(report, result), ""]
    if report.findings:
        parts += ["## Findings", ""]
    for name, finding in report.findings:
        form = f" ({finding.form})" if finding.form else ""
        parts += [f"### {name}: {finding.property} at {finding.chunking}", "", f"{finding.scenario}{form}", ""]
        parts += [_fenced(finding.text), "", _fenced(finding.message), ""]
    if report.corpus:
        parts += [f"## Corpus {report.corpus_folder}", "", corpus_table(report.corpus), ""]
    for row in report.corpus:
        for miss in row.misses:
            parts += [f"### {miss.vector} at {miss.chunking}", "", miss.why, ""]
            parts += [_fenced(f"text   {miss.text!r}\nwanted {miss.wanted}\ngot    {miss.got}"), ""]
    return "\n".join(parts)


def _overview(report: Report) -> str:
    lines = [_row(["subject", *TITLES.values(), "cases"]), _rule(len(TITLES) + 2)]
    for result in report.subjects:
        states = [_state(report.cells_of(result, row)) for row in TITLES]
        lines.append(_row([result.name, *states, str(result.tally.num_cases.total())]))
    return "\n".join(lines)


def _matrix(report: Report, result: SubjectResult) -> str:
    lines = [f"## {result.name}", "", f"Cases: {counts(result.tally.num_cases)}", ""]
    if result.tally.num_forms:
        lines += [f"Sections by form: {counts(result.tally.num_forms)}", ""]
    lines.append(_row(["property", *report.columns]))
    lines.append(_rule(len(report.columns) + 1))
    for row, title in TITLES.items():
        cells = report.cells_of(result, row)
        if any(cells):
            lines.append(_row([title, *map(_count, cells)]))
    return "\n".join(lines)


def counts(counter: Counter[str]) -> str:
    """Names and counts, the most frequent first."""
    return ", ".join(f"{name} {count}" for name, count in counter.most_common())


def _state(cells: list[Cell | None]) -> str:
    filled = [cell for cell in cells if cell is not None]
    if not filled:
        return "–"
    num_red = sum(cell.num_red for cell in filled)
    return f"**{num_red} red**" if num_red else "ok"


def _count(cell: Cell | None) -> str:
    if cell is None:
        return "–"
    return f"**{cell.num_red} red** of {cell.num_checked}" if cell.num_red else str(cell.num_checked)


def _row(fields: list[str]) -> str:
    return "| " + " | ".join(fields) + " |"


def _rule(num_columns: int) -> str:
    return "|" + "---|" * num_columns


def _fenced(text: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}text\n{text}\n{fence}"
