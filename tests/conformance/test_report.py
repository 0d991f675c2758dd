"""The report: three pages that say the same, each complete in itself."""

from __future__ import annotations

import json
from collections import Counter
from html.parser import HTMLParser

import pytest

from conformance.corpus_run import CorpusRow, Miss
from conformance.report import Report, to_json
from conformance.report_html import to_html
from conformance.report_markdown import to_markdown
from conformance.suite import SubjectResult
from conformance.tally import Cell, Finding, Tally

FINDING = Finding("no_leak", "3", "calls", "canonical", "a <b> c", "content holds <b> & more", is_shrunk=True)
MISS = Miss("hermes-1", "7", "why & wherefore", "te<xt", "wanted <this>", "got <that>")


def _report(*, is_red: bool) -> Report:
    cells = {("same_bytes", "whole"): Cell(5), ("same_bytes", "3"): Cell(5), ("linear", "whole"): Cell(4)}
    if is_red:
        cells["no_leak", "3"] = Cell(5, 1, FINDING)
    tally = Tally(cells, Counter({"calls": 5}), Counter({"canonical": 6, "one_line": 1}), 10)
    row = CorpusRow("hermes", 2, 1 if is_red else 2, 0, 0, 18, [MISS] if is_red else [])
    results = (SubjectResult("hermes", tally, 1.5),)
    return Report("python -m conformance --seed 7", "short", 7, 2.0, ("whole", "3"), results, "corpus", (row,))


class _References(HTMLParser):
    """Collects everything that a page would load."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value or "" for name, value in attrs if name in ("src", "href")]


def test_green_is_no_finding_and_no_miss() -> None:
    assert _report(is_red=False).is_green
    assert not _report(is_red=True).is_green
    assert _report(is_red=True).summary().startswith("RED: 1 cells, 1 misses; 5 cases, 28 answers read")


def test_the_json_page_holds_the_matrix_the_finding_and_the_miss() -> None:
    page = json.loads(to_json(_report(is_red=True)))
    assert page["seed"] == 7
    assert page["subjects"][0]["matrix"]["no_leak"] == {"3": {"checked": 5, "red": 1}}
    assert page["subjects"][0]["cases"] == {"calls": 5}
    assert page["subjects"][0]["forms"] == {"canonical": 6, "one_line": 1}
    assert page["findings"][0]["text"] == FINDING.text
    assert page["corpus"]["formats"][0]["misses"][0]["got"] == MISS.got


def test_the_html_page_loads_nothing_and_escapes_everything() -> None:
    page = to_html(_report(is_red=True))
    references = _References()
    references.feed(page)
    assert all(reference.startswith("#") for reference in references.found)
    assert "a &lt;b&gt; c" in page
    assert "got &lt;that&gt;" in page
    assert "<b>" not in page


@pytest.mark.parametrize("is_red", [True, False])
def test_the_markdown_page_has_a_table_for_each_subject(is_red: bool) -> None:
    page = to_markdown(_report(is_red=is_red))
    assert "| Streamed = whole, byte for byte | 5 | 5 |" in page
    assert "| Cost linear in the length | 4 | – |" in page
    assert ("| No markup leaks | – | **1 red** of 5 |" in page) is is_red
    assert ("hermes-1 at 7" in page) is is_red
