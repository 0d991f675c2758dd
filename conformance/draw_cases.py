"""Draws cases: what a model might write in one answer, and with it the answer that must come of it.

Owns the order of reasoning, prose and sections in an answer. The renderer writes the calls; no reader is asked.
"""

from __future__ import annotations

from atom_spec.formats import Form
from hypothesis import assume
from hypothesis import strategies as st

from conformance.case import Case, Kind, Request
from conformance.draft import Draft
from conformance.draw_sections import draw_section, write_drawn_section
from conformance.draw_text import foreign_markers, texts
from conformance.draw_tools import drawn_tools
from conformance.render import begin_call
from conformance.scenarios import Scenario
from conformance.sheet import Sheet
from conformance.subjects import Subject


@st.composite
def answers(draw: st.DrawFn, subject: Subject, scenario: Scenario, first_form: Form | None = None) -> Case:
    """Reasoning, prose and sections, in an order that models keep to; the first section in `first_form`, if given."""
    draft = _decide(draw, subject, scenario, first_form)
    is_over = scenario.has_reasoning and _write_first_thoughts(draw, draft)
    for number in range(draw(st.integers(1, 3)) if scenario.has_calls and subject.spec else 0):
        if is_over:
            break
        form = first_form if number == 0 else None
        if form is None or form.at != "start":
            _write_prose(draw, draft)
        is_over = write_drawn_section(draw, draft, form)
    if not is_over:
        _write_prose(draw, draft)
        if draw(st.booleans()):
            draft.sheet.epilogue()
    return Case(
        scenario=scenario.name,
        text=draft.sheet.text,
        request=draft.request,
        spans=tuple(draft.sheet.spans),
        forms=tuple(draft.forms),
        max_hold=subject.max_hold,
        drops_undeclared=subject.spec is not None and subject.spec.undeclared == "drop",
    )


def _decide(draw: st.DrawFn, subject: Subject, scenario: Scenario, form: Form | None) -> Draft:
    """Everything that is settled before the first character is written."""
    spec = subject.spec
    variant = form.variant if form else None
    if variant is None and spec and spec.variants:
        variant = draw(st.sampled_from(spec.forms)).variant or draw(st.sampled_from(spec.variants))
    dialects = subject.dialects_of(variant)
    dialect = draw(st.sampled_from(dialects)) if dialects else None
    can_begin_inside = scenario.has_reasoning and dialect is not None and not dialect.in_format
    tools = draw(drawn_tools())
    request = Request(
        tools=tuple(tool.as_request for tool in tools) if scenario.has_tools else (),
        suppress_calls=scenario.is_suppressed,
        dialect=dialect.name if dialect else None,
        begins_inside=can_begin_inside and draw(st.booleans()),
        num_earlier_calls=draw(st.sampled_from((0, 0, 9))),
    )
    sheet = Sheet(spec.writing_of(variant) if spec else None, dialect, begins_inside=request.begins_inside)
    return Draft(subject, scenario, request, dialect, variant, tools, sheet, draw(st.booleans()))


def _write_first_thoughts(draw: st.DrawFn, draft: Draft) -> bool:
    """Thoughts, perhaps behind a marker that says what the prompt has said; True when they never end."""
    if draft.dialect is None:
        return False
    if draw(st.integers(0, 4)) == 4:
        draft.sheet.redundant_marker()
    is_cut = draw(st.integers(0, 9)) == 9
    draft.sheet.reasoning(_thought(draw, draft), is_cut=is_cut)
    return is_cut


def _thought(draw: st.DrawFn, draft: Draft) -> str:
    """Thoughts. Where the dialect has its own markers, they may hold calls, which stay thoughts (decision D3)."""
    dialect, spec = draft.dialect, draft.subject.spec
    assert dialect is not None
    if dialect.in_format:
        return draw(texts((), draft.markers))
    markers = (dialect.start, dialect.end)
    thought = draw(texts(draft.markers, markers))
    if spec and draw(st.booleans()):
        form = draw(st.sampled_from(spec.forms_of(draft.variant)))
        thought += draw_section(draw, draft, form).text
    assume(not any(marker in thought for marker in markers))
    return thought


def _write_prose(draw: st.DrawFn, draft: Draft) -> None:
    """Prose, perhaps none; with the scenario's quotes it ends on one of the format's openers that open nothing."""
    spec = draft.subject.spec
    text = draw(texts(foreign_markers(draft.markers), draft.markers))
    if not draft.sheet.text and spec and spec.has_start_forms and text:
        text = f"So {text}"  # a text that starts like a call would be one's opener
    if text:
        draft.sheet.prose(text)
    if draft.scenario.has_reasoning and draft.dialect and draft.sheet.text and draw(st.integers(0, 4)) == 4:
        draft.sheet.reasoning(_thought(draw, draft))
    if spec and draft.scenario.has_quotes:
        draft.sheet.prose(draw(st.sampled_from([*spec.not_calls, *_begun_calls(draw, draft)])), Kind.QUOTE)


def _begun_calls(draw: st.DrawFn, draft: Draft) -> list[str]:
    """A call that goes on as prose behind a declared tool's name; none where every answer is framed in channels."""
    spec = draft.subject.spec
    assert spec is not None
    form = draw(st.sampled_from([form for form in spec.forms_of(draft.variant) if form.at != "start"] or spec.forms))
    if spec.undeclared == "drop" or form.at == "start":
        return []
    return [begin_call(form, draw(st.sampled_from(draft.tools)).name) + ", and then its arguments. "]
