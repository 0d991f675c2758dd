"""How much a run draws."""

from __future__ import annotations

from dataclasses import dataclass

from conformance.scenarios import Scenario


@dataclass(frozen=True, slots=True)
class Profile:
    """Amounts per subject. `num_characters` is the shorter of the two lengths whose cost is compared.

    `is_shrinking`: whether the smallest case is looked for behind each finding.
    """

    name: str
    num_cases: int
    num_truncated: int
    num_characters: int
    is_shrinking: bool = True

    def cases_of(self, scenario: Scenario) -> int:
        """Cases of one scenario."""
        return round(self.num_cases * scenario.share)

    def truncated_of(self, scenario: Scenario) -> int:
        """Cases of one scenario that are cut at every character."""
        return round(self.num_truncated * scenario.share)


SHORT = Profile("short", num_cases=240, num_truncated=8, num_characters=8_000)
LONG = Profile("long", num_cases=5_000, num_truncated=120, num_characters=32_000)
