"""JSON Schema -> msgspec structs, by datamodel-code-generator.

Owns what the generator must be told: a struct can not hold every rule of a schema, so those that need a look at two
fields are taken out before (decoding checks them), and what the generator loses is put back after. Knows no endpoint.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from codegen.text import format_python

Schema = dict[str, Any]

# Rules over several fields, and what Python's types can not say.
_DROPPED = ("allOf", "if", "then", "else", "not", "propertyNames", "examples", "default")
_OPTIONS = shlex.split("""
--input-file-type openapi --schema-version 3.1 --output-model-type msgspec.Struct --target-python-version 3.11
--enum-field-as-literal all --use-annotated --strict-nullable --use-typed-nullable-map-values
--use-one-literal-as-default --collapse-root-models --naming-strategy parent-prefixed --keyword-only
--use-msgspec-tagged-unions --keep-model-order --use-schema-description --use-single-line-docstring
--disable-timestamp --no-formatters --use-standard-collections --use-union-operator
""")


def generate_structs(schemas: dict[str, Schema], header: str) -> str:
    """A module with one struct a schema. `schemas` must refer to nothing but themselves."""
    document: Schema = {"openapi": "3.1.0", "info": {"title": "schemas", "version": "0"}, "paths": {}}
    document["components"] = {"schemas": {name: _prepare(schema) for name, schema in schemas.items()}}
    parts = re.split(r"^(?=class )", _run_generator(document), flags=re.MULTILINE)
    return format_python(header + "".join([parts[0], *(_repair(part, schemas) for part in parts[1:])]))


def _run_generator(document: Schema) -> str:
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "schemas.json"), Path(folder, "structs.py")
        source.write_text(json.dumps(document))
        command = [sys.executable, "-m", "datamodel_code_generator", "--input", str(source), "--output", str(target)]
        done = subprocess.run([*command, *_OPTIONS], capture_output=True, text=True, cwd=folder)
        if done.returncode != 0:
            raise RuntimeError(f"datamodel-code-generator failed:\n{done.stderr}")
        text = target.read_text()
    return re.sub(r"\A(#.*\n)+", "", text)


def _prepare(node: Any, depth: int = 0) -> Any:
    """The schema as the generator shall see it: without what a struct does not hold, arrays of a union merged."""
    if isinstance(node, list):
        return [_prepare(item, depth) for item in node]
    if not isinstance(node, dict):
        return node
    if "x-tag" in node:
        return {"type": "string", "const": node["x-tag"]}
    prepared = {key: _prepare(value, depth + 1) for key, value in node.items() if key not in _DROPPED}
    if depth and isinstance(node.get("description"), str):
        del prepared["description"]  # a comment on a field, which would end up in the type
    if isinstance(node.get("properties"), dict):
        # A property may have the name of a keyword.
        prepared["properties"] = {name: _prepare(value, depth + 1) for name, value in node["properties"].items()}
    if "oneOf" in prepared and "discriminator" not in prepared:
        prepared["oneOf"] = _merge_arrays(prepared["oneOf"])
    return prepared


def _merge_arrays(options: list[Schema]) -> list[Schema]:
    """msgspec tells union members apart by their JSON kind, so a union's arrays become one array of all their items."""
    arrays = [option for option in options if option.get("type") == "array"]
    if len(arrays) < 2:
        return options
    merged: Schema = {"type": "array", "items": {"oneOf": [array["items"] for array in arrays]}}
    if all("minItems" in array for array in arrays):
        merged["minItems"] = min(array["minItems"] for array in arrays)
    return [option for option in options if option not in arrays] + [merged]


def _repair(text: str, schemas: dict[str, Schema]) -> str:
    """One struct's text as we want it: see the lines' comments."""
    name = re.match(r"class (\w+)", text)
    schema = schemas[name[1]] if name else {}
    if schema.get("x-request"):
        # Absent and null are one thing in a request.
        text = text.replace("None | UnsetType = UNSET", "None = None")
        # A required constant stays required.
        text = re.sub(r"(Literal\['\w+'\]) \| UnsetType = '\w+'", r"\1", text)
    else:
        # A constant of an answer need not be given, and is always sent.
        text = re.sub(r"(Literal\['[\w.]+'\]) \| UnsetType = '", r"\1 = '", text)
    if schema.get("additionalProperties") is False:
        # The generator knows additionalProperties only for pydantic.
        text, count = re.subn(r"\A(class \w+\(Struct[^)]*)\):", r"\1, forbid_unknown_fields=True):", text)
        if count != 1:
            raise RuntimeError(f"the head of a generated struct looks new: {text[:80]!r}")
    return text
