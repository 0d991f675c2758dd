"""spec/formats/reasoning/*.yaml to generated/atom_spec/dialects.py. Knows no wire format and no reader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from codegen.source import YamlFile
from codegen.text import format_python, python_header

SOURCES = "spec/formats/reasoning/*.yaml"

_TYPES = '''\
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ThinkingSwitch:
    """A template keyword with the values that turn thinking off and on."""

    keyword: str
    off: bool | str
    on: bool | str


@dataclass(frozen=True, slots=True)
class DialectExample:
    """A text after the generation prompt, and how it splits."""

    text: str
    begins_inside: bool
    reasoning: str
    content: str


@dataclass(frozen=True, slots=True)
class ReasoningDialect:
    """How a model sets its thoughts apart.

    in_format: the wire format's own reader separates them, there are no markers here. order: of detection, lowest
    first. evidence: one of these in what a template renders names the dialect. switches: candidates, in this order.
    """

    name: str
    title: str
    start: str
    end: str
    in_format: bool
    order: int
    evidence: tuple[str, ...]
    switches: tuple[ThinkingSwitch, ...]
    effort_keywords: tuple[str, ...]
    examples: tuple[DialectExample, ...]


'''

# Key: (type, required). A list's items are checked where they are read.
_KEYS: dict[str, tuple[type, bool]] = {
    "name": (str, True),
    "title": (str, True),
    "start": (str, False),
    "end": (str, False),
    "in_format": (bool, False),
    "evidence": (dict, True),
    "switches": (list, True),
    "effort_keywords": (list, True),
    "examples": (list, True),
}


def emit(spec_dir: Path) -> dict[str, str]:
    """The dialects, in their order of detection. Raises SpecError."""
    files = [YamlFile(path) for path in sorted((spec_dir / "formats" / "reasoning").glob("*.yaml"))]
    entries: dict[str, tuple[int, str]] = {}
    for file in files:
        _check(file)
        name = file.data["name"]
        if name in entries:
            raise file.error(f"dialect {name!r} is defined twice", "name")
        entries[name] = (file.data["evidence"]["order"], _dialect(file))
    orders = [order for order, _ in entries.values()]
    for file in files:
        if orders.count(file.data["evidence"]["order"]) > 1:
            raise file.error("two dialects have this order", "evidence", "order")
    body = "".join(f"{name!r}: {text},\n" for name, (_, text) in sorted(entries.items(), key=lambda item: item[1][0]))
    source = f"{_TYPES}DIALECTS: dict[str, ReasoningDialect] = {{\n{body}}}\n"
    header = python_header(SOURCES, "Reasoning dialects: markers, evidence, switches.")
    return {"dialects.py": format_python(header + source)}


def _check(file: YamlFile) -> None:
    if not isinstance(file.data, dict):
        raise file.error("a dialect is a mapping")
    for key, value in file.data.items():
        if key not in _KEYS:
            raise file.error(f"unknown key {key!r}; known: {', '.join(_KEYS)}", key)
        if not isinstance(value, _KEYS[key][0]):
            raise file.error(f"{key} must be a {_KEYS[key][0].__name__}", key)
    for key, (_, required) in _KEYS.items():
        if required and key not in file.data:
            raise file.error(f"{key} is missing")
    if file.data["name"] != file.path.stem:
        raise file.error("the name must be the file's", "name")
    markers = [file.data.get("start"), file.data.get("end")]
    if file.data.get("in_format"):
        if any(markers):
            raise file.error("a dialect that its format reads has no markers", "in_format")
    elif not all(markers) or markers[0] == markers[1]:
        raise file.error("start and end must be two different markers", "start")


def _dialect(file: YamlFile) -> str:
    data = file.data
    evidence = _mapping(file, {"order": int, "any": list}, "evidence")
    for place, literal in enumerate(evidence["any"]):
        if not isinstance(literal, str) or not literal:
            raise file.error("evidence is a list of texts", "evidence", "any", place)
    switches = [_switch(file, place) for place in range(len(data["switches"]))]
    examples = [_example(file, place) for place in range(len(data["examples"]))]
    return (
        f"ReasoningDialect(name={data['name']!r}, title={data['title']!r}, start={data.get('start', '')!r}, "
        f"end={data.get('end', '')!r}, in_format={data.get('in_format', False)!r}, order={evidence['order']!r}, "
        f"evidence={tuple(evidence['any'])!r}, switches={_tuple(switches)}, "
        f"effort_keywords={tuple(data['effort_keywords'])!r}, examples={_tuple(examples)})"
    )


def _switch(file: YamlFile, place: int) -> str:
    data = _mapping(file, {"keyword": str, "disable": bool | str, "enable": bool | str}, "switches", place)
    return f"ThinkingSwitch({data['keyword']!r}, off={data['disable']!r}, on={data['enable']!r})"


def _example(file: YamlFile, place: int) -> str:
    entry = file.data["examples"][place]
    if isinstance(entry, dict):
        entry.setdefault("begins_inside", False)
    data = _mapping(file, {"text": str, "begins_inside": bool, "reasoning": str, "content": str}, "examples", place)
    return "DialectExample(" + ", ".join(f"{key}={value!r}" for key, value in sorted(data.items())) + ")"


def _mapping(file: YamlFile, types: dict[str, Any], *at: str | int) -> dict[str, Any]:
    """The mapping at a place, with exactly the keys of `types`, each of its type."""
    data = file.data
    for step in at:
        data = data[step]
    if not isinstance(data, dict) or set(data) != set(types):
        raise file.error(f"must be a mapping with {', '.join(types)}", *at)
    for key, kind in types.items():
        if not isinstance(data[key], kind):
            raise file.error(f"{key} has the wrong type", *at, key)
    return data


def _tuple(items: list[str]) -> str:
    return "(" + "".join(f"{item}, " for item in items) + ")"
