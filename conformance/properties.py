"""What must hold of every delivery of a drawn case; `PROPERTIES` are the rows of the report.

Owns the meaning of each property. Expectations come from the case alone. Knows nothing of formats, chunk sizes or
hypothesis.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from atom.entrypoints.openai.events import ToolCallArguments, ToolCallStart
from conformance.answer import Answer, Call
from conformance.case import Case, Span
from conformance.corpus import same_json
from conformance.delivery import Delivery, Step


class Breach(AssertionError):
    """A property doesn't hold; the message says what came and what should have come."""


@dataclass(frozen=True, slots=True)
class Property:
    """A row of the report. `check(case, delivered, whole)` raises `Breach`; `needs_expectation`: noise is skipped."""

    name: str
    title: str
    check: Callable[[Case, Delivery, Delivery], None]
    needs_expectation: bool = True


def check_survives(case: Case, delivered: Delivery, whole: Delivery) -> None:
    """The reader raises nothing, and its events come in an order that a client can follow."""
    if delivered.error is not None:
        raise Breach(delivered.error)


def check_same_bytes(case: Case, delivered: Delivery, whole: Delivery) -> None:
    """Streamed is whole: the same content, reasoning, names and argument bytes."""
    got, wanted = answer_of(delivered), answer_of(whole)
    if got != wanted:
        raise Breach(f"streamed {got}, whole {wanted}")


def check_nothing_lost(case: Case, delivered: Delivery, whole: Delivery) -> None:
    """Every character that was drawn as prose comes out, in order, in its own channel."""
    answer = answer_of(delivered)
    for channel, wanted, got in (
        ("content", case.content, answer.content),
        ("reasoning", case.reasoning, answer.reasoning),
    ):
        missing = first_missing(wanted, got)
        if missing is not None:
            raise Breach(f"{channel} lost from offset {missing} on: wanted {wanted!r}, got {got!r}")


def check_no_leak(case: Case, delivered: Delivery, whole: Delivery) -> None:
    """Nothing comes out that was not drawn as prose: no marker, no whitespace of the markup, nothing twice."""
    answer = answer_of(delivered)
    most = (("content", case.most_content, answer.content), ("reasoning", case.reasoning, answer.reasoning))
    for channel, wanted, got in most:
        extra = first_missing(got, wanted)
        if extra is not None:
            raise Breach(f"{channel} holds more than was said from offset {extra} on: wanted {wanted!r}, got {got!r}")


def check_calls(case: Case, delivered: Delivery, whole: Delivery) -> None:
    """The calls are the drawn ones: names, values, order of keys, and ids where the wire carries them."""
    calls = answer_of(delivered).calls
    if [call.name for call in calls] != [drawn.name for drawn in case.calls]:
        raise Breach(f"calls of {[c.name for c in calls]}, wanted {[c.name for c in case.calls]}")
    for call, drawn in zip(calls, case.calls, strict=True):
        arguments = parsed_arguments(call)
        if not same_json(arguments, drawn.arguments) or list(arguments) != list(drawn.arguments):
            raise Breach(
                f"{call.name}: arguments {call.arguments}, wanted {json.dumps(drawn.arguments, ensure_ascii=False)}"
            )
        if drawn.wire_id is not None and call.id != drawn.wire_id:
            raise Breach(f"{call.name}: id {call.id!r}, wanted {drawn.wire_id!r} as the wire has it")


def check_arguments_json(case: Case, delivered: Delivery, whole: Delivery) -> None:
    """Arguments are the compact JSON text of an object, every key once, whatever the model wrote (decision D6)."""
    for call in answer_of(delivered).calls:
        parsed_arguments(call)
        compact = compact_json(call.arguments)
        if call.arguments != compact:
            raise Breach(f"{call.name}: arguments {call.arguments!r}, compact they are {compact!r}")


def check_early_name(case: Case, delivered: Delivery, whole: Delivery) -> None:
    """A name goes out for a declared tool only, and as soon as the head of its region has been read."""
    starts = [
        (index, event)
        for index, step in enumerate(delivered.steps)
        for event in step.events
        if isinstance(event, ToolCallStart)
    ]
    allowed = frozenset() if case.request.suppress_calls else case.request.declared
    for _, start in starts:
        if start.name not in allowed:
            raise Breach(f"announced {start.name!r}, which no tool of the request has")
    positions = {start.index: index for index, start in starts}
    for number, due in _name_dues(case.spans or ()):
        index = positions.get(number)
        given_before = delivered.steps[index - 1].offset if index else 0
        if index is not None and due <= given_before and index > 0:
            raise Breach(f"name of call {number} readable at offset {due}, announced after offset {given_before}")


def check_hold(case: Case, delivered: Delivery, whole: Delivery) -> None:
    """Outside of regions at most a partial marker is held; a region that has closed gives its calls at once."""
    num_out = num_calls = 0
    for step in delivered.steps_while_open:
        num_out += step.num_characters
        num_calls += sum(isinstance(event, ToolCallArguments) for event in step.events)
        due = bisect_right(case.character_dues, step.offset)
        if num_out < due:
            raise Breach(
                f"{num_out} characters out after {step.offset} of {case.text!r}, {due} were due (hold {case.max_hold})"
            )
        calls_due = bisect_right(case.call_dues, step.offset)
        if num_calls < calls_due:
            raise Breach(f"{num_calls} calls out after {step.offset} of {case.text!r}, {calls_due} were due")


def check_text_after_call(case: Case, delivered: Delivery, whole: Delivery) -> None:
    """Text behind the last call is on its way before the answer ends."""
    spans = case.spans or ()
    last = max((index for index, span in enumerate(spans) if span.calls), default=None)
    if last is None or not delivered.steps_while_open:
        return
    behind = sum(len(span.output) for span in spans[last + 1 :])
    num_due = sum(due <= len(case.text) for due in case.character_dues[len(case.character_dues) - behind :])
    steps = delivered.steps_while_open
    num_out = _characters_behind_last_call(steps)
    if num_due and num_out < num_due:
        raise Breach(
            f"{num_out} characters behind the last call were out before the end of {case.text!r}, {num_due} were due"
        )


PROPERTIES = (
    Property("survives", "No error, events in order", check_survives, needs_expectation=False),
    Property("same_bytes", "Streamed = whole, byte for byte", check_same_bytes, needs_expectation=False),
    Property("nothing_lost", "Nothing lost", check_nothing_lost),
    Property("no_leak", "No markup leaks", check_no_leak),
    Property("calls", "The drawn calls, no others", check_calls),
    Property("arguments_json", "Arguments are compact JSON", check_arguments_json, needs_expectation=False),
    Property("early_name", "Names early, and only declared ones", check_early_name, needs_expectation=False),
    Property("hold", "Held: at most a partial marker", check_hold),
    Property("text_after_call", "Text after a call before the end", check_text_after_call),
)


def answer_of(delivery: Delivery) -> Answer:
    """The answer, or a breach when there is none."""
    if delivery.answer is None:
        raise Breach(f"no answer: {delivery.error}")
    return delivery.answer


def parsed_arguments(call: Call) -> dict[str, object]:
    """The arguments as an object, or a breach."""
    try:
        arguments = json.loads(call.arguments)
    except ValueError as error:
        raise Breach(f"{call.name}: arguments {call.arguments!r} are not JSON: {error}") from None
    if not isinstance(arguments, dict):
        raise Breach(f"{call.name}: arguments {call.arguments!r} are not an object")
    return arguments


def compact_json(text: str) -> str:
    """The compact spelling of JSON `text`: no loose white space, no needless escapes, numbers as they were spelled.

    Half of a surrogate pair stays escaped, since it can't be sent as UTF-8.
    """
    begin, end = "\ud900", "\ud901"  # lone surrogates around numbers, which pass through as strings

    def keep(number: str) -> str:
        return f"{begin}{number}{end}"

    value = json.loads(text, parse_int=keep, parse_float=keep)
    compact = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    compact = compact.replace(f'"{begin}', "").replace(f'{end}"', "")
    return "".join(f"\\u{ord(one):04x}" if "\ud800" <= one <= "\udfff" else one for one in compact)


def first_missing(wanted: str, got: str) -> int | None:
    """The first offset of `wanted` that isn't found, in order, in `got`; None: `wanted` is a subsequence of it."""
    position = 0
    for offset, character in enumerate(wanted):
        position = got.find(character, position) + 1
        if not position:
            return offset
    return None


def _name_dues(spans: tuple[Span, ...]) -> Iterator[tuple[int, int]]:
    """Pairs of a call's index in the answer and the offset by which its name is due."""
    number = 0
    for span in spans:
        if span.calls and span.name_due is not None:
            yield number, span.name_due
        number += len(span.calls)


def _characters_behind_last_call(steps: tuple[Step, ...]) -> int:
    """Characters that went out in the steps behind, or in, the one that closed the last call."""
    closing = max(
        (i for i, step in enumerate(steps) if any(isinstance(e, ToolCallArguments) for e in step.events)),
        default=len(steps),
    )
    return sum(step.num_characters for step in steps[closing:])
