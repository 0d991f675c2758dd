"""The families of cases, and what part of a subject's cases each one has.

Owns what varies between scenarios; how a case is drawn is `draw_cases`' business.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scenario:
    """A family of cases. `share` is its part of a subject's cases; the shares of all scenarios sum to 1.

    `covers_forms`: every form of the format gets cases of its own.
    """

    name: str
    share: float
    has_calls: bool = False
    is_declared: bool = True
    is_mixed: bool = False
    has_tools: bool = True
    is_suppressed: bool = False
    has_quotes: bool = False
    has_reasoning: bool = False
    is_noise: bool = False
    covers_forms: bool = False


SCENARIOS = (
    Scenario("calls", 0.3, has_calls=True, covers_forms=True),
    Scenario("some undeclared", 0.05, has_calls=True, is_mixed=True),
    Scenario("quoted openers", 0.15, has_calls=True, has_quotes=True),
    Scenario("reasoning", 0.15, has_calls=True, has_reasoning=True),
    Scenario("undeclared", 0.1, has_calls=True, is_declared=False),
    Scenario("no tools", 0.05, has_calls=True, is_declared=False, has_tools=False),
    Scenario("tool_choice none", 0.08, has_calls=True, is_suppressed=True),
    Scenario("tool_choice none, undeclared", 0.02, has_calls=True, is_declared=False, is_suppressed=True),
    Scenario("prose", 0.05),
    Scenario("noise", 0.05, is_noise=True),
)
