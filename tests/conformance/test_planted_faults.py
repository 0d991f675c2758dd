"""Faults planted in the reader, one at a time: the suite must turn red for each, in the row that is there for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pytest
from atom_spec.formats import FormatSpec

from atom.entrypoints.openai import pipeline
from atom.entrypoints.openai.events import ContentDelta, Event, ToolCallEnd
from atom.entrypoints.openai.tool_parser.stream import Tool, ToolCallReader
from conformance.draw_tools import UNDECLARED_NAMES
from conformance.profiles import Profile
from conformance.subjects import Subject, all_subjects
from conformance.suite import run_subject
from conformance.tally import Tally

QUICK = Profile("quick", num_cases=40, num_truncated=2, num_characters=1_000, is_shrinking=False)
SEED = 11


class StripsWhiteSpace(ToolCallReader):
    """Takes the white space around every piece of content for markup."""

    def feed(self, text: str) -> list[Event]:
        return _stripped(super().feed(text))

    def finish(self) -> list[Event]:
        return _stripped(super().finish())


class HoldsFromTheFirstAngle(ToolCallReader):
    """Waits for the end of the answer once it has seen a `<`."""

    _kept = ""

    def feed(self, text: str) -> list[Event]:
        angle = 0 if self._kept else text.find("<")
        if angle < 0:
            return super().feed(text)
        self._kept += text[angle:]
        return super().feed(text[:angle])

    def finish(self) -> list[Event]:
        return super().feed(self._kept) + super().finish()


class DropsTextAfterACall(ToolCallReader):
    """Takes an answer to be over when it has called."""

    _has_called = False

    def feed(self, text: str) -> list[Event]:
        return list(self._before_the_end(super().feed(text)))

    def finish(self) -> list[Event]:
        return list(self._before_the_end(super().finish()))

    def _before_the_end(self, events: list[Event]) -> Iterator[Event]:
        for event in events:
            if not (self._has_called and isinstance(event, ContentDelta)):
                yield event
            self._has_called |= isinstance(event, ToolCallEnd)


class AnnouncesUndeclaredNames(ToolCallReader):
    """Takes any tool for a declared one."""

    def __init__(self, spec: FormatSpec | None, tools: Sequence[Tool], **options: Any) -> None:
        super().__init__(spec, [*tools, *(Tool(name, {}) for name in UNDECLARED_NAMES)], **options)


class ParsesAnewForEveryPiece(ToolCallReader):
    """Reads the answer from its beginning whenever more of it arrives, and says what it hasn't said yet."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._again = partial(ToolCallReader, *arguments, **options)
        self._text = ""

    def feed(self, text: str) -> list[Event]:
        reader = self._again()
        reader.feed(self._text)
        self._text += text
        return reader.feed(text)

    def finish(self) -> list[Event]:
        reader = self._again()
        reader.feed(self._text)
        return reader.finish()


FAULTS = {
    StripsWhiteSpace: "nothing_lost",
    HoldsFromTheFirstAngle: "hold",
    DropsTextAfterACall: "nothing_lost",
    AnnouncesUndeclaredNames: "early_name",
    ParsesAnewForEveryPiece: "linear",
}


def _subject(name: str) -> Subject:
    return next(subject for subject in all_subjects() if subject.name == name)


def _red_rows(tally: Tally) -> set[str]:
    return {row for row, _ in tally.red_cells}


def _stripped(events: list[Event]) -> list[Event]:
    stripped = (ContentDelta(event.text.strip()) if isinstance(event, ContentDelta) else event for event in events)
    return [event for event in stripped if event != ContentDelta("")]


def test_without_a_fault_the_same_run_is_green() -> None:
    assert _red_rows(run_subject(_subject("qwen"), QUICK, SEED).tally) == set()


@pytest.mark.parametrize(("fault", "row"), FAULTS.items(), ids=lambda value: getattr(value, "__name__", value))
def test_a_planted_fault_turns_the_suite_red(
    fault: type[ToolCallReader], row: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "ToolCallReader", fault)
    assert row in _red_rows(run_subject(_subject("qwen"), QUICK, SEED).tally)
