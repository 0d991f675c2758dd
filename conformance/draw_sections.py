"""Draws sections of calls, and decides what must become of each call (decision D2, rule 10).

Owns the choice of form, calls and spelling. The renderer writes them.
"""

from __future__ import annotations

from dataclasses import dataclass

from atom_spec.formats import Form
from hypothesis import assume
from hypothesis import strategies as st

from conformance.case import DrawnCall
from conformance.draft import Draft
from conformance.draw_text import stays_apart, texts
from conformance.draw_tools import UNDECLARED_NAMES, drawn_arguments
from conformance.render import Spelling, wire_id, write_section

SPELLINGS = (
    Spelling(),
    Spelling(literals="python"),
    Spelling(separators=(",", ":")),
    Spelling(indent=2, ws="\n"),
    Spelling(ensure_ascii=True, ws=" "),
)


@dataclass(frozen=True, slots=True)
class DrawnSection:
    """A written section. `dispatched` are the calls that must reach the client.

    `output` must come out as content, and nothing that isn't in `may_come_out`. The two are the same, except where
    calls of one section share different fates: whether the markers between them belong to the released ones is left
    open.
    """

    text: str
    num_calls: int
    dispatched: tuple[DrawnCall, ...]
    output: str
    may_come_out: str
    name_due: int | None


def write_drawn_section(draw: st.DrawFn, draft: Draft, form: Form | None = None) -> bool:
    """Put one section, in `form` or in any, on the sheet; True when it is left open, so that nothing can follow."""
    spec = draft.subject.spec
    assert spec is not None
    forms = [form for form in spec.forms_of(draft.variant) if form.at != "start" or not draft.sheet.text]
    if not forms:
        return False
    form = form or draw(st.sampled_from(forms))
    section = draw_section(draw, draft, form)
    draft.sheet.section(
        section.text,
        section.dispatched,
        section.name_due,
        output=section.output,
        may_come_out=section.may_come_out,
    )
    draft.sheet.num_calls += section.num_calls
    draft.forms.append(f"{draft.variant} {form.name}" if draft.variant else form.name)
    return form.at == "end"


def draw_section(draw: st.DrawFn, draft: Draft, form: Form) -> DrawnSection:
    """A section in `form`, and what must become of it."""
    spec = draft.subject.spec
    assert spec is not None
    writing = spec.writing_of(draft.variant)
    spelling = draw(st.sampled_from(SPELLINGS))
    first = draft.sheet.num_calls + draft.request.num_earlier_calls
    calls: list[DrawnCall] = []
    for index in range(first, first + (draw(st.integers(1, 3)) if form.many_calls else 1)):
        call = _call(draw, draft, form)
        calls.append(DrawnCall(call.name, call.arguments, wire_id(writing, form, call, index)))
    first_written = draft.sheet.num_calls if draft.is_counting_anew else first
    section = write_section(writing, form, calls, spelling, first_written)
    declared = [call.name in draft.request.declared for call in calls]
    output, may_come_out = "", ""
    if spec.undeclared == "release" and not all(declared):
        may_come_out = section.text
        for text in (text for text, is_declared in zip(section.calls, declared, strict=True) if is_declared):
            may_come_out = may_come_out.replace(text, "", 1)
        released = [text for text, is_declared in zip(section.calls, declared, strict=True) if not is_declared]
        output = "".join(released) if any(declared) else section.text
    dispatched = () if draft.request.suppress_calls else tuple(c for c in calls if c.name in draft.request.declared)
    name_due = section.name_due if declared[0] else None
    return DrawnSection(section.text, len(calls), dispatched, output, may_come_out, name_due)


def _call(draw: st.DrawFn, draft: Draft, form: Form) -> DrawnCall:
    """A call of a declared tool, or of none, as the scenario wants it."""
    spec, scenario = draft.subject.spec, draft.scenario
    assert spec is not None
    tool = draw(st.sampled_from(draft.tools))
    is_declared = draw(st.booleans()) if scenario.is_mixed else scenario.is_declared
    name = tool.name if is_declared else draw(st.sampled_from(UNDECLARED_NAMES))
    forbidden = spec.writing_of(draft.variant).never_in_string
    strings = texts(draft.markers, forbidden)
    if form.trims_newline and form.argument and "\n{value}\n" not in form.argument:
        strings = strings.map(lambda text: text.strip("\n"))
    can_have_odd_keys = form.argument is None or "{key|" in form.argument
    arguments = draw(drawn_arguments(tool, strings, can_have_odd_keys=can_have_odd_keys))
    if "no_arguments" in form.requires:
        arguments = {}
    assume("arguments" not in form.requires or arguments)
    closer = (form.argument or "{value}").partition("{value}")[2]
    assume(all(stays_apart(value, closer, forbidden) for value in arguments.values() if isinstance(value, str)))
    return DrawnCall(name, arguments)
