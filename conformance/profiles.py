"""How much a run draws."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Profile:
    """Amounts per subject. `num_characters` is the shorter of the two lengths whose cost is compared."""

    name: str
    num_cases: int
    num_truncated: int
    num_characters: int


SHORT = Profile("short", num_cases=240, num_truncated=8, num_characters=8_000)
LONG = Profile("long", num_cases=5_000, num_truncated=120, num_characters=32_000)
