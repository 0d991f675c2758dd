"""Looks for the smallest case behind each finding.

Owns the search. The suite's first pass only counts, so that one fault can't hide another; here the pass is repeated
for each property that broke, with nothing else in the way, up to its first breach, which is then shrunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from conformance.case import Case
from conformance.chunking import WHOLE, Chunking
from conformance.delivery import deliver
from conformance.drawing import LEAST_CASES, Batch, batches, for_each
from conformance.profiles import Profile
from conformance.properties import PROPERTIES, Breach, Property
from conformance.scenarios import Scenario
from conformance.subjects import Subject
from conformance.tally import Finding, Tally, breach_of, finding


def shrink_findings(
    tally: Tally,
    subject: Subject,
    scenarios: Sequence[Scenario],
    chunkings: Sequence[Chunking],
    profile: Profile,
    seed_number: int,
) -> None:
    """Put the smallest case in place of each property's first finding."""
    by_name = {one.name: one for one in PROPERTIES}
    for name in dict.fromkeys(name for name, _ in tally.red_cells if name in by_name):
        chunking = next(one for one in chunkings if (name, one.name) in tally.red_cells)
        cell = tally.cell(name, chunking.name)
        assert cell.finding is not None
        scenario = next(one for one in scenarios if one.name == cell.finding.scenario)
        drawn = batches(subject, scenario, profile.cases_of(scenario), LEAST_CASES)
        found = (_smallest(subject, batch, by_name[name], chunking, seed_number) for batch in drawn)
        cell.finding = next(filter(None, found), cell.finding)


def _smallest(subject: Subject, batch: Batch, one: Property, chunking: Chunking, seed_number: int) -> Finding | None:
    """The smallest case of a batch that breaks `one` under `chunking`; None when none of its cases does."""
    last: Finding | None = None

    def visit(case: Case) -> None:
        nonlocal last
        if case.spans is None and one.needs_expectation:
            return
        whole = deliver(subject.open(case.request), [case.text])
        delivered = whole if chunking is WHOLE else deliver(subject.open(case.request), chunking.cut(case.text))
        message = breach_of(one, case, delivered, whole)
        if message is not None:
            last = replace(finding(one.name, chunking.name, case, message), is_shrunk=True)
            raise Breach(message)

    with suppress(Breach):  # hypothesis visits the smallest case last
        for_each(batch, seed_number, visit, is_shrinking=True)
    return last
