"""spec/openapi.yaml -> atom_spec/openai.py, ops.py, routes.py and openapi.json.

Owns the rules that the contract keeps with itself: every reference leads somewhere, every object has a name, every
union of objects is discriminated, every status of an error has a body. A breach is an error with its line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from codegen.source import SpecError
from codegen.structs import Schema, generate_structs
from codegen.text import format_python, python_header

_METHODS = ("get", "head", "post", "put", "patch", "delete")
_SCHEMAS = "#/components/schemas/"
_ERROR_SUFFIX = "ErrorResponse"  # each API family has its own shape of errors
_DOCSTRINGS = {
    "openai": "Requests and answers of the OpenAI endpoints, as msgspec structs.",
    "ops": "Requests and answers of the operations and tokenizer endpoints, as msgspec structs.",
    "anthropic": "Requests and answers of the Anthropic endpoints, as msgspec structs.",
    "responses": "Requests and answers of OpenAI's Responses endpoint, as msgspec structs.",
}

_ROUTE = '''
from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Route:
    """One operation of the contract.

    request: name of the body's struct, in the module `atom_spec.<module>`; None without a body. streams: it may answer
    with server-sent events. auth: a key is needed when the server has keys. statuses: every status it may answer with.
    """

    method: Literal["GET", "HEAD", "POST"]
    path: str
    operation_id: str
    tag: str
    request: str | None = None
    module: str | None = None
    streams: bool = False
    auth: bool = True
    statuses: tuple[int, ...] = ()


'''


class Contract:
    """The parsed file, and complaints about it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        text = path.read_text(encoding="utf-8")
        try:
            self.document: dict[str, Any] = yaml.safe_load(text)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark
            raise SpecError(path, mark.line + 1 if mark else 1, str(error.problem)) from error
        self.schemas: dict[str, Schema] = self.document["components"]["schemas"]
        self._lines = text.splitlines()

    def error(self, message: str, *keys: str) -> SpecError:
        """A complaint about the innermost of the nested `keys` that begins a line, each below the one before it."""
        line = 1
        for key in keys:
            starts = (f"{key}:", f'"{key}":')
            line = next((n for n, t in enumerate(self._lines, 1) if n >= line and t.lstrip().startswith(starts)), line)
        return SpecError(self.path, line, message)

    def _line_with(self, text: str) -> int:
        return next((number for number, line in enumerate(self._lines, 1) if f'"{text}"' in line), 1)

    def operations(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """(path, method, operation), in the file's order."""
        for path, item in self.document["paths"].items():
            for method, operation in item.items():
                if method not in _METHODS:
                    raise self.error(f"{method} is no method", "paths", path, method)
                yield path, method, operation

    def resolve(self, node: Any) -> Any:
        """What a reference leads to; anything else is itself."""
        while isinstance(node, dict) and "$ref" in node:
            target: Any = self.document
            for key in node["$ref"].removeprefix("#/").split("/"):
                if key not in target:
                    raise SpecError(self.path, self._line_with(node["$ref"]), f"{node['$ref']} leads nowhere")
                target = target[key]
            node = target
        return node


def emit(spec_dir: Path) -> dict[str, str]:
    """The structs, the routes, and the contract itself as JSON."""
    contract = Contract(spec_dir / "openapi.yaml")
    for name, schema in contract.schemas.items():
        _check_schema(contract, name, schema)
    for path, method, operation in contract.operations():
        _check_operation(contract, path, method, operation)
    files = {f"{module}.py": _structs(contract, module) for module in sorted(_modules(contract))}
    files["routes.py"] = _routes(contract)
    files["openapi.json"] = json.dumps(contract.document, indent=1, ensure_ascii=False) + "\n"
    return files


def _module(schema: Schema) -> str:
    return str(schema.get("x-module", "openai"))


def _modules(contract: Contract) -> set[str]:
    return {_module(schema) for schema in contract.schemas.values()} - {"none"}


def _check_schema(contract: Contract, name: str, node: Any, *, top: bool = True) -> None:
    if isinstance(node, list):
        for item in node:
            _check_schema(contract, name, item, top=False)
    if not isinstance(node, dict):
        return
    contract.resolve(node)
    if not top and "properties" in node:
        raise contract.error(f"{name}: an object inside another needs a name of its own", "schemas", name)
    options = [option for option in node.get("oneOf", ()) if "$ref" in option]
    if len(options) > 1 and "discriminator" not in node:
        raise contract.error(f"{name}: a union of objects needs a discriminator", "schemas", name)
    for key, value in node.items():
        if key == "properties":
            for child in value.values():
                _check_schema(contract, name, child, top=False)
        elif key not in ("allOf", "discriminator"):  # allOf holds rules, not shapes
            _check_schema(contract, name, value, top=False)


def _check_operation(contract: Contract, path: str, method: str, operation: dict[str, Any]) -> None:
    at = ("paths", path, method)
    for key in ("operationId", "tags", "summary", "responses"):
        if key not in operation:
            raise contract.error(f"{method} {path} has no {key}", *at)
    needed = {"405", "500"} | ({"401"} if _needs_key(operation) else set())
    needed |= {"400", "413", "415"} if "requestBody" in operation else set()
    missing = needed - set(operation["responses"])
    if missing:
        raise contract.error(f"{method} {path} documents no {', '.join(sorted(missing))}", *at)
    for status, response in operation["responses"].items():
        content = contract.resolve(response).get("content", {})
        body = content.get("application/json", {}).get("schema", {}).get("$ref", "")
        if status >= "400" and not body.endswith(_ERROR_SUFFIX):
            raise contract.error(f"{method} {path}: status {status} has no error body", *at, status)
        for media in content.values():
            contract.resolve(media["schema"])


def _needs_key(operation: dict[str, Any]) -> bool:
    return operation.get("security") != []


def _structs(contract: Contract, module: str) -> str:
    schemas = {name: schema for name, schema in contract.schemas.items() if _module(schema) == module}
    text = generate_structs(schemas, python_header("spec/openapi.yaml", _DOCSTRINGS[module]))
    defaults = {
        name: {key: prop["default"] for key, prop in schema["properties"].items() if prop.get("default") is not None}
        for name, schema in schemas.items()
        if schema.get("x-request") and "properties" in schema
    }
    shown = {name: values for name, values in sorted(defaults.items()) if values}
    comment = "# What holds for a field that a request leaves out, and that the model's own files do not set.\n"
    return format_python(f"{text}\n\n{comment}DEFAULTS: dict[str, dict[str, bool | int | float | str]] = {shown!r}\n")


def _routes(contract: Contract) -> str:
    text = python_header("spec/openapi.yaml", "Every operation of the HTTP contract.") + _ROUTE
    text += "ROUTES: tuple[Route, ...] = (\n"
    for path, method, operation in contract.operations():
        arguments = [repr(method.upper()), repr(path), repr(operation["operationId"]), repr(operation["tags"][0])]
        body = operation.get("requestBody")
        if body:
            name = body["content"]["application/json"]["schema"]["$ref"].removeprefix(_SCHEMAS)
            arguments += [f"request={name!r}", f"module={_module(contract.schemas[name])!r}"]
        if "text/event-stream" in contract.resolve(operation["responses"]["200"]).get("content", {}):
            arguments.append("streams=True")
        if not _needs_key(operation):
            arguments.append("auth=False")
        arguments.append(f"statuses={tuple(int(status) for status in operation['responses'])!r}")
        text += f"    Route({', '.join(arguments)}),\n"
    return format_python(text + ")\n")
