"""How an answer is written while it grows: for eyes on a terminal, and plain for a pipe.

Owns glyphs, colours and what goes to which stream. What a model writes can not steer the terminal: control characters
are dropped before they reach one. Knows neither HTTP nor the conversation.
"""

from __future__ import annotations

import json
import os
import re
import sys
from typing import Protocol, TextIO

from atom.chat.answer import Answer, Call

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
DIM, BOLD, BLUE, RED, PLAIN = "\x1b[2m", "\x1b[1m", "\x1b[34m", "\x1b[31m", "\x1b[0m"


class Printer(Protocol):
    """Writes answers, notes and errors."""

    def update(self, answer: Answer) -> None:
        """Write what has come since the last time."""

    def finish(self, answer: Answer, note: str = "") -> None:
        """The answer is over; `note` says how, when it did not end by itself."""

    def note(self, text: str) -> None:
        """Something of the program's own."""

    def error(self, text: str) -> None:
        """Something that went wrong."""


def printable(text: str) -> str:
    """Text without the characters that a terminal would obey; line breaks and tabs stay."""
    return _CONTROL.sub("", text)


class TerminalPrinter:
    """Thought dimmed, answer as it is, each call in a box.

    colours: whether the terminal shows them (NO_COLOR and TERM=dumb say no).
    """

    def __init__(self, out: TextIO, colours: bool) -> None:
        self._out = out
        self._colours = colours
        unicode = "utf" in (out.encoding or "").lower()
        self._box = ("╭─", "│", "╰─") if unicode else ("+-", "|", "+-")
        self._begin()

    def _begin(self) -> None:
        self._part: str | int = ""
        self._written: dict[str | int, int] = {}

    def update(self, answer: Answer) -> None:
        """See Printer."""
        self._grow("thought", answer.thought)
        self._grow("text", answer.text)
        for place, call in sorted(answer.calls.items()):
            self._grow_call(place, call)
        self._out.flush()

    def _grow(self, part: str, text: str) -> None:
        new = text[self._written.get(part, 0) :]
        if not new:
            return
        if self._part != part:
            self._leave_part()
            self._part = part
            new = new.lstrip("\n")
        self._written[part] = len(text)
        self._write(new, DIM if part == "thought" else "")

    def _grow_call(self, place: int, call: Call) -> None:
        if self._part != place and place not in self._written:
            self._leave_part()
            self._part = place
            self._written[place] = 0
            self._write(f"{self._box[0]} ", BLUE)
            self._write(f"{call.name}\n", BOLD)
            self._write(f"{self._box[1]} ", BLUE)
        new = call.arguments[self._written[place] :]
        self._written[place] = len(call.arguments)
        self._write(new.replace("\n", f"\n{self._box[1]} "), "")

    def _leave_part(self) -> None:
        if isinstance(self._part, int):
            self._write(f"\n{self._box[2]}\n", BLUE)
        elif self._part:
            self._write("\n\n" if self._part == "thought" else "\n", "")

    def finish(self, answer: Answer, note: str = "") -> None:
        """See Printer."""
        self._leave_part()
        line = note or figures(answer)
        if line:
            self._write(f"{line}\n", DIM)
        self._write("\n", "")
        self._begin()
        self._out.flush()

    def note(self, text: str) -> None:
        """See Printer."""
        self._write(f"{text}\n", DIM)
        self._out.flush()

    def error(self, text: str) -> None:
        """See Printer."""
        self._write(f"error: {text}\n", RED)
        self._out.flush()

    def _write(self, text: str, style: str) -> None:
        text = printable(text)
        self._out.write(f"{style}{text}{PLAIN}" if style and text and self._colours else text)


class PlainPrinter:
    """For pipes: the answer and its calls (one JSON object a line) on `out`, everything else on `err`."""

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self._out = out
        self._err = err
        self._written = 0
        self._thought = 0

    def update(self, answer: Answer) -> None:
        """See Printer."""
        _emit(self._err, answer.thought[self._thought :])
        _emit(self._out, answer.text[self._written :])
        self._thought, self._written = len(answer.thought), len(answer.text)

    def finish(self, answer: Answer, note: str = "") -> None:
        """See Printer."""
        if answer.thought and not answer.thought.endswith("\n"):
            _emit(self._err, "\n")
        if answer.text and not answer.text.endswith("\n"):
            _emit(self._out, "\n")
        for call in answer.whole_calls():
            line = {"name": call.name, "arguments": call.value()}
            _emit(self._out, json.dumps(line, ensure_ascii=False) + "\n")
        if note or answer.finish == "length":
            self.note(note or figures(answer))
        self._thought = self._written = 0

    def note(self, text: str) -> None:
        """See Printer."""
        _emit(self._err, f"atom chat: {text}\n")

    def error(self, text: str) -> None:
        """See Printer."""
        _emit(self._err, f"atom chat: error: {text}\n")


def _emit(stream: TextIO, text: str) -> None:
    if text:
        stream.write(printable(text) if stream.isatty() else text)
        stream.flush()


def figures(answer: Answer) -> str:
    """What there is to say of an answer in figures; empty when the server told nothing."""
    parts: list[str] = []
    usage = answer.usage or {}
    if usage.get("completion_tokens") is not None:
        count = usage["completion_tokens"]
        parts.append(f"{count} token{'' if count == 1 else 's'}")
    if usage.get("ttft_s") is not None:
        parts.append(f"first after {usage['ttft_s'] * 1000:.0f} ms")
    if usage.get("tpot_s"):
        parts.append(f"{1 / usage['tpot_s']:.0f} tok/s")
    if answer.finish == "length":
        parts.append("cut off at the token limit: --max-tokens raises it")
    return ", ".join(parts)


def terminal_printer() -> TerminalPrinter:
    """The printer of this terminal."""
    colours = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return TerminalPrinter(sys.stdout, colours)
