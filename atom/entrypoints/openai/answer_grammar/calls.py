"""Calls of tools, written as a format's canonical form has them.

Owns the grammar of sections and calls: which tool, its number, its arguments. Knows no format by name: everything comes
from the table's forms.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from atom_spec.formats import FormatSpec

from atom.entrypoints.openai.answer_grammar.lark import Rules, choice, quoted
from atom.entrypoints.openai.answer_grammar.schema_tree import NOTES, SchemaError
from atom.entrypoints.openai.answer_grammar.schemas import closed, enforceable, with_formats
from atom.entrypoints.openai.answer_grammar.templates import Filled, Templates
from atom.entrypoints.openai.answer_grammar.values import SEPARATORS, ArgumentRules

# Where calls are numbered on the wire, the grammar holds so many in one answer.
MOST_NUMBERED_CALLS = 16
_HOLE = re.compile(r"\{\w+(?:\|\w+)?\}")
_BAD_NAME = re.compile(r"[\s<>\[\]{}()\"'=,;|｜]")
_ANY_ARGUMENTS = {"type": "object", "additionalProperties": True}
_COMBINING = frozenset(("$ref", "allOf", "anyOf", "oneOf"))


@dataclass(frozen=True, slots=True)
class ToolSchema:
    """A tool that may be called. place: where the request has it, for messages. parameters: its JSON Schema.

    is_free: its arguments are not held to the schema, only to the format.
    """

    place: str
    name: str
    parameters: Any
    is_free: bool = False


class CallRules:
    """The calls of one request's tools, in one format. Raises SchemaError for a tool that can not be enforced."""

    def __init__(
        self,
        rules: Rules,
        spec: FormatSpec,
        variant: str | None,
        tools: Sequence[ToolSchema],
        end_texts: Sequence[str],
        num_earlier_calls: int,
    ) -> None:
        self._rules = rules
        self.form = spec.forms_of(variant)[0]
        self._writing = spec.writing_of(variant)
        grammars = [grammar for grammar in spec.grammars if variant in grammar.variants or not grammar.variants]
        self._grammar = grammars[0] if grammars else None
        self._templates = Templates(end_texts, self._grammar.values.escapes if self._grammar else ())
        self._is_numbered = "{index}" in self.form.call
        first = num_earlier_calls if spec.ids == "wire" else 0
        self._first_index = first + self._writing.index_base
        self._arguments = [(tool.name, self._arguments_of(tool)) for tool in tools]

    def sections(self, *, parallel: bool) -> Filled:
        """The calls of an answer: one, or as many as the model makes."""
        one = self._section(self._call(0))
        if not parallel or one.ends:
            return one
        if self.form.many_calls:
            return self._section(self._calls())
        # One call a section; models put a line break between two.
        return Filled(f"{one.body} ( {quoted(chr(10))}? {one.body} )*", ends=False)

    def opener(self) -> str:
        """The literal that every section begins with."""
        head = self.form.section.partition("{calls}")[0]
        return head or _HOLE.split(self.form.call)[0]

    def opened_section(self, *, parallel: bool) -> Filled:
        """A section behind its opener."""
        opener = self.opener()
        if self.form.section.startswith(opener):
            calls = self._calls() if parallel and self.form.many_calls else self._call(0)
            return self._section(calls, opener)
        return self._section(self._call(0, opener))

    def _section(self, calls: Filled, without: str = "") -> Filled:
        template = self.form.section.removeprefix(without)
        if calls.ends:
            head = template.partition("{calls}")[0]
            return Filled(f"{quoted(head)} {calls.body}" if head else calls.body, ends=True)
        return self._templates.fill(template, {}, {"calls": calls.body})

    def _calls(self) -> Filled:
        """Calls with what separates them, which is one literal with the beginning of the next call."""
        separator = self.form.call_separator
        if not self._is_numbered:
            first, following = self._call(0), self._call(0, lead=separator)
            return Filled(f"{first.body} ( {following.body} )*", first.ends)
        chain = ""
        for number in range(MOST_NUMBERED_CALLS - 1, -1, -1):
            body = self._call(number, lead=separator if number else "").body
            chain = self._rules.rule(f"{body} ( {chain} )?" if chain else body)
        return Filled(chain, ends=False)

    def _call(self, number: int, without: str = "", lead: str = "") -> Filled:
        """One call of any of the tools, the answer's `number`-th."""
        filled = [
            self._templates.fill(
                lead + self.form.call.removeprefix(without),
                {"name": name, "index": str(self._first_index + number)},
                {"arguments": arguments, "json": arguments},
            )
            for name, arguments in self._arguments
        ]
        return Filled(self._rules.rule(choice(one.body for one in filled)), any(one.ends for one in filled))

    def _arguments_of(self, tool: ToolSchema) -> str:
        """The name of a rule for a tool's arguments."""
        try:
            if "{name}" in self.form.call and _BAD_NAME.search(tool.name):
                raise SchemaError("the name can not be written in this model's call format")
            root = _ANY_ARGUMENTS if tool.is_free else enforceable(_object_schema(tool.parameters))
            if self.form.argument is None or self._grammar is None:
                return self._rules.json(closed(with_formats(root)), **SEPARATORS)
            arguments = ArgumentRules(self._rules, self.form, self._writing, self._grammar, root)
            return self._rules.rule(arguments.all())
        except SchemaError as error:
            raise SchemaError(f"{tool.place}, {tool.name!r}: {error}") from None


def _object_schema(parameters: Any) -> Any:
    """A tool's parameters as the schema of an object; one that says nothing of its members has none."""
    if not isinstance(parameters, dict):
        return {"type": "object", "additionalProperties": parameters is None or parameters is True}
    stated = parameters.get("type", "object")
    if isinstance(stated, list) and "object" in stated:
        parameters = {**parameters, "type": "object"}
    elif isinstance(stated, str | list) and stated != "object":
        raise SchemaError(f"'type' (at #): the parameters of a tool are an object, not {stated!r}")
    if not set(parameters) - NOTES - {"type", "properties", "required"} and not parameters.get("properties"):
        return {**parameters, "type": parameters.get("type", "object"), "additionalProperties": False}
    if "type" in parameters or _COMBINING & set(parameters):
        return parameters
    return {"type": "object", **parameters}
