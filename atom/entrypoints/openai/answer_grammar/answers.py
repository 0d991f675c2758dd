"""The grammar of a whole answer: a thought first, where the model thinks, then what was asked for.

Owns the frame around calls, JSON and text: the reasoning channel, which stays free, the channels that a format puts its
answers in, and text that may end in calls. Knows no format, dialect or model by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from atom_spec.dialects import ReasoningDialect
from atom_spec.formats import FormatSpec, Writing

from atom.entrypoints.openai.answer_grammar.calls import CallRules, ToolSchema
from atom.entrypoints.openai.answer_grammar.lark import ANY_TEXT, Rules, choice, quoted
from atom.entrypoints.openai.answer_grammar.schema_tree import SchemaError
from atom.entrypoints.openai.answer_grammar.schemas import closed, enforceable, guarded, with_formats
from atom.entrypoints.openai.answer_grammar.templates import Templates

# White space in JSON answers: enough to lay them out, not enough to go on for ever.
JSON_SPACE = {"whitespace_pattern": r"(?: |\n[ \t]{0,20})"}
_LINE_BREAKS = f"{quoted(chr(10))}{{0,2}}"


@dataclass(frozen=True, slots=True)
class Speech:
    """How a model answers a prompt.

    begins_thinking: the prompt has opened the reasoning channel. is_inside_content: it has opened the channel of the
    answer's text, where the format has one. end_texts: how tokens are spelt that end an answer.
    """

    format: FormatSpec | None
    variant: str | None
    dialect: ReasoningDialect | None
    begins_thinking: bool
    is_inside_content: bool
    end_texts: tuple[str, ...]

    @property
    def writing(self) -> Writing | None:
        """How models of the format write; None without one."""
        return None if self.format is None else self.format.writing_of(self.variant)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an answer may be. tools: that may be called; must_call: one has to be. json: the schema of an answer that is
    no call, None where that is free text.
    """

    tools: tuple[ToolSchema, ...] = ()
    must_call: bool = False
    parallel: bool = True
    num_earlier_calls: int = 0
    json: Any = None


def answer_grammar(speech: Speech, wanted: Wanted) -> str:
    """The grammar's text. Raises SchemaError for a schema or a tool that can not be enforced."""
    rules = Rules()
    frame = Frame(rules, speech)
    options: list[str] = []
    calls = None
    if wanted.tools:
        if speech.format is None:
            raise SchemaError("this model has no format for calls that is known here")
        calls = CallRules(
            rules, speech.format, speech.variant, wanted.tools, speech.end_texts, wanted.num_earlier_calls
        )
        sections = calls.sections(parallel=wanted.parallel)
        options.append(frame.calls(sections.body))
    if wanted.json is not None:
        options.append(frame.content(_json_answer(rules, speech, wanted)))
    elif calls is not None and not wanted.must_call:
        options.append(frame.text_and_calls(calls, parallel=wanted.parallel))
    return rules.grammar(frame.answer(choice(options), is_free=wanted.json is None and not wanted.must_call))


def _json_answer(rules: Rules, speech: Speech, wanted: Wanted) -> str:
    """JSON in which nothing is taken for markup by those who read the answer."""
    schema = enforceable(wanted.json)
    markers: list[str] = []
    if speech.dialect is not None and not speech.dialect.in_format:
        markers.append(speech.dialect.start)
    if speech.format is not None and (wanted.tools or speech.format.framing or speech.format.channels):
        markers += speech.format.markers
    return rules.json(guarded(closed(with_formats(schema)), tuple(markers)), **JSON_SPACE)


class Frame:
    """What stands around the parts of an answer."""

    def __init__(self, rules: Rules, speech: Speech) -> None:
        self._rules = rules
        self._speech = speech
        writing = speech.writing
        before, after = (writing.content if writing else "{text}").split("{text}")
        templates = Templates(speech.end_texts, ())
        self._before, self._after = before, after
        self._is_inside = speech.is_inside_content
        self._epilogue = templates.fill(writing.epilogue if writing else "", {}, {}).body
        self._separator = writing.part_separator if writing else ""
        self._reasoning = writing.reasoning if writing else None

    def answer(self, body: str, *, is_free: bool) -> str:
        """The whole answer: thoughts, then `body`. is_free: that is any text, also a thought."""
        dialect = self._speech.dialect
        if self._reasoning is not None and dialect is not None:
            before, after = self._reasoning.split("{text}")
            thought = self._rules.lazy(f"{ANY_TEXT} {quoted(after + self._separator)}")
            return f"( {quoted(before)} {thought} )* {body}"
        if dialect is None or dialect.in_format or self._is_inside:
            return body
        if is_free and not self._speech.begins_thinking:
            return body
        thought = self._rules.lazy(f"{ANY_TEXT} {quoted(dialect.end)}")
        if self._speech.begins_thinking:
            return f"{thought} {_LINE_BREAKS} {body}"
        return f"( {quoted(chr(10))}? {quoted(dialect.start)} {thought} {_LINE_BREAKS} )? {body}"

    def content(self, body: str) -> str:
        """An answer that is this body."""
        return f"{self._open()} {body} {self._close()}"

    def calls(self, sections: str) -> str:
        """An answer that is these calls."""
        if not self._after or self._reasoning is not None:
            return sections
        ended = quoted(self._after) if self._is_inside else f"{quoted(self._before + self._after)}?"
        return f"{ended} {sections} {self._end()}"

    def text_and_calls(self, calls: CallRules, *, parallel: bool) -> str:
        """Any text, in which calls may begin wherever the format lets them: they are then held to their schemas."""
        assert self._speech.format is not None
        spec = self._speech.format
        text = self._rules.text_without(spec.markers)
        if spec.has_start_forms:  # nothing but its first character tells a call from text
            plain = self._rules.terminal(f"({text}) & /(?s:\\s*(?:[^\\s{{].*)?)/")
            return choice((plain, calls.sections(parallel=parallel).body))
        if spec.channels is not None:
            names = [name for name, kind in spec.channels.kinds.items() if kind == "content"]
            opened = choice(quoted(f"{spec.channels.channel}{name}{spec.channels.message}") for name in names)
            said = f"{opened} {self._said(text, self._after)}"
            sections = calls.sections(parallel=parallel).body
            return f"( {said} {quoted(self._separator)} )* ( {opened} {text} | {said} | {sections} )"
        if self._after:
            sections = calls.sections(parallel=parallel).body
            return f"{self._open()} ( {text} | {self._said(text, self._after)} ( {sections} )? {self._end()} )"
        # The text up to a section's opener is one terminal with it: a terminal does not end where another could begin.
        section = f"{self._said(text, calls.opener())} {calls.opened_section(parallel=parallel).body}"
        return f"( {section} ){'*' if parallel else '?'} {text}"

    def _said(self, text: str, ending: str) -> str:
        return self._rules.lazy(f"({text}) {quoted(ending)}")

    def _open(self) -> str:
        return quoted("") if self._is_inside else quoted(self._before)

    def _close(self) -> str:
        return f"( {quoted(self._after)} {self._end()} )?" if self._after else ""

    def _end(self) -> str:
        return f"( {self._epilogue} )?"
