"""A case's expectations: what must come out, and by when."""

from __future__ import annotations

from conformance.case import NEVER, Case, DrawnCall, Kind, Request, Span

CALL = DrawnCall("now", {})


def _case(*spans: tuple[Kind, str, str]) -> Case:
    """A case of (kind, text, output) stretches with a hold of 2; regions hold one call."""
    text, placed = "", []
    for kind, written, output in spans:
        calls = (CALL,) if kind is Kind.REGION else ()
        placed.append(Span(kind, len(text), len(text) + len(written), output, output, calls))
        text += written
    return Case("calls", text, Request(), tuple(placed), max_hold=2)


def test_prose_comes_out_by_channel() -> None:
    case = _case(
        (Kind.REASONING, "hm", "hm"), (Kind.MARKUP, "</t>", ""), (Kind.TEXT, "a", "a"), (Kind.REGION, "[c]", "")
    )
    assert (case.reasoning, case.content, case.calls) == ("hm", "a", (CALL,))


def test_plain_text_is_due_after_the_hold() -> None:
    assert _case((Kind.TEXT, "abc", "abc")).character_dues == (3, 4, 5)


def test_a_quoted_opener_may_hold_until_the_next_region_ends() -> None:
    case = _case((Kind.TEXT, "a", "a"), (Kind.QUOTE, "<c>", "<c>"), (Kind.REGION, "[c]", ""), (Kind.TEXT, "b", "b"))
    assert case.character_dues == (3, 9, 9, 9, 10)
    assert case.call_dues == (9,)


def test_a_quoted_opener_without_a_region_behind_it_may_hold_until_the_end() -> None:
    case = _case((Kind.QUOTE, "<c>", "<c>"), (Kind.TEXT, "b", "b"))
    assert all(due > NEVER for due in case.character_dues)


def test_white_space_behind_a_region_waits_for_what_follows_it() -> None:
    case = _case((Kind.REGION, "[c]", ""), (Kind.TEXT, "\n\nb", "\n\nb"))
    assert case.character_dues == (8, 8, 8)


def test_a_released_region_is_due_when_it_has_ended() -> None:
    assert _case((Kind.REGION, "[c]", "[c]")).character_dues == (5, 5, 5)
