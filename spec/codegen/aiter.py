"""spec/aiter/*.yaml -> atom_spec/aiter.py and the tables of docs/aiter-calls.md.

Owns what the contract with AITER may say: a signature and the calls are Python text, parsed here, so that a slip is an
error with its line. Knows nothing of AITER's sources; tools/aiter_contract compares the two.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from codegen.source import YamlFile
from codegen.text import format_python, markdown_header, markdown_table, python_header

_PACKAGE_KEYS = {"package", "version", "wheel", "sha256", "architectures"}
_CALLABLE_KEYS = {"signature", "calls", "caller", "homes", "note"}
_TABLE_KEYS = {"path", "file_column", "why", "rows"}
_LINE_KEYS = {"path", "text", "why"}

_CLASSES = '''
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter. default: its source text, None without one."""

    name: str
    default: str | None = None
    keyword_only: bool = False


@dataclass(frozen=True, slots=True)
class AiterCall:
    """How we call it: the parameters that our positional arguments are meant for, and the keywords."""

    positional: tuple[str, ...]
    keywords: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"({', '.join((*self.positional, *(f'{name}=' for name in self.keywords)))})"


@dataclass(frozen=True, slots=True)
class AiterCallable:
    """One callable of the wheel. homes: its names in newer versions. caller: our modules that call it, or empty."""

    name: str
    parameters: tuple[Parameter, ...]
    calls: tuple[AiterCall, ...]
    caller: str = ""
    homes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KernelTable:
    """Rows that a table of the wheel must have, each as (column, value) pairs. file_column: names the kernel's file."""

    path: str
    file_column: str
    why: str
    rows: tuple[tuple[tuple[str, str], ...], ...]


@dataclass(frozen=True, slots=True)
class SourceLine:
    """Text that a source of the wheel must hold, white space aside: a layout or a limit that we rely on."""

    path: str
    text: str
    why: str


'''


def emit(spec_dir: Path) -> dict[str, str]:
    """The module with the contract, and the page for people."""
    folder = spec_dir / "aiter"
    package = YamlFile(folder / "package.yaml")
    if set(package.data) != _PACKAGE_KEYS:
        raise package.error(f"a package has {', '.join(sorted(_PACKAGE_KEYS))}")
    areas = [YamlFile(path) for path in sorted(folder.glob("*.yaml")) if path.name != "package.yaml"]
    text = python_header(
        "spec/aiter/*.yaml", "The contract with AITER, as data: its callables, our calls, what else we rely on."
    )
    text += _CLASSES + _constants(package.data)
    text += "CALLABLES: dict[str, AiterCallable] = {\n"
    for area in areas:
        for name in area.data.get("callables", {}):
            text += f"    {name!r}: {_callable(area, name)},\n"
    text += "}\n\nTABLES: tuple[KernelTable, ...] = (\n"
    architectures = list(package.data["architectures"])
    text += "".join(f"    {table},\n" for area in areas for table in _tables(area, architectures))
    text += ")\n\nSOURCE_LINES: tuple[SourceLine, ...] = (\n"
    text += "".join(f"    {line},\n" for area in areas for line in _lines(area)) + ")\n"
    return {"aiter.py": format_python(text), "docs/aiter-calls.md": _page(package.data, areas)}


def _constants(data: dict[str, Any]) -> str:
    names = {"PACKAGE": "package", "VERSION": "version", "WHEEL": "wheel", "SHA256": "sha256"}
    text = "".join(f"{constant} = {data[key]!r}\n" for constant, key in names.items())
    dtypes = {name: fields["fp8"] for name, fields in data["architectures"].items()}
    return (
        text
        + f"# GPUs that the wheel has kernels for, and the torch dtype that fp8 is there.\nFP8_DTYPES = {dtypes!r}\n\n"
    )


def _callable(file: YamlFile, name: str) -> str:
    fields, at = file.data["callables"][name], ("callables", name)
    if not set(fields) <= _CALLABLE_KEYS or "signature" not in fields or not fields.get("calls"):
        raise file.error(f"a callable has signature, calls and perhaps {', '.join(sorted(_CALLABLE_KEYS))}", *at)
    parameters = _parameters(file, fields["signature"], at)
    calls = ", ".join(_call(file, call, parameters, (*at, "calls", i)) for i, call in enumerate(fields["calls"]))
    shown = ", ".join(_parameter(*parameter) for parameter in parameters)
    extra = "".join(
        f", {key}={tuple(fields[key]) if key == 'homes' else fields[key]!r}"
        for key in ("caller", "homes")
        if key in fields
    )
    return f"AiterCallable({name!r}, ({shown}{',' if parameters else ''}), ({calls},){extra})"


def _parameters(file: YamlFile, text: str | None, at: tuple[str, ...]) -> list[tuple[str, str | None, bool]]:
    """Name, default and keyword_only of `a, b, c=1, *, d=None`."""
    try:
        node = ast.parse(f"def f({text or ''}): ...").body[0]
    except SyntaxError as error:
        raise file.error(f"{text!r} is no parameter list: {error.msg}", *at, "signature") from None
    assert isinstance(node, ast.FunctionDef)
    arguments = node.args
    if arguments.vararg or arguments.kwarg or arguments.posonlyargs:
        raise file.error("only plain and keyword-only parameters can be declared", *at, "signature")
    defaults = [None] * (len(arguments.args) - len(arguments.defaults)) + list(arguments.defaults)
    pairs = [(a, d, False) for a, d in zip(arguments.args, defaults, strict=True)]
    pairs += [(a, d, True) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    return [(a.arg, None if d is None else ast.unparse(d), only) for a, d, only in pairs]


def _parameter(name: str, default: str | None, keyword_only: bool) -> str:
    return f"Parameter({name!r}, {default!r}, True)" if keyword_only else f"Parameter({name!r}, {default!r})"


def _call(file: YamlFile, text: str, parameters: list[tuple[str, str | None, bool]], at: tuple[str | int, ...]) -> str:
    """`a, b, c=`: two positional arguments and a keyword. All names must be the signature's."""
    words = [word.strip() for word in text.split(",")] if text else []
    positional = [word for word in words if not word.endswith("=")]
    keywords = [word[:-1] for word in words if word.endswith("=")]
    if words != [*positional, *(f"{name}=" for name in keywords)]:
        raise file.error("positional arguments come before keywords", *at)
    unknown = set(positional + keywords) - {name for name, _, _ in parameters}
    if unknown:
        raise file.error(f"the signature has no {', '.join(sorted(unknown))}", *at)
    return f"AiterCall({tuple(positional)!r}, {tuple(keywords)!r})" if keywords else f"AiterCall({tuple(positional)!r})"


def _tables(file: YamlFile, architectures: list[str]) -> list[str]:
    """A table of `{gfx}` is one an architecture."""
    made = []
    for index, table in enumerate(file.data.get("tables", [])):
        if set(table) != _TABLE_KEYS:
            raise file.error(f"a table has {', '.join(sorted(_TABLE_KEYS))}", "tables", index)
        rows = tuple(tuple((column, str(value)) for column, value in row.items()) for row in table["rows"])
        paths = [table["path"].replace("{gfx}", gfx) for gfx in architectures]
        for path in dict.fromkeys(paths):
            made.append(f"KernelTable({path!r}, {table['file_column']!r}, {table['why']!r}, {rows!r})")
    return made


def _lines(file: YamlFile) -> list[str]:
    made = []
    for index, line in enumerate(file.data.get("source_lines", [])):
        if set(line) != _LINE_KEYS:
            raise file.error(f"a line of source has {', '.join(sorted(_LINE_KEYS))}", "source_lines", index)
        made.append(f"SourceLine({line['path']!r}, {line['text']!r}, {line['why']!r})")
    return made


def _page(package: dict[str, Any], areas: list[YamlFile]) -> str:
    text = markdown_header("spec/aiter/*.yaml") + "# Calls into AITER\n\n"
    text += (
        f"What the `aiter` backend calls of `{package['package']}` {package['version']}, and what later work will "
        "([aiter.md](aiter.md)).\n`make aiter-contract` proves every row against the wheel's sources. "
        "A name with `=` is passed by keyword.\n"
    )
    for area in areas:
        rows = [
            (f"`{name}`", "<br>".join(f"`({call or ''})`" for call in fields["calls"]), fields.get("caller", "later"),
             fields.get("note", ""))
            for name, fields in area.data.get("callables", {}).items()
        ]  # fmt: skip
        if rows:
            text += f"\n## {area.data['title']}\n\n" + markdown_table(("callable", "our calls", "caller", "note"), rows)
    return text
