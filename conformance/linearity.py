"""Cost against length: a text four times as long may cost about four times as much, whatever it holds (rule 12).

Owns the long texts and the bound. The clock is the thread's own CPU time and the best of several runs counts, so
that a busy machine can slow a run but not turn it red; a quadratic reader is red on any machine.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Sequence
from functools import partial

from atom_spec.formats import Form, Writing

from conformance.case import DrawnCall, Request
from conformance.chunking import WHOLE, Chunking, in_pieces
from conformance.draw_tools import STRING, DrawnTool
from conformance.render import Spelling, write_section
from conformance.subjects import Subject
from conformance.tally import Finding, Tally

NAME = "linear"
TITLE = "Cost linear in the length"
MAX_EXPONENT = 1.4
"""Growth of 4**1.4 = 7 times for 4 times the text: a linear reader stays near 4, a quadratic one goes towards 16."""
CERTAIN_EXPONENT = 1.7
"""No noise does this twice; it isn't measured a third time. (Some machines count what others take from them.)"""
ATTEMPTS = 5
GROWTH = 4
CHUNKINGS = (WHOLE, in_pieces(3))
_TOOL = DrawnTool("write_file", (("content", STRING),))


LongText = Callable[[int], str]
"""Makes a text of about the given number of characters."""


Clock = Callable[[], float]


def add_linearity(tally: Tally, subject: Subject, num_characters: int, clock: Clock = time.thread_time) -> None:
    """Time every long text at `num_characters` and at four times as many."""
    for name, long_text in long_texts(subject).items():
        for chunking in CHUNKINGS:
            message = _breach(subject, long_text, chunking, num_characters, clock)
            found = Finding(NAME, chunking.name, "long texts", name, long_text(100), f"{name}: {message}")
            tally.num_cases["long texts"] += 1
            tally.cell(NAME, chunking.name).add(None if message is None else found)


def _breach(subject: Subject, long_text: LongText, chunking: Chunking, num_characters: int, clock: Clock) -> str | None:
    try:
        exponent = _exponent(subject, long_text, chunking, num_characters, clock)
    except Exception as error:  # a reader that fails on a long text is a finding as well
        return f"the reader raised {type(error).__name__}: {error}"
    return f"cost grows with the length to the power of {exponent:.2f}" if exponent > MAX_EXPONENT else None


def long_texts(subject: Subject) -> dict[str, LongText]:
    """By name: prose, thoughts, an opener quoted again and again, and for each variant many calls and a long one."""
    texts: dict[str, LongText] = {
        "prose": partial(_repeated, "The quick brown fox. "),
        "prose with <": partial(_repeated, "if (a < b && b <= c) "),
    }
    if subject.dialects and subject.dialects[0].start:
        texts["thoughts"] = partial(_repeated, "a < b, so </ what? ", begin=subject.dialects[0].start)
    spec = subject.spec
    if spec is None:
        return texts
    if spec.not_calls:
        texts["quoted openers"] = partial(_repeated, spec.not_calls[0].ljust(100, "."))
    for variant in spec.variants or (None,):
        form = spec.forms_of(variant)[0]
        writing = spec.writing_of(variant)
        one = _written(writing, form, "x") + writing.part_separator
        texts[f"many calls {variant or ''}"] = partial(_repeated, one)
        texts[f"one long argument {variant or ''}"] = partial(_one_long_argument, writing, form)
    return texts


def _written(writing: Writing, form: Form, content: str) -> str:
    return write_section(writing, form, [DrawnCall(_TOOL.name, {"content": content})], Spelling(), 0).text


def _one_long_argument(writing: Writing, form: Form, num_characters: int) -> str:
    return _written(writing, form, _repeated("x < y; </p> ", num_characters))


def _repeated(text: str, num_characters: int, *, begin: str = "") -> str:
    return begin + text * max(1, num_characters // len(text))


def _exponent(subject: Subject, long_text: LongText, chunking: Chunking, num_characters: int, clock: Clock) -> float:
    """The power of the length that the cost grows with; a doubtful one is measured again, the least counts."""
    exponent, num_certain = math.inf, 0
    gc.collect()
    for _ in range(ATTEMPTS):
        short, long = (
            _seconds(subject, chunking.cut(long_text(size)), clock)
            for size in (num_characters, GROWTH * num_characters)
        )
        measured = math.log(long / short) / math.log(GROWTH)
        exponent = min(exponent, measured)
        num_certain += measured > CERTAIN_EXPONENT
        if exponent <= MAX_EXPONENT or num_certain == 2:
            break
    return exponent


def _seconds(subject: Subject, pieces: Sequence[str], clock: Clock) -> float:
    """CPU seconds of one answer: the least of two, with the collector out of the way."""
    least = math.inf
    for _ in range(2):
        reader = subject.open(
            Request(tools=(_TOOL.as_request,), dialect=subject.dialects[0].name if subject.dialects else None)
        )
        gc.disable()
        started = clock()
        for piece in pieces:
            reader.feed(piece)
        reader.finish()
        least = min(least, clock() - started)
        gc.enable()
    return max(least, 1e-6)
