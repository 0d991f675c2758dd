"""Draws noise: the pieces that a format's calls are made of, in no order that makes sense.

No answer is expected of noise, so only invariants are held against it: streamed is whole, arguments are JSON, names
are declared.
"""

from __future__ import annotations

from functools import lru_cache

from hypothesis import strategies as st

from conformance.case import Case, Request
from conformance.draw_text import CODE, LOOKALIKES, PLAIN, UNICODE
from conformance.draw_tools import KEYS, drawn_tools
from conformance.subjects import Subject
from conformance.templates import literals


@st.composite
def noise(draw: st.DrawFn, subject: Subject) -> Case:
    """Up to thirty pieces, for a request with tools or without."""
    tools = draw(drawn_tools())
    dialect = draw(st.sampled_from([None, *subject.dialects]))
    words = (*(tool.name for tool in tools), *KEYS[:4], *PLAIN, *CODE, *LOOKALIKES, *UNICODE)
    markup = (*_markup(subject), *((dialect.start, dialect.end) if dialect else ()))
    piece = st.one_of(st.sampled_from(markup or PLAIN), st.sampled_from(markup or PLAIN), st.sampled_from(words))
    request = Request(
        tools=tuple(tool.as_request for tool in tools),
        suppress_calls=draw(st.booleans()),
        dialect=dialect.name if dialect else None,
        begins_inside=dialect is not None and draw(st.booleans()),
    )
    return Case("noise", draw(st.lists(piece, max_size=30).map("".join)), request, None)


@lru_cache
def _markup(subject: Subject) -> tuple[str, ...]:
    """Every literal of every form's templates, whole and in halves."""
    if subject.spec is None:
        return ()
    templates = [
        template
        for form in subject.spec.forms
        for template in (form.section, form.call, form.argument, form.empty_call, form.call_separator)
        if template
    ]
    whole = {literal for template in templates for literal in literals(template)} | set(subject.spec.markers)
    halves = {literal[: len(literal) // 2] for literal in whole}
    return tuple(sorted({piece for piece in whole | halves if piece}))
