"""How a declared tool looks in a prompt: one line for the tool, one for each parameter.

Owns: the compact text of a JSON schema. It takes half the tokens of the schema's own JSON, and it looks the same
whichever library wrote the schema. Mirrors the macros of templates.py exactly (a test compares the two).
Does not know: how tools are made up or called.
"""

from __future__ import annotations

from typing import Any

from tools.builtin_model.wire import raw_or_json

MAX_DEPTH = 3


def tool_text(tool: dict[str, Any]) -> str:
    """The lines of one tool, each with its leading newline. Accepts the OpenAI wrapper or the bare function object."""
    function = tool.get("function", tool)
    parameters = function.get("parameters") or {}
    definitions = parameters.get("$defs") or parameters.get("definitions") or {}
    description = function.get("description")
    suffix = f": {description.replace(chr(10), ' ')}" if description else ""
    return f"\n{function['name']}{suffix}{_fields(parameters, definitions, '-')}"


def _fields(schema: Any, definitions: dict[str, Any], dash: str) -> str:
    """One line for each property, nested objects one dash deeper."""
    if not isinstance(schema, dict) or len(dash) > MAX_DEPTH:
        return ""
    if schema.get("$ref"):
        return _fields(definitions.get(schema["$ref"].split("/")[-1]), definitions, dash)
    if schema.get("properties"):
        required = schema.get("required") or []
        return "".join(
            _field_line(name, field, name in required, definitions, dash)
            for name, field in schema["properties"].items()
        )
    if isinstance(schema.get("items"), dict):
        return _fields(schema["items"], definitions, dash)
    return "".join(_fields(option, definitions, dash) for option in schema.get("anyOf") or schema.get("oneOf") or [])


def _field_line(name: str, field: Any, is_required: bool, definitions: dict[str, Any], dash: str) -> str:
    description = field.get("description") if isinstance(field, dict) else None
    suffix = f", {description.replace(chr(10), ' ')}" if description else ""
    mark = "" if is_required else "?"
    return f"\n{dash}{name}{mark}: {_type(field, definitions)}{suffix}{_fields(field, definitions, dash + '-')}"


def _type(schema: Any, definitions: dict[str, Any]) -> str:
    """A type in a few characters: `string`, `low|high`, `array of integer`, `string|null`."""
    if not isinstance(schema, dict):
        return "any"
    if schema.get("$ref"):
        return _type(definitions.get(schema["$ref"].split("/")[-1]), {})
    if schema.get("enum"):
        return "|".join(raw_or_json(value) for value in schema["enum"])
    if "const" in schema:
        return raw_or_json(schema["const"])
    options = schema.get("anyOf") or schema.get("oneOf")
    if options:
        return "|".join(_type(option, definitions) for option in options)
    kind = schema.get("type")
    if isinstance(kind, str):
        items = schema.get("items")
        return f"array of {_type(items, definitions)}" if kind == "array" and isinstance(items, dict) else kind
    return "|".join(kind) if kind else "any"
