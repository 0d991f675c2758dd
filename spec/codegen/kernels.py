"""spec/kernels.yaml -> atom_spec/kernels.py and docs/kernels.md.

Owns what an operation may say; a wrong key or an unknown name is an error with its line. Knows no backend's code.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from codegen.source import YamlFile
from codegen.text import format_python, markdown_header, markdown_table, python_header

_TYPES = ("tensor", "tensor or None", "int", "int or None", "float", "bool", "object")
_DTYPES = ("float", "kv", "float8_e4m3fn", "float32", "int32", "int64", "uint8")
_SAME = ("layout", "backend", "nothing")
_ARGUMENT_KEYS = ("name", "type", "shape", "dtypes", "in_place", "help")

_CLASSES = '''
from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ArgumentType = Literal["tensor", "tensor or None", "int", "int or None", "float", "bool", "object"]


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument, or the result. in_place: the operation may overwrite the tensor. dtypes: float is the model's."""

    name: str
    type: ArgumentType
    shape: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    in_place: bool = False
    help: str = ""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the kernel table. Arguments are positional and have no defaults."""

    name: str
    group: str
    summary: str
    arguments: tuple[Argument, ...]
    returns: Argument


@dataclass(frozen=True, slots=True)
class Group:
    """Operations that belong together. same: what must be equal for all of them."""

    name: str
    same: Literal["layout", "backend", "nothing"]
    help: str


@dataclass(frozen=True, slots=True)
class Backend:
    """A set of implementations. layout: how it lays out the KV cache."""

    name: str
    layout: str
    help: str


'''


def emit(spec_dir: Path) -> dict[str, str]:
    """The module with OPERATIONS, GROUPS, BACKENDS and PLATFORMS, and the page for people."""
    file = YamlFile(spec_dir / "kernels.yaml")
    _check(file)
    return {"kernels.py": _module(file.data), "docs/kernels.md": _page(file.data)}


def _check(file: YamlFile) -> None:
    data = file.data
    for platform, order in data["platforms"].items():
        for index, backend in enumerate(order):
            if backend not in data["backends"]:
                raise file.error(f"unknown backend {backend!r}", "platforms", platform, index)
    for name, group in data["groups"].items():
        if group.get("same") not in _SAME:
            raise file.error(f"same must be one of {', '.join(_SAME)}", "groups", name)
    for name, operation in data["operations"].items():
        at = ("operations", name)
        if set(operation) != {"group", "summary", "arguments", "returns"}:
            raise file.error("an operation has group, summary, arguments and returns", *at)
        if operation["group"] not in data["groups"]:
            raise file.error(f"unknown group {operation['group']!r}", *at, "group")
        for index, argument in enumerate(operation["arguments"]):
            _check_argument(file, argument, (*at, "arguments", index))
        names = [argument["name"] for argument in operation["arguments"]]
        if len(set(names)) != len(names):
            raise file.error("an argument is named twice", *at, "arguments")
        _check_argument(file, {"name": "returns", **operation["returns"]}, (*at, "returns"))


def _check_argument(file: YamlFile, argument: dict[str, Any], at: tuple[str | int, ...]) -> None:
    for key in argument:
        if key not in _ARGUMENT_KEYS:
            raise file.error(f"{key!r} is no key of an argument", *at)
    if not str(argument.get("name", "")).isidentifier():
        raise file.error("an argument needs a name that Python can use", *at)
    if argument.get("type") not in _TYPES:
        raise file.error(f"unknown type {argument.get('type')!r}", *at)
    is_tensor = argument["type"].startswith("tensor")
    if is_tensor != ("shape" in argument and "dtypes" in argument):
        raise file.error("a tensor, and only a tensor, has shape and dtypes", *at)
    for dtype in argument.get("dtypes", ()):
        if dtype not in _DTYPES:
            raise file.error(f"unknown dtype {dtype!r}", *at)


def _argument(argument: dict[str, Any]) -> str:
    parts = []
    for key in _ARGUMENT_KEYS:
        if key in argument:
            value = tuple(map(str, argument[key])) if isinstance(argument[key], list) else argument[key]
            parts.append(f"{key}={value!r}")
    return f"Argument({', '.join(parts)})"


def _module(data: dict[str, Any]) -> str:
    text = python_header(
        "spec/kernels.yaml", "Every kernel operation, as data: its arguments, its group, the order of backends."
    )
    text += _CLASSES
    text += "PLATFORMS: dict[str, tuple[str, ...]] = {\n"
    text += "".join(f"    {name!r}: {tuple(order)!r},\n" for name, order in data["platforms"].items()) + "}\n\n"
    for label, kind in (("backends", "Backend"), ("groups", "Group")):
        text += f"{label.upper()}: dict[str, {kind}] = {{\n"
        for name, fields in data[label].items():
            given = {key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()}
            arguments = ", ".join(f"{key}={value!r}" for key, value in given.items())
            text += f"    {name!r}: {kind}(name={name!r}, {arguments}),\n"
        text += "}\n\n"
    text += "OPERATIONS: dict[str, Operation] = {\n"
    for name, operation in data["operations"].items():
        arguments = "".join(f"{_argument(argument)}, " for argument in operation["arguments"])
        returns = _argument({"name": "returns", **operation["returns"]})
        text += (
            f"    {name!r}: Operation(name={name!r}, group={operation['group']!r}, summary={operation['summary']!r}, "
        )
        text += f"arguments=({arguments}), returns={returns}),\n"
    return format_python(text + "}\n")


def _page(data: dict[str, Any]) -> str:
    text = markdown_header("spec/kernels.yaml")
    text += "# Kernel operations\n\n"
    text += (
        "A layer asks for an operation by name; `atom/model_ops/kernels/table.py` maps operation and backend to a\n"
        "function, and `select.py` chooses once at start. `ATOM_KERNELS=op=backend,...` chooses by hand. A backend\n"
        "that lacks an operation is passed over in the order below; the choice is logged.\n\n"
    )
    rows = [(f"`{name}`", " -> ".join(f"`{b}`" for b in order)) for name, order in data["platforms"].items()]
    text += markdown_table(("platform", "order"), rows) + "\n"
    rows = [(f"`{name}`", f"`{b['layout']}`", b["help"]) for name, b in data["backends"].items()]
    text += markdown_table(("backend", "KV cache layout", "what it is"), rows)
    for group, fields in data["groups"].items():
        text += f"\n## {group}\n\n{fields['help']}"
        if fields["same"] != "nothing":
            text += f" All from the same {fields['same']}."
        text += "\n\n"
        chosen = {name: op for name, op in data["operations"].items() if op["group"] == group}
        text += markdown_table(("operation", "arguments", "returns"), [_row(name, op) for name, op in chosen.items()])
    return text


def _row(name: str, operation: dict[str, Any]) -> tuple[str, str, str]:
    arguments = ", ".join(_show(argument) for argument in operation["arguments"])
    returned = operation["returns"]
    result = _show({"name": "", **returned}).strip() if "shape" in returned else returned["help"]
    return f"`{name}`: {operation['summary']}", arguments, result


def _show(argument: dict[str, Any]) -> str:
    shape = f" [{', '.join(map(str, argument['shape']))}]" if "shape" in argument else ""
    mark = " *in place*" if argument.get("in_place") else ""
    optional = " or None" if argument["type"].endswith(" or None") else ""
    note = f" ({argument['help']})" if argument.get("help") else ""
    name = f"`{argument['name']}`" if argument["name"] else ""
    return f"{name}{shape}{optional}{mark}{note}"
