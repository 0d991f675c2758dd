"""Grammars of answers, made and checked off the event loop, and kept by what they are made of.

Owns the cache and the last check of a grammar, which names what is wrong with a schema. Knows no request.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from concurrent.futures import Executor
from typing import Any

import llguidance
import msgspec

from atom.entrypoints.openai.answer_grammar.answers import Speech, Wanted, answer_grammar
from atom.entrypoints.openai.answer_grammar.calls import ToolSchema
from atom.entrypoints.openai.answer_grammar.schema_tree import SchemaError
from atom.entrypoints.openai.answer_grammar.schemas import enforceable, said

MOST_GRAMMARS = 256
_LIMITS = llguidance.LLParserLimits(verbose_errors=False)


class MadeGrammars:
    """The grammars that were made last. Used from the event loop."""

    def __init__(self, threads: Executor) -> None:
        self._threads = threads
        self._made: OrderedDict[bytes, str] = OrderedDict()

    async def get(self, speech: Speech, wanted: Wanted) -> str:
        """The grammar's text. Raises SchemaError for what can not be enforced."""
        key = _content_hash(speech, wanted)
        text = self._made.get(key)
        if text is None:
            text = await asyncio.get_running_loop().run_in_executor(self._threads, make, speech, wanted)
            self._made[key] = text
            while len(self._made) > MOST_GRAMMARS:
                self._made.popitem(last=False)
        self._made.move_to_end(key)
        return text


def make(speech: Speech, wanted: Wanted) -> str:
    """The grammar, of which llguidance has found that it can be followed. Raises SchemaError."""
    try:
        text = answer_grammar(speech, wanted)
    except RecursionError:
        raise SchemaError("the schema is too deep") from None
    is_error, messages = llguidance.LLMatcher.validate_grammar_with_warnings(text, limits=_LIMITS)
    if is_error:
        for tool in wanted.tools:
            _check_tool(tool)
        raise SchemaError(f"the grammar of the answer can not be made: {said(messages[0]).partition(chr(10))[0]}")
    return text


def _check_tool(tool: ToolSchema) -> None:
    try:
        enforceable({} if tool.parameters is None else tool.parameters)
    except SchemaError as error:
        raise SchemaError(f"{tool.place}, {tool.name!r}: {error}") from None


def _content_hash(speech: Speech, wanted: Wanted) -> bytes:
    """Of everything that the grammar depends on, so that another conversation with the same tools finds it."""
    spec = speech.format
    is_numbered = spec is not None and spec.ids == "wire"
    content: tuple[Any, ...] = (
        None if spec is None else spec.name,
        speech.variant,
        None if speech.dialect is None else speech.dialect.name,
        speech.begins_thinking,
        speech.is_inside_content,
        speech.end_texts,
        [(tool.name, tool.parameters, tool.is_free) for tool in wanted.tools],
        wanted.must_call,
        wanted.parallel,
        wanted.num_earlier_calls if is_numbered else 0,
        wanted.json,
    )
    return hashlib.sha256(msgspec.json.encode(content)).digest()
