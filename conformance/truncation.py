"""Cases cut at every character, as a token limit cuts them.

Owns what a cut answer must still be: the whole answer's beginning, nothing lost, a call that was cut with valid
arguments (rule 7). A cut may fall inside a marker, a key or a value; each reading that the rules leave open is
accepted.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from conformance.answer import Answer, Call
from conformance.case import Case, DrawnCall, Kind, Span
from conformance.chunking import WHOLE, Chunking
from conformance.corpus import same_json
from conformance.delivery import deliver
from conformance.properties import Breach, answer_of, check_arguments_json, parsed_arguments
from conformance.tally import OpenReader, Tally

NAME = "truncation"
TITLE = "Cut at every character"


@dataclass(frozen=True, slots=True)
class _Cut:
    """What was complete where the text was cut, and the stretch that was not."""

    content: str
    reasoning: str
    calls: tuple[DrawnCall, ...]
    open_span: Span | None
    tail: str


def add_truncations(tally: Tally, case: Case, open_reader: OpenReader, chunkings: Sequence[Chunking]) -> None:
    """Cut `case` at every character; every cut is read whole and by one of the other chunkings, each in its turn."""
    streamed = [chunking for chunking in chunkings if chunking is not WHOLE]
    for length in range(1, len(case.text)):
        text = case.text[:length]
        if _may_be_a_call(case, length):
            continue
        whole = deliver(open_reader(case.request), [text], "length")
        chunking = streamed[length % len(streamed)]
        delivered = deliver(open_reader(case.request), chunking.cut(text), "length")
        tally.num_deliveries += 2
        for one, delivery in ((WHOLE, whole), (chunking, delivered)):
            message = None
            try:
                answer = answer_of(delivery)
                if answer != answer_of(whole):
                    raise Breach(f"streamed {answer}, whole {whole.answer}")
                check_arguments_json(case, delivery, whole)
                check_cut(case, length, answer)
            except Breach as breach:
                message = f"cut after {text!r}: {breach}"
            tally.record(NAME, one.name, case, message)


def _may_be_a_call(case: Case, length: int) -> bool:
    """Whether the cut lies in a quote, behind a declared name: what was to become prose reads as a cut call then."""
    in_quote = any(span.kind is Kind.QUOTE and span.start < length <= span.end for span in case.spans or ())
    return in_quote and case.text.endswith(tuple(case.request.declared), 0, length)


def check_cut(case: Case, length: int, answer: Answer) -> None:
    """Raise `Breach` unless `answer` is right for the first `length` characters of the case."""
    cut = _cut(case, length)
    if answer.finish_reason != "length":
        raise Breach(f"finish_reason {answer.finish_reason!r} hides the token limit (decision D1)")
    rest = {}
    for channel, wanted, got in (
        ("content", cut.content, answer.content),
        ("reasoning", cut.reasoning, answer.reasoning),
    ):
        if not got.startswith(wanted):
            raise Breach(f"{channel} {got!r}, wanted {wanted!r} and perhaps what was cut")
        rest[channel] = got[len(wanted) :]
        if not cut.tail.endswith(rest[channel]):
            raise Breach(f"{channel} goes on with {rest[channel]!r}, which is no end of {cut.tail!r}")
    num_complete = len(cut.calls)
    _check_complete_calls(cut.calls, answer.calls[:num_complete])
    half = answer.calls[num_complete:]
    drawn = cut.open_span.calls if cut.open_span else ()
    if len(half) > len(drawn):
        raise Breach(f"{len(answer.calls)} calls, only {num_complete + len(drawn)} were begun")
    for position, (call, one) in enumerate(zip(half, drawn, strict=False)):
        _check_begun_call(call, one, is_last=position == len(half) - 1)
    if drawn and not half and rest["content"] != cut.tail and not case.drops_undeclared:
        raise Breach(f"no call came of {cut.tail!r}, and only {rest['content']!r} of it was released")


def _cut(case: Case, length: int) -> _Cut:
    content: list[str] = []
    reasoning: list[str] = []
    calls: list[DrawnCall] = []
    for span in case.spans or ():
        if span.start >= length:
            break
        is_prose = span.kind in (Kind.TEXT, Kind.QUOTE, Kind.REASONING)
        if span.end > length and not is_prose:
            return _Cut("".join(content), "".join(reasoning), tuple(calls), span, case.text[span.start : length])
        (reasoning if span.kind is Kind.REASONING else content).append(
            span.output[: length - span.start] if is_prose else span.output
        )
        calls += span.calls
    return _Cut("".join(content), "".join(reasoning), tuple(calls), None, "")


def _check_complete_calls(drawn: Sequence[DrawnCall], calls: Sequence[Call]) -> None:
    if [call.name for call in calls] != [one.name for one in drawn]:
        raise Breach(f"complete calls of {[call.name for call in calls]}, wanted {[one.name for one in drawn]}")
    for call, one in zip(calls, drawn, strict=True):
        if not same_json(parsed_arguments(call), one.arguments):
            raise Breach(f"complete call {call.name}({call.arguments}), wanted {json.dumps(one.arguments)}")


def _check_begun_call(call: Call, drawn: DrawnCall, *, is_last: bool) -> None:
    """A call in the region that was cut: the drawn one, up to a last value that may be half there."""
    arguments = parsed_arguments(call)
    if call.name != drawn.name and not (drawn.name.startswith(call.name) and not arguments):
        raise Breach(f"a call of {call.name!r}, where {drawn.name!r} was begun")
    if list(arguments) != list(drawn.arguments)[: len(arguments)]:
        raise Breach(f"{call.name}: keys {list(arguments)}, where {list(drawn.arguments)} were begun")
    firm = list(arguments)[:-1] if is_last else list(drawn.arguments)
    for key in firm:
        if key not in arguments or not same_json(arguments[key], drawn.arguments[key]):
            raise Breach(f"{call.name}: {key!r} is {arguments.get(key)!r}, wanted {drawn.arguments[key]!r}")
