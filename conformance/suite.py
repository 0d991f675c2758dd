"""Runs the suite for a subject: every scenario's cases, cuts, long texts; then shrinks what broke.

Owns hypothesis' settings and the seeds. The first pass only counts, so that one fault can't hide another; a red
cell's smallest case is then searched for anew.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from hypothesis import HealthCheck, Phase, find, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from conformance.case import Case
from conformance.chunking import WHOLE, Chunking, all_chunkings
from conformance.delivery import deliver
from conformance.draw_cases import answers
from conformance.draw_noise import noise
from conformance.linearity import add_linearity
from conformance.profiles import Profile
from conformance.properties import PROPERTIES
from conformance.scenarios import SCENARIOS, Scenario
from conformance.subjects import Subject
from conformance.tally import Tally, breach_of, finding
from conformance.truncation import add_truncations

MAX_TRUNCATED_CHARACTERS = 400


@dataclass(frozen=True, slots=True)
class SubjectResult:
    """One subject's matrix."""

    name: str
    tally: Tally
    seconds: float


def run_subject(subject: Subject, profile: Profile, seed_number: int) -> SubjectResult:
    """Everything that the suite has to say about `subject`; the same for the same seed and profile, but for the
    clock.
    """
    started = time.monotonic()
    tally = Tally()
    chunkings = all_chunkings(seed_number)
    for scenario in scenarios_of(subject):
        strategy = cases(subject, scenario)
        count = max(5, round(profile.num_cases * scenario.share))
        _for_each(strategy, count, seed_number, lambda case: tally.add_case(case, subject.open, chunkings))
        count = max(1, round(profile.num_truncated * scenario.share))
        if not scenario.is_noise:
            short = strategy.filter(lambda case: 1 < len(case.text) <= MAX_TRUNCATED_CHARACTERS)
            _for_each(short, count, seed_number, lambda case: add_truncations(tally, case, subject.open, chunkings))
    add_linearity(tally, subject, profile.num_characters)
    _shrink_findings(tally, subject, chunkings, seed_number)
    return SubjectResult(subject.name, tally, time.monotonic() - started)


def scenarios_of(subject: Subject) -> Sequence[Scenario]:
    """The scenarios that say something about this subject."""
    if subject.spec is not None:
        return [one for one in SCENARIOS if subject.dialects or not one.has_reasoning]
    return [replace(one, share=0.25) for one in SCENARIOS if one.has_reasoning or one.name == "prose" or one.is_noise]


def cases(subject: Subject, scenario: Scenario) -> st.SearchStrategy[Case]:
    """The cases of one scenario for one subject."""
    return noise(subject) if scenario.is_noise else answers(subject, scenario)


def _settings(count: int, *phases: Phase) -> settings:
    return settings(
        max_examples=count,
        phases=phases,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


def _for_each(strategy: st.SearchStrategy[Case], count: int, seed_number: int, visit: Callable[[Case], None]) -> None:
    @seed(seed_number)
    @_settings(count, Phase.generate)
    @given(strategy)
    def run(case: Case) -> None:
        visit(case)

    run()


def _shrink_findings(tally: Tally, subject: Subject, chunkings: Sequence[Chunking], seed_number: int) -> None:
    """Look for a smaller case of each property that broke, under the first chunking that broke it."""
    by_name = {one.name: one for one in PROPERTIES}
    by_chunking = {chunking.name: chunking for chunking in chunkings}
    scenarios = {scenario.name: scenario for scenario in scenarios_of(subject)}
    done: set[str] = set()
    for (name, chunking_name), cell in tally.red_cells.items():
        found = cell.finding
        if name in done or name not in by_name or found is None:
            continue
        done.add(name)
        chunking = by_chunking[chunking_name]

        def message_of(case: Case, one=by_name[name], chunking=chunking) -> str | None:  # type: ignore[no-untyped-def]
            whole = deliver(subject.open(case.request), [case.text])
            delivered = whole if chunking is WHOLE else deliver(subject.open(case.request), chunking.cut(case.text))
            return breach_of(one, case, delivered, whole)

        try:
            smallest = find(
                cases(subject, scenarios[found.scenario]),
                lambda case: message_of(case) is not None,
                settings=_settings(300, Phase.generate, Phase.shrink),
                random=random.Random(seed_number),
            )
        except NoSuchExample:
            continue
        message = message_of(smallest)
        assert message is not None
        cell.finding = replace(finding(name, chunking_name, smallest, message), is_shrunk=True)
