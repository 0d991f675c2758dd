"""One delivery: a text fed to a fresh reader piece by piece, and everything the reader said, and when.

Time is an offset into the text: how many characters the reader had been given. Knows nothing of formats or
expectations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from atom.entrypoints.openai.events import ContentDelta, Event, ReasoningDelta
from conformance.answer import Answer, AnswerFold, ProtocolError


class Reader(Protocol):
    """What is under test: a reader of one answer."""

    def feed(self, text: str) -> list[Event]:
        """Take the next piece of the answer."""
        ...

    def finish(self) -> list[Event]:
        """Take note that the answer has ended."""
        ...


@dataclass(frozen=True, slots=True)
class Step:
    """What the reader said after it had been given `offset` characters; the last step is the end of the answer."""

    offset: int
    events: tuple[Event, ...]

    @property
    def num_characters(self) -> int:
        """Characters of content and reasoning that went out in this step."""
        return sum(len(event.text) for event in self.events if isinstance(event, ContentDelta | ReasoningDelta))


@dataclass(frozen=True, slots=True)
class Delivery:
    """The steps of one answer, and the answer; or the error that ended them."""

    steps: tuple[Step, ...]
    answer: Answer | None
    error: str | None = None

    @property
    def events(self) -> Iterator[Event]:
        """Every event, in order."""
        return (event for step in self.steps for event in step.events)

    @property
    def steps_while_open(self) -> tuple[Step, ...]:
        """The steps before the answer ended: what a client saw while the model wrote."""
        return self.steps[:-1]


def deliver(reader: Reader, pieces: Sequence[str], engine_finish: str = "stop") -> Delivery:
    """Feed `pieces` to `reader`. An error of the reader, or events in an impossible order, end up in `error`."""
    steps: list[Step] = []
    folding = AnswerFold()
    offset = 0
    try:
        for piece in (*pieces, None):
            events = reader.finish() if piece is None else reader.feed(piece)
            offset += len(piece or "")
            steps.append(Step(offset, tuple(events)))
            for event in events:
                folding.add(event)
        return Delivery(tuple(steps), folding.result(engine_finish))
    except ProtocolError as error:
        return Delivery(tuple(steps), None, f"impossible order of events: {error}")
    except Exception as error:  # whatever the reader raises is the finding, not a fault of the suite
        return Delivery(tuple(steps), None, f"the reader raised {type(error).__name__}: {error}")
