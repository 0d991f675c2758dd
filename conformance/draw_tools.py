"""Draws tools and the arguments of calls to them.

Owns the shapes of schema that the suite covers (decision D5) and the values that fit them. Strings come from a
strategy that the caller gives, since a format decides what a string may hold. Knows nothing of how a call is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from hypothesis import strategies as st

Schema = dict[str, Any]

STRING: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
BOOLEAN: Schema = {"type": "boolean"}
SCHEMAS: tuple[Schema, ...] = (
    STRING,
    INTEGER,
    NUMBER,
    BOOLEAN,
    {"type": "string", "enum": ["red", "0042", "true"]},
    {"type": "array", "items": STRING},
    {"type": "array", "items": INTEGER},
    {"type": "object", "properties": {"lang": STRING, "limit": INTEGER, "exact": BOOLEAN}},
    {
        "type": "object",
        "properties": {"inner": {"type": "object", "properties": {"ids": {"type": "array", "items": NUMBER}}}},
    },
    {"type": "array", "items": {"type": "object", "properties": {"sku": STRING, "qty": INTEGER}}},
    {"type": ["string", "null"]},
    {"type": ["integer", "null"]},
    {"anyOf": [INTEGER, BOOLEAN]},
    {"oneOf": [NUMBER, {"type": "null"}]},
    {"$ref": "#/$defs/Place"},
)
DEFINITIONS: dict[str, Schema] = {"Place": {"type": "object", "properties": {"city": STRING, "floor": INTEGER}}}

NAMES = ("get_weather", "search_docs", "write_file", "now", "run", "mcp__mail-box__list_filters", "a", "get", "Tool-9")
UNDECLARED_NAMES = ("delete_everything", "get_weathe", "get_weather2", "wri", "launch-it")
ODD_KEYS = ("two words", 'a&b"c', "日本", "<p>")
"""Keys that only a JSON object or an escaped attribute can hold."""
KEYS = ("city", "days", "content", "path", "query", "x", "top_k", "max-items", "Zeile", "_id")


@dataclass(frozen=True, slots=True)
class DrawnTool:
    """A tool's name and its parameters' schemas."""

    name: str
    parameters: tuple[tuple[str, Schema], ...]

    @property
    def as_request(self) -> dict[str, Any]:
        """The tool as a request declares it."""
        parameters = {"type": "object", "properties": dict(self.parameters), "$defs": DEFINITIONS}
        return {"type": "function", "function": {"name": self.name, "parameters": parameters}}


@lru_cache
def drawn_tools() -> st.SearchStrategy[tuple[DrawnTool, ...]]:
    """One to three tools of different names, with up to four parameters of any of the schemas."""
    parameters = st.dictionaries(st.sampled_from((*KEYS, *ODD_KEYS)), st.sampled_from(SCHEMAS), max_size=4)
    tool = st.tuples(st.sampled_from(NAMES), parameters).map(lambda pair: DrawnTool(pair[0], tuple(pair[1].items())))
    return st.lists(tool, min_size=1, max_size=3, unique_by=lambda tool: tool.name).map(tuple)


@st.composite
def drawn_arguments(
    draw: st.DrawFn, tool: DrawnTool, strings: st.SearchStrategy[str], *, can_have_odd_keys: bool
) -> dict[str, Any]:
    """Arguments for some of the tool's parameters, in any order, and sometimes one that the tool doesn't declare."""
    usable = [pair for pair in tool.parameters if can_have_odd_keys or pair[0] not in ODD_KEYS]
    chosen = draw(st.permutations(usable)) if usable else []
    count = draw(st.integers(0, len(chosen)))
    arguments = {key: draw(values_of(schema, strings)) for key, schema in chosen[:count]}
    if draw(st.integers(0, 9)) == 9:
        arguments["undeclared"] = draw(strings.map(unmistakable))
    return arguments


def unmistakable(text: str) -> str:
    """A string that can't be read as any other type."""
    return f"so {text}"


def values_of(schema: Schema, strings: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    """Values that fit `schema`. A string that may also be something else is one that reads as nothing else."""
    if "$ref" in schema:
        return values_of(DEFINITIONS[schema["$ref"].rsplit("/", 1)[1]], strings)
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kinds = schema.get("type")
    alternatives = (
        schema.get("anyOf")
        or schema.get("oneOf")
        or ([{"type": k} for k in kinds] if isinstance(kinds, list) else None)
    )
    if alternatives:
        return st.one_of([values_of(one, strings.map(unmistakable)) for one in alternatives])
    match kinds:
        case "string":
            return strings
        case "integer":
            return st.integers(-(10**12), 10**12)
        case "number":
            return st.one_of(
                st.integers(-99, 99), st.floats(-1e6, 1e6, allow_nan=False, allow_infinity=False, width=32)
            )
        case "boolean":
            return st.booleans()
        case "null":
            return st.none()
        case "array":
            return st.lists(values_of(schema["items"], strings), max_size=3)
        case "object":
            fields = {key: values_of(value, strings) for key, value in schema["properties"].items()}
            return st.fixed_dictionaries({}, optional=fields)
        case _:
            raise ValueError(f"the suite draws no values of {schema}")
