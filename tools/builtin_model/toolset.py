"""The tool as the generator sees it: a name, a description, parameters, and the schema that a client would declare.

Owns: `Parameter`, `Tool`, and the ways in which different libraries write the same schema.
Does not know: where tools come from (families.py, invented.py) or how they are asked for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from tools.builtin_model.systems import filler
from tools.builtin_model.words import Words, capitalize


@dataclass(slots=True)
class Parameter:
    """One parameter. `key` is its stable name inside requests, `name` what the client calls it."""

    key: str
    name: str
    kind: str
    schema: dict[str, Any]
    is_required: bool = True
    surfaces: dict[Any, list[str]] = field(default_factory=dict)
    fields: list[Parameter] = field(default_factory=list)


@dataclass(slots=True)
class Tool:
    """One declared tool."""

    name: str
    description: str
    parameters: list[Parameter]

    def declaration(self, words: Words) -> dict[str, Any]:
        """The OpenAI tool object, in the dialect of a randomly chosen client library."""
        function: dict[str, Any] = {"name": self.name}
        if self.description:
            function["description"] = (
                f"{self.description} {filler(words, words.number(5, 40))}" if words.chance(0.04) else self.description
            )
        roll = words.random()
        if self.parameters or roll < 0.8:
            schema = _object_schema(self.parameters, with_titles=roll > 0.75)
            if roll > 0.85:
                schema["additionalProperties"] = False
            function["parameters"] = schema
        return {"type": "function", "function": function}


def _object_schema(parameters: list[Parameter], with_titles: bool) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for parameter in parameters:
        schema = dict(parameter.schema)
        if parameter.fields:
            schema |= _object_schema(parameter.fields, with_titles)
        if with_titles:
            schema["title"] = capitalize(spoken(parameter.name))
            if not parameter.is_required and "enum" not in schema and not parameter.fields:
                # pydantic writes Optional[...] as a union with null
                description = schema.pop("description", None)
                schema = {
                    "anyOf": [{k: v for k, v in schema.items() if k != "title"}, {"type": "null"}],
                    "title": schema["title"],
                }
                if description:
                    schema["description"] = description
        properties[parameter.name] = schema
    return {"type": "object", "properties": properties, "required": [p.name for p in parameters if p.is_required]}


def spoken(name: str) -> str:
    """An identifier as words: `dueDate` and `due_date` become "due date"."""
    return re.sub(r"[_\-.]+", " ", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)).lower()
