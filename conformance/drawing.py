"""Runs hypothesis the way the suite wants it: the same cases for the same seed, on any machine.

Owns hypothesis' settings. No example database, no clock, no health checks: what is drawn depends on the seed and the
count alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from conformance.case import Case
from conformance.draw_cases import answers
from conformance.draw_noise import noise
from conformance.scenarios import Scenario
from conformance.subjects import Subject

LEAST_CASES = 5
"""Of every scenario, and of every form."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Cases that are drawn together, and how many of them."""

    cases: st.SearchStrategy[Case]
    count: int


def batches(subject: Subject, scenario: Scenario, count: int, least: int = 1) -> list[Batch]:
    """`count` cases of a scenario; where the scenario covers forms, one batch a form, of `least` cases or more."""
    if scenario.is_noise:
        return [Batch(noise(subject), count)]
    if not scenario.covers_forms or subject.spec is None:
        return [Batch(answers(subject, scenario), max(least, count))]
    forms = subject.spec.forms
    return [Batch(answers(subject, scenario, form), max(least, round(count / len(forms)))) for form in forms]


def for_each(batch: Batch, seed_number: int, visit: Callable[[Case], None], *, is_shrinking: bool = False) -> None:
    """Visit a batch's cases. When `visit` raises, the search for a smaller case that raises follows, if wanted."""

    @seed(seed_number)
    @settings(
        max_examples=batch.count,
        phases=(Phase.generate, Phase.shrink) if is_shrinking else (Phase.generate,),
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(batch.cases)
    def run(case: Case) -> None:
        visit(case)

    run()
