"""An answer that is being drawn: what has been decided about it, and the sheet that it is written on."""

from __future__ import annotations

from dataclasses import dataclass, field

from atom_spec.dialects import ReasoningDialect

from conformance.case import Request
from conformance.draw_tools import DrawnTool
from conformance.scenarios import Scenario
from conformance.sheet import Sheet
from conformance.subjects import Subject


@dataclass(slots=True)
class Draft:
    """What is settled before the first character is written; `sheet` and `forms` grow with the answer.

    `is_counting_anew`: the model numbers this answer's calls from 0 again, whatever the conversation holds (decision
    D7).
    """

    subject: Subject
    scenario: Scenario
    request: Request
    dialect: ReasoningDialect | None
    variant: str | None
    tools: tuple[DrawnTool, ...]
    sheet: Sheet
    is_counting_anew: bool
    forms: list[str] = field(default_factory=list)

    @property
    def markers(self) -> tuple[str, ...]:
        """What prose can't hold: complete markers of the format and of the dialect."""
        of_format = self.subject.spec.markers if self.subject.spec else ()
        of_dialect = (self.dialect.start, self.dialect.end) if self.dialect and not self.dialect.in_format else ()
        return (*of_format, *of_dialect)
