"""Runs hypothesis the way the suite wants it: the same cases for the same seed, on any machine.

Owns hypothesis' settings. No example database, no clock, no health checks: what is drawn depends on the seed and the
count alone.
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from conformance.case import Case
from conformance.draw_cases import answers
from conformance.draw_noise import noise
from conformance.scenarios import Scenario
from conformance.subjects import Subject


def cases(subject: Subject, scenario: Scenario) -> st.SearchStrategy[Case]:
    """The cases of one scenario for one subject."""
    return noise(subject) if scenario.is_noise else answers(subject, scenario)


def for_each(
    strategy: st.SearchStrategy[Case],
    count: int,
    seed_number: int,
    visit: Callable[[Case], None],
    *,
    is_shrinking: bool = False,
) -> None:
    """Visit `count` drawn cases. When `visit` raises, the search for a smaller case that raises follows, if wanted."""

    @seed(seed_number)
    @settings(
        max_examples=count,
        phases=(Phase.generate, Phase.shrink) if is_shrinking else (Phase.generate,),
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def run(case: Case) -> None:
        visit(case)

    run()
