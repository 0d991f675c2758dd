"""spec/openapi.yaml -> docs/api.md, for people who write clients.

Owns the page's order, and what the contract must say so that the page is complete: every request field has a help text,
every refusal and every difference belongs to an operation that there is. A gap is an error with its line.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from codegen.api_types import Schema, default_text, named_schemas, range_text, schema_name, type_text
from codegen.openapi import Contract
from codegen.text import markdown_header, markdown_table

_JSON = "application/json"
_EVENTS = "text/event-stream"
# Help texts that put a field into a sentence below the table.
_SENTENCES = {
    "Without effect.": "Accepted, without effect",
    "Not done here.": "Refused, since it is not done here",
}


class _Page:
    """The contract, and the types that the page has mentioned, in that order: whether a request mentions them."""

    def __init__(self, contract: Contract) -> None:
        self.contract = contract
        self.schemas = contract.schemas
        self.resolve = contract.resolve
        self.mentioned: dict[str, bool] = {}

    def mention(self, schema: Any, *, is_request: bool) -> None:
        """The page will describe the types that the schema refers to."""
        for name in named_schemas(schema):
            self.mentioned.setdefault(name, is_request)


def emit(spec_dir: Path) -> dict[str, str]:
    """The page."""
    page = _Page(Contract(spec_dir / "openapi.yaml"))
    # HEAD answers as GET does, without the body.
    operations = [operation for operation in page.contract.operations() if operation[1] != "head"]
    _check(page, operations)
    text = (
        markdown_header("spec/openapi.yaml") + "# HTTP API\n\n" + page.contract.document["info"]["description"] + "\n"
    )
    text += _contents(operations)
    text += "".join(_operation(page, *operation) for operation in operations)
    return {"docs/api.md": text + _types(page)}


def _check(page: _Page, operations: list[tuple[str, str, dict[str, Any]]]) -> None:
    known = {operation["operationId"] for _, _, operation in page.contract.operations()}
    for name, refusal in page.contract.document["x-refusals"].items():
        if unknown := sorted(set(refusal["operations"]) - known):
            raise page.contract.error(f"there is no operation {unknown[0]}", "x-refusals", name, "operations")
    for path, method, operation in operations:
        body = _body(operation)
        if body is None:
            continue
        name = schema_name(body["schema"])
        for field, schema in page.schemas[name or ""]["properties"].items():
            if "description" not in page.resolve(schema):
                raise page.contract.error(f"{method} {path}: {field} has no description", "schemas", name or "", field)


def _contents(operations: Iterable[tuple[str, str, dict[str, Any]]]) -> str:
    rows = [(_link(path, method), operation["summary"]) for path, method, operation in operations]
    return markdown_table(("endpoint", "what it does"), rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table without the columns that say nothing."""
    kept = [column for column in range(len(head)) if column < 2 or any(row[column] for row in rows)]
    return markdown_table([head[c] for c in kept], [[row[c] for c in kept] for row in rows])


def _title(path: str, method: str) -> str:
    return f"{method.upper()} {path}"


def _link(path: str, method: str) -> str:
    # GitHub's anchors: lower case, no punctuation but - and _, a space becomes -.
    anchor = "".join(c for c in _title(path, method).lower().replace(" ", "-") if c.isalnum() or c in "-_")
    return f"[`{_title(path, method)}`](#{anchor})"


def _operation(page: _Page, path: str, method: str, operation: dict[str, Any]) -> str:
    text = f"\n## {_title(path, method)}\n\n{operation['summary']}"
    if operation.get("security") == []:
        text += " Needs no key."
    text += "\n" + _example(path, method, operation) + _parameters(page, operation)
    if body := _body(operation):
        name = schema_name(body["schema"]) or ""
        text += "\n### Request\n\n" + _fields(page, page.schemas[name], is_request=True)
    text += _answers(page, operation) + _errors(page, operation)
    for api, differences in operation.get("x-differences", {}).items():
        text += f"\n### Differences from {api}\n\n" + "".join(f"- {difference}\n" for difference in differences)
    return text


def _body(operation: dict[str, Any]) -> dict[str, Any] | None:
    body: dict[str, Any] | None = operation.get("requestBody", {}).get("content", {}).get(_JSON)
    return body


def _example(path: str, method: str, operation: dict[str, Any]) -> str:
    body = _body(operation)
    if body is None or "examples" not in body:
        return ""
    head = f"curl http://127.0.0.1:8000{path} -H 'Content-Type: application/json' \\\n  -d "
    lines = [f"{head}'{json.dumps(example['value'])}'\n" for example in body["examples"].values()]
    return "\n```bash\n" + "\n".join(lines) + "```\n"


def _parameters(page: _Page, operation: dict[str, Any]) -> str:
    rows = []
    for parameter in map(page.resolve, operation.get("parameters", ())):
        if parameter["in"] != "header":
            kind = type_text(parameter["schema"], is_request=True)
            rows.append((f"`{parameter['name']}`", parameter["in"], kind, parameter.get("description", "")))
    return "\n" + markdown_table(("parameter", "in", "type", "what it is"), rows) if rows else ""


def _fields(page: _Page, schema: Schema, *, is_request: bool) -> str:
    """A table of an object's fields; those that do nothing are named below it."""
    page.mention(schema.get("properties", {}), is_request=is_request)
    required = schema.get("required", ())
    rows: list[tuple[str, ...]] = []
    aside: dict[str, list[str]] = {text: [] for text in _SENTENCES}
    for field, value in schema.get("properties", {}).items():
        if value.get("description") in aside:
            aside[value["description"]].append(f"`{field}`")
            continue
        name = f"`{field}`" + (" (needed)" if is_request and field in required else "")
        if not is_request and field not in required:
            name += " (may be absent)"
        cells = [name, type_text(value, is_request=is_request)]
        if is_request:
            cells += [default_text(value), range_text(value)]
        rows.append((*cells, value.get("description", "")))
    head = ("field", "type", "default", "range", "help") if is_request else ("field", "type", "help")
    sentences = (f"\n{_SENTENCES[text]}: {', '.join(fields)}.\n" for text, fields in aside.items() if fields)
    return _table(head, rows) + "".join(sentences)


def _answers(page: _Page, operation: dict[str, Any]) -> str:
    response = page.resolve(operation["responses"]["200"])
    text: str = "\n### Answer\n\n" + response["description"] + "\n"
    for kind, content in response["content"].items():
        name = schema_name(content["schema"])
        if kind == _EVENTS:
            text += "\n### Events\n\n" + _events(page, page.schemas[name or ""])
        elif name:
            text += "\n" + _fields(page, page.schemas[name], is_request=False)
        else:
            text += f"\n`{kind}`.\n"
    return text


def _events(page: _Page, schema: Schema) -> str:
    """A table of the events of a stream, by their `event:` line."""
    rows = []
    for event in map(page.resolve, schema.get("oneOf", [schema])):
        data = event["properties"]["data"]
        kinds = [option.get("contentSchema", option) for option in data.get("anyOf", [data])]
        page.mention(kinds, is_request=False)
        name = event["properties"]["event"]["const"]
        shown = f"`{name}`" if "oneOf" in schema else "(unnamed)"
        rows.append((shown, " or ".join(type_text(kind, is_request=False) for kind in kinds)))
    return f"{schema['description']}\n\n" + markdown_table(("event", "data"), rows)


def _errors(page: _Page, operation: dict[str, Any]) -> str:
    refusals = page.contract.document["x-refusals"].values()
    rows: list[tuple[str, str]] = []
    bodies: set[str] = set()
    for status, reference in operation["responses"].items():
        if status == "200":
            continue
        response = page.resolve(reference)
        bodies.add(type_text(response["content"][_JSON]["schema"], is_request=False))
        page.mention(response["content"][_JSON]["schema"], is_request=False)
        reasons = [
            refusal["when"]
            for refusal in refusals
            if operation["operationId"] in refusal["operations"] and str(refusal["status"]) == status
        ]
        # A 404 is refused for what the refusals say, a 400 for its shape too.
        whys = reasons if status == "404" and reasons else [response["description"], *reasons]
        rows += [(status, whys[0]), *(("", why) for why in whys[1:])]
    return f"\n### Errors\n\nThe body is {' or '.join(sorted(bodies))}.\n\n" + markdown_table(("status", "why"), rows)


def _types(page: _Page) -> str:
    """Every type that the page mentions, each once, and those that they mention in turn."""
    text, done = "\n# Types\n", set()
    while rest := [name for name in page.mentioned if name not in done]:
        for name in rest:
            done.add(name)
            text += _type(page, name, page.schemas[name], is_request=page.mentioned[name])
    return text


def _type(page: _Page, name: str, schema: Schema, *, is_request: bool) -> str:
    text = f"\n### {name}\n"
    if "description" in schema:
        text += f"\n{schema['description']}\n"
    if "properties" in schema:
        return text + "\n" + _fields(page, schema, is_request=is_request)
    page.mention(schema, is_request=is_request)
    tag = schema.get("discriminator", {}).get("propertyName")
    chosen = f"By its `{tag}`: " if tag else ""
    return text + f"\n{chosen}{type_text(schema, is_request=is_request)}.\n"
