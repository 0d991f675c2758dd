"""Runs the suite for a subject: every scenario's cases, cuts, long texts; then shrinks what broke.

Owns hypothesis' settings and the seeds. The first pass only counts, so that one fault can't hide another; a red
cell's smallest case is then searched for anew.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from conformance.case import Case
from conformance.chunking import all_chunkings
from conformance.drawing import LEAST_CASES, batches, for_each
from conformance.linearity import add_linearity
from conformance.profiles import Profile
from conformance.scenarios import SCENARIOS, Scenario
from conformance.shrink import shrink_findings
from conformance.subjects import Subject
from conformance.tally import Tally
from conformance.truncation import add_truncations

MAX_TRUNCATED_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class SubjectResult:
    """One subject's matrix."""

    name: str
    tally: Tally
    seconds: float


def run_subject(subject: Subject, profile: Profile, seed_number: int) -> SubjectResult:
    """Everything that the suite has to say about `subject`; the same cases for the same seed and profile."""
    started = time.monotonic()
    tally = Tally()
    chunkings = all_chunkings(seed_number)
    scenarios = scenarios_of(subject)
    for scenario in scenarios:
        for batch in batches(subject, scenario, profile.cases_of(scenario), LEAST_CASES):
            for_each(batch, seed_number, lambda case: tally.add_case(case, subject.open, chunkings))
        if scenario.is_noise or scenario.is_mixed:
            continue  # what a cut leaves of them is not known
        for batch in batches(subject, scenario, profile.truncated_of(scenario)):
            short = replace(batch, cases=batch.cases.filter(_is_short))
            for_each(short, seed_number, lambda case: add_truncations(tally, case, subject.open, chunkings))
    add_linearity(tally, subject, profile.num_characters)
    if profile.is_shrinking:
        shrink_findings(tally, subject, scenarios, chunkings, profile, seed_number)
    return SubjectResult(subject.name, tally, time.monotonic() - started)


def _is_short(case: Case) -> bool:
    return 1 < len(case.text) <= MAX_TRUNCATED_CHARACTERS


def scenarios_of(subject: Subject) -> Sequence[Scenario]:
    """The scenarios that say something about this subject."""
    if subject.spec is not None:
        return [one for one in SCENARIOS if subject.dialects or not one.has_reasoning]
    return [replace(one, share=0.25) for one in SCENARIOS if one.has_reasoning or one.name == "prose" or one.is_noise]
