"""Draws cases: what a model might write in one answer, and with it the answer that must come of it.

Owns the order of reasoning, prose and sections in an answer, and which calls are to be dispatched. The renderer writes
the calls; no reader is asked.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from atom_spec.dialects import ReasoningDialect
from atom_spec.formats import Form, Writing
from hypothesis import assume
from hypothesis import strategies as st

from conformance.case import Case, DrawnCall, Kind, Request
from conformance.draw_text import foreign_markers, stays_apart, texts
from conformance.draw_tools import UNDECLARED_NAMES, DrawnTool, drawn_arguments, drawn_tools
from conformance.render import Section, Spelling, begin_call, wire_id, write_section
from conformance.scenarios import Scenario
from conformance.sheet import Sheet
from conformance.subjects import Subject

SPELLINGS = (
    Spelling(),
    Spelling(literals="python"),
    Spelling(separators=(",", ":")),
    Spelling(indent=2, ws="\n"),
    Spelling(ensure_ascii=True, ws=" "),
)


@dataclass(slots=True)
class _Answer:
    """What has been decided about an answer, and the sheet that it is written on.

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


@st.composite
def answers(draw: st.DrawFn, subject: Subject, scenario: Scenario) -> Case:
    """An answer of reasoning, prose and sections, in an order that models keep to."""
    answer = _decide(draw, subject, scenario)
    is_over = scenario.has_reasoning and _write_first_thoughts(draw, answer)
    for _ in range(draw(st.integers(1, 3)) if scenario.has_calls and subject.spec else 0):
        if is_over:
            break
        _write_prose(draw, answer)
        is_over = _write_section(draw, answer)
    if not is_over:
        _write_prose(draw, answer)
        if draw(st.booleans()):
            answer.sheet.epilogue()
    return Case(
        scenario=scenario.name,
        text=answer.sheet.text,
        request=answer.request,
        spans=tuple(answer.sheet.spans),
        forms=tuple(answer.forms),
        max_hold=subject.max_hold,
        drops_undeclared=subject.spec is not None and subject.spec.undeclared == "drop",
    )


def _decide(draw: st.DrawFn, subject: Subject, scenario: Scenario) -> _Answer:
    """Everything that is settled before the first character is written."""
    spec = subject.spec
    variant = draw(st.sampled_from(spec.variants)) if spec and spec.variants else None
    dialects = subject.dialects_of(variant)
    dialect = draw(st.sampled_from(dialects)) if dialects else None
    can_begin_inside = scenario.has_reasoning and dialect is not None and not dialect.in_format
    tools = draw(drawn_tools())
    request = Request(
        tools=tuple(tool.as_request for tool in tools) if scenario.has_tools else (),
        suppress_calls=scenario.is_suppressed,
        dialect=dialect.name if dialect else None,
        begins_inside=can_begin_inside and draw(st.booleans()),
        num_earlier_calls=draw(st.sampled_from((0, 0, 3))),
    )
    sheet = Sheet(spec.writing_of(variant) if spec else None, dialect, begins_inside=request.begins_inside)
    return _Answer(subject, scenario, request, dialect, variant, tools, sheet, draw(st.booleans()))


def _write_first_thoughts(draw: st.DrawFn, answer: _Answer) -> bool:
    """Thoughts, perhaps behind a marker that says what the prompt has said; True when they never end."""
    if answer.dialect is None:
        return False
    if draw(st.integers(0, 4)) == 4:
        answer.sheet.redundant_marker()
    is_cut = draw(st.integers(0, 9)) == 9
    answer.sheet.reasoning(_thought(draw, answer), is_cut=is_cut)
    return is_cut


def _thought(draw: st.DrawFn, answer: _Answer) -> str:
    """Thoughts. Where the dialect has its own markers, they may hold calls, which stay thoughts (decision D3)."""
    dialect, spec = answer.dialect, answer.subject.spec
    assert dialect is not None
    if dialect.in_format:
        return draw(texts((), answer.markers))
    markers = (dialect.start, dialect.end)
    thought = draw(texts(answer.markers, markers))
    if spec and draw(st.booleans()):
        form = draw(st.sampled_from(spec.forms_of(answer.variant)))
        thought += _section(draw, answer, spec.writing_of(answer.variant), form)[0].text
    assume(not any(marker in thought for marker in markers))
    return thought


def _write_prose(draw: st.DrawFn, answer: _Answer) -> None:
    """Prose, perhaps none; with the scenario's quotes it ends on one of the format's openers that open nothing."""
    spec = answer.subject.spec
    text = draw(texts(foreign_markers(answer.markers), answer.markers))
    if not answer.sheet.text and spec and spec.has_start_forms and text:
        text = f"So {text}"  # a text that starts like a call would be one's opener
    if text:
        answer.sheet.prose(text)
    if answer.scenario.has_reasoning and answer.dialect and answer.sheet.text and draw(st.integers(0, 4)) == 4:
        answer.sheet.reasoning(_thought(draw, answer))
    if spec and answer.scenario.has_quotes:
        answer.sheet.prose(draw(st.sampled_from([*spec.not_calls, *_begun_calls(draw, answer)])), Kind.QUOTE)


def _begun_calls(draw: st.DrawFn, answer: _Answer) -> list[str]:
    """A call that goes on as prose behind a declared tool's name; none where every answer is framed in channels."""
    spec = answer.subject.spec
    assert spec is not None
    form = draw(st.sampled_from([form for form in spec.forms_of(answer.variant) if form.at != "start"] or spec.forms))
    if spec.undeclared == "drop" or form.at == "start":
        return []
    return [begin_call(form, draw(st.sampled_from(answer.tools)).name) + ", and then its arguments. "]


def _write_section(draw: st.DrawFn, answer: _Answer) -> bool:
    """One section of calls; True when its form leaves it open, so that nothing can follow."""
    spec, scenario = answer.subject.spec, answer.scenario
    assert spec is not None
    forms = [form for form in spec.forms_of(answer.variant) if form.at != "start" or not answer.sheet.text]
    if not forms:
        return False
    form = draw(st.sampled_from(forms))
    writing = spec.writing_of(answer.variant)
    section, calls = _section(draw, answer, writing, form)
    is_released = not scenario.is_declared and spec.undeclared == "release"
    answer.sheet.section(
        section.text,
        calls if scenario.is_dispatched else (),
        section.name_due,
        output=section.text if is_released else "",
    )
    answer.sheet.num_calls += len(calls)
    answer.forms.append(f"{answer.variant} {form.name}" if answer.variant else form.name)
    return form.at == "end"


def _section(draw: st.DrawFn, answer: _Answer, writing: Writing, form: Form) -> tuple[Section, tuple[DrawnCall, ...]]:
    """A section in `form`, and the calls that were drawn for it."""
    spelling = draw(st.sampled_from(SPELLINGS))
    first = answer.sheet.num_calls + answer.request.num_earlier_calls
    count = draw(st.integers(1, 3)) if form.many_calls else 1
    calls = []
    for index in range(first, first + count):
        call = _call(draw, answer, writing, form)
        calls.append(DrawnCall(call.name, call.arguments, wire_id(writing, call, index)))
    first_written = answer.sheet.num_calls if answer.is_counting_anew else first
    return write_section(writing, form, calls, spelling, first_written), tuple(calls)


def _call(draw: st.DrawFn, answer: _Answer, writing: Writing, form: Form) -> DrawnCall:
    tool = draw(st.sampled_from(answer.tools))
    name = tool.name if answer.scenario.is_declared else draw(st.sampled_from(UNDECLARED_NAMES))
    strings = texts(answer.markers, writing.never_in_string)
    if form.trims_newline and form.argument and "\n{value}\n" not in form.argument:
        strings = strings.map(lambda text: text.strip("\n"))
    can_have_odd_keys = form.argument is None or "{key|" in form.argument
    arguments = draw(drawn_arguments(tool, strings, can_have_odd_keys=can_have_odd_keys))
    if "no_arguments" in form.requires:
        arguments = {}
    assume("arguments" not in form.requires or arguments)
    assume(all(stays_apart(str(value), "", writing.never_in_string) for value in arguments.values()))
    return DrawnCall(name, arguments)
