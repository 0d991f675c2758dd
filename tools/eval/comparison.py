"""Scores of one task by several models, and where they differ.

Owns: which numbers must be equal. Does not know: lm-eval, models, data.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

MAX_DIFFERENCE = 0.001
"""Of a multiple-choice score against transformers' own."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One task by one model. `scores` by metric; `answers`: what each case was answered, by its number."""

    task: str
    model: str
    scores: dict[str, float]
    answers: dict[int, Any] = field(repr=False)


def row(outcome: Outcome) -> str:
    """A line of the table."""
    scores = ", ".join(f"{metric} {100 * value:.2f}" for metric, value in outcome.scores.items())
    return f"{outcome.task:<20}{outcome.model:<46}{len(outcome.answers):>4} cases  {scores}"


def differences(outcomes: list[Outcome]) -> list[str]:
    """Where numbers that must be equal are not: scores and answers of a task, asked as text or as chat."""
    findings = []
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(outcome.task.removesuffix("_chat"), []).append(outcome)
    for task, (first, *others) in groups.items():
        allowed = MAX_DIFFERENCE if task == "atom_choices" else 0.0
        for other in others:
            for metric, value in other.scores.items():
                if abs(value - first.scores[metric]) > allowed:
                    findings.append(
                        f"{task}, {metric}: {first.scores[metric]:.4f} by {first.model}, {value:.4f} by {other.model}"
                    )
            if task != "atom_choices" and (cases := [n for n in first.answers if first.answers[n] != other.answers[n]]):
                findings.append(
                    f"{task}: {first.model} and {other.model} answer {len(cases)} cases differently: {cases[:8]}"
                )
    return findings
