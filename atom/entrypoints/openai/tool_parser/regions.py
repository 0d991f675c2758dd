"""Which body reads a call, by the shape that its grammar has.

Owns the choice between flat, nested and JSON arguments. Knows no format by name.
"""

from __future__ import annotations

from atom.entrypoints.openai.tool_parser.elements import ElementCall
from atom.entrypoints.openai.tool_parser.json_calls import ObjectCall, TaggedJsonCall
from atom.entrypoints.openai.tool_parser.patterns import PARTIAL, Partial
from atom.entrypoints.openai.tool_parser.region import Body, Region
from atom.entrypoints.openai.tool_parser.tagged import FlatCall


def open_call(region: Region, text: str, position: int, at_end: bool) -> tuple[Body, int] | Partial | None:
    """The body of the call that begins at `position`, and the index behind its tag; None: none begins there."""
    tables = region.tables
    grammar = tables.grammar
    if grammar.object_keys is not None:
        return (ObjectCall(region), position) if text[position] == "{" else None
    found = tables.call.match(text, position, at_end)
    if isinstance(found, Partial):
        return None if at_end else PARTIAL
    if grammar.shape == "json":
        return None if found is None else (TaggedJsonCall(region, found), found.end)
    kind = ElementCall if grammar.item else FlatCall
    if found is not None:
        return kind(region, found.number, found.holes), found.end
    if not (grammar.infers_name and region.output.may_infer and region.is_wrapped):
        return None
    nameless = tables.argument.match(text, position, at_end)
    if isinstance(nameless, Partial):
        return None if at_end else PARTIAL
    return None if nameless is None else (kind(region, -1, {"name": ""}), position)
