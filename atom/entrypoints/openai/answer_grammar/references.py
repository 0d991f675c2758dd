"""Where the references of a JSON Schema lead, and whether there is an end to them.

Owns following a reference inside a schema, and the refusal of one that no value can meet since it contains itself.
Knows neither grammars nor wire formats.
"""

from __future__ import annotations

from typing import Any

from atom.entrypoints.openai.answer_grammar.schema_tree import SchemaError, nodes


def target_of(reference: str, root: Any) -> Any:
    """What a reference leads to; None where that is nothing in this schema, or a place that goes by an anchor."""
    node = root if reference == "#" or reference.startswith("#/") else None
    for step in reference[1:].split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(node, list):
            node = node[int(name)] if name.isdecimal() and int(name) < len(node) else None
        else:
            node = node.get(name) if isinstance(node, dict) else None
    return node


def check_ends(schema: Any) -> None:
    """Raise SchemaError when a subschema can not be met by any value that has an end."""
    waiting = list(nodes(schema))
    if not any("$ref" in node for _, node in waiting):
        return
    endless = {id(node) for _, node in waiting}
    while True:
        left = [(place, node) for place, node in waiting if not _ends(node, schema, endless)]
        if len(left) == len(waiting):
            break
        endless = {id(node) for _, node in left}
        waiting = left
    if waiting:
        place = next((place for place, node in waiting if "$ref" in node), waiting[0][0])
        raise SchemaError(f"'$ref' (at {place}): no value can meet a schema that contains itself without end")


def _ends(node: dict[str, Any], root: Any, endless: set[int]) -> bool:
    """Whether a value can meet the subschema, as far as is known which ones can not be met."""
    needed = [*node.get("allOf", ())]
    if "$ref" in node:
        needed.append(target_of(node["$ref"], root))
    if node.get("type") == "object":
        needed += [node.get("properties", {}).get(name) for name in node.get("required", ())]
    if node.get("type") == "array" and node.get("minItems", 0):
        needed.append(node.get("items"))
    choices = [node[keyword] for keyword in ("anyOf", "oneOf") if node.get(keyword)]
    return not any(id(one) in endless for one in needed) and all(
        any(id(one) not in endless for one in options) for options in choices
    )
