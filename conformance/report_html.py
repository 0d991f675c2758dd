"""The report as one HTML page that needs nothing else: no script from elsewhere, no font, no network."""

from __future__ import annotations

from html import escape

from conformance.corpus_run import CorpusRow
from conformance.report import TITLES, Report
from conformance.report_markdown import counts
from conformance.suite import SubjectResult
from conformance.tally import Cell, Finding

_STYLE = """
:root { color-scheme: light dark; --ok: #1a7f37; --red: #cf222e; --dim: #8884; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 80rem; margin: 2rem auto; padding: 0 1rem; }
h1 { margin-bottom: 0; } h2 { margin-top: 2.5rem; } h2 small { font-weight: normal; opacity: .7; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--dim); text-align: right; }
th:first-child, td:first-child { text-align: left; } thead th { vertical-align: bottom; }
.overview th, .overview td { text-align: center; } .overview th { font-weight: normal; max-width: 6.5rem; line-height:
1.25; } .overview :is(th, td):first-child { text-align: left; white-space: nowrap; } .ok { color: var(--ok); } .none {
opacity: .4; } .red { background: var(--red); color: #fff; font-weight: 600; } .red a { color: inherit; } pre {
padding: .6rem; border: 1px solid var(--dim); overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere; }
details { margin: .5rem 0; } summary { cursor: pointer; } .scroll { overflow-x: auto; } code { font-size: .95em; }
"""


def to_html(report: Report) -> str:
    """The whole page."""
    state = "ok" if report.is_green else "red"
    parts = [
        f"<h1>ATOM conformance</h1><p class='{state}'>{escape(report.summary())}</p>",
        f"<p>The same run again: <code>{escape(report.command)}</code></p>",
    ]
    if report.subjects:
        parts.append(_overview(report))
    if report.findings:
        parts.append("<h2>Findings</h2>" + "".join(_finding(name, finding) for name, finding in report.findings))
    if report.corpus:
        parts.append(_corpus(report))
    parts += [_subject(report, result) for result in report.subjects]
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width'><title>ATOM conformance</title>"
        f"<style>{_STYLE}</style></head><body>{''.join(parts)}</body></html>\n"
    )


def _overview(report: Report) -> str:
    head = "".join(f"<th>{escape(title)}</th>" for title in TITLES.values())
    rows = "".join(_overview_row(report, result) for result in report.subjects)
    return (
        "<h2>Formats and dialects <small>all chunkings together</small></h2>"
        "<div class='scroll'><table class='overview'>"
        f"<thead><tr><th>subject</th>{head}<th>cases</th></tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _overview_row(report: Report, result: SubjectResult) -> str:
    cells = []
    for row in TITLES:
        filled = [cell for cell in report.cells_of(result, row) if cell is not None]
        num_red = sum(cell.num_red for cell in filled)
        checked = sum(cell.num_checked for cell in filled)
        if not filled:
            cells.append("<td class='none'>–</td>")
        elif num_red:
            cells.append(f"<td class='red'><a href='#{_anchor(result.name)}'>{num_red}</a></td>")
        else:
            cells.append(f"<td class='ok' title='{checked} checks'>✓</td>")
    link = f"<a href='#{_anchor(result.name)}'>{escape(result.name)}</a>"
    return f"<tr><td>{link}</td>{''.join(cells)}<td>{result.tally.num_cases.total()}</td></tr>"


def _subject(report: Report, result: SubjectResult) -> str:
    forms = f"<br>Sections by form: {escape(counts(result.tally.num_forms))}" if result.tally.num_forms else ""
    head = "".join(f"<th>{escape(column)}</th>" for column in report.columns)
    rows = "".join(
        f"<tr><td>{escape(title)}</td>{''.join(map(_cell, cells))}</tr>"
        for row, title in TITLES.items()
        if any(cells := report.cells_of(result, row))
    )
    return (
        f"<h2 id='{_anchor(result.name)}'>{escape(result.name)} <small>{result.seconds:.1f} s</small></h2>"
        f"<p>Cases: {escape(counts(result.tally.num_cases))}{forms}</p>"
        f"<div class='scroll'><table><thead><tr><th>property</th>{head}</tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return "<td class='none'>–</td>"
    if cell.num_red:
        return f"<td class='red'>{cell.num_red} of {cell.num_checked}</td>"
    return f"<td class='ok'>{cell.num_checked}</td>"


def _finding(name: str, finding: Finding) -> str:
    title = f"{name}: {TITLES[finding.property]}, chunking {finding.chunking}"
    where = f"{finding.scenario}{', ' + finding.form if finding.form else ''}{', shrunk' if finding.is_shrunk else ''}"
    return (
        f"<details open><summary><strong>{escape(title)}</strong> ({escape(where)})</summary>"
        f"<pre>{escape(finding.text)}</pre><pre>{escape(finding.message)}</pre></details>"
    )


def _corpus(report: Report) -> str:
    return (
        f"<h2>Recorded vectors <small>{escape(report.corpus_folder or '')}</small></h2>"
        "<table><thead><tr><th>format</th><th>vectors</th><th>exact</th><th>ambiguous held</th>"
        f"<th>answers read</th></tr></thead><tbody>{''.join(map(_corpus_row, report.corpus))}</tbody></table>"
        f"{''.join(map(_misses, report.corpus))}"
    )


def _corpus_row(row: CorpusRow) -> str:
    exact = f"<td class='{_state(row.num_exact, row.num_firm)}'>{row.num_exact} of {row.num_firm}</td>"
    is_held = _state(row.num_ambiguous_held, row.num_ambiguous)
    held = f"<td class='{is_held}'>{row.num_ambiguous_held} of {row.num_ambiguous}</td>"
    return f"<tr><td>{escape(row.format)}</td><td>{row.num_vectors}</td>{exact}{held}<td>{row.num_deliveries}</td></tr>"


def _misses(row: CorpusRow) -> str:
    return "".join(
        f"<details><summary><strong>{escape(miss.vector)}</strong> at {escape(miss.chunking)}: {escape(miss.why)}"
        f"</summary><pre>{escape(miss.text)}</pre>"
        f"<pre>wanted {escape(miss.wanted)}\ngot    {escape(miss.got)}</pre></details>"
        for miss in row.misses
    )


def _state(count: int, of: int) -> str:
    return "ok" if count == of else "red"


def _anchor(name: str) -> str:
    return escape(name.replace(" ", "-"), quote=True)
