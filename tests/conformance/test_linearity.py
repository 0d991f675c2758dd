"""Cost against length, on a clock that the reader itself moves."""

from __future__ import annotations

from typing import cast

import pytest

from atom.entrypoints.openai.events import Event
from conformance.case import Request
from conformance.linearity import NAME, add_linearity
from conformance.subjects import Subject
from conformance.tally import Tally


class Costly:
    """A subject whose reader spends, for every piece, what `power` says about the text so far."""

    spec = None
    dialects = ()

    def __init__(self, power: float) -> None:
        self._power = power
        self.now = 0.0

    def open(self, request: Request) -> Costly:
        self._length = 0
        return self

    def feed(self, text: str) -> list[Event]:
        self._length += len(text)
        self.now += len(text) * self._length ** (self._power - 1)
        return []

    def finish(self) -> list[Event]:
        return []


@pytest.mark.parametrize(("power", "is_red"), [(1.0, False), (1.2, False), (1.6, True), (2.0, True)])
def test_cost_that_outgrows_the_length_is_red(power: float, is_red: bool) -> None:
    subject = Costly(power)
    tally = Tally()
    add_linearity(tally, cast(Subject, subject), 400, clock=lambda: subject.now)
    assert {column for name, column in tally.cells if name == NAME} == {"whole", "3"}
    assert bool(tally.red_cells) is is_red
    assert all(cell.finding is None or "to the power of" in cell.finding.message for cell in tally.cells.values())
