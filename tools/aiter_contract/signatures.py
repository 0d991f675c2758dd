"""What a definition's text says of its parameters, and of the compiled function behind a stub.

A default is kept as source text, since it may be a name that only the library knows.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Sequence
from dataclasses import dataclass

from atom_spec.aiter import Parameter

from tools.aiter_contract.resolve import Found

_STUB_DECORATOR = "compile_ops"
_BINDING = re.compile(r'm\.def\(\s*"(\w+)"')
_ARGUMENT = re.compile(r'py::arg\("(\w+)"\)')


@dataclass(frozen=True)
class Source:
    """A callable as the wheel's source has it. binding: the compiled function that a stub loads, None without one."""

    parameters: tuple[Parameter, ...]
    has_variadic: bool
    place: str
    binding: str | None


def read_source(found: Found) -> Source:
    """Parameters of a function, a method, or a class's __init__."""
    node, is_method = found.node, found.is_method
    place = f"{found.file}:{node.lineno}"
    if isinstance(node, ast.ClassDef):
        inits = [n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"]
        if not inits:
            return Source((), False, place, None)
        node, is_method = inits[-1], True
    positional = [*node.args.posonlyargs, *node.args.args]
    defaults = [None] * (len(positional) - len(node.args.defaults)) + list(node.args.defaults)
    parameters = [_parameter(a, d, False) for a, d in zip(positional, defaults, strict=True)][1 if is_method else 0 :]
    parameters += [_parameter(a, d, True) for a, d in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)]
    variadic = node.args.vararg is not None or node.args.kwarg is not None
    return Source(tuple(parameters), variadic, place, _binding(node))


def _parameter(argument: ast.arg, default: ast.expr | None, keyword_only: bool) -> Parameter:
    return Parameter(argument.arg, None if default is None else ast.unparse(default), keyword_only)


def _binding(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str | None:
    """Name of the compiled function: the decorator's `fc_name`, or the stub's own."""
    for decorator in node.decorator_list:
        if not isinstance(decorator, ast.Call) or getattr(decorator.func, "id", "") != _STUB_DECORATOR:
            continue
        named = [keyword.value for keyword in decorator.keywords if keyword.arg == "fc_name"]
        given = next(iter([*named, *decorator.args[1:2]]), None)
        return str(given.value) if isinstance(given, ast.Constant) and given.value else node.name
    return None


def signature(parameters: Sequence[Parameter]) -> inspect.Signature:
    """The parameters as Python's own object; a default is its source text."""
    kinds = {False: inspect.Parameter.POSITIONAL_OR_KEYWORD, True: inspect.Parameter.KEYWORD_ONLY}
    made = []
    for parameter in parameters:
        default = inspect.Parameter.empty if parameter.default is None else parameter.default
        made.append(inspect.Parameter(parameter.name, kinds[parameter.keyword_only], default=default))
    return inspect.Signature(made)


def written(parameters: Sequence[Parameter]) -> str:
    """The parameters as spec/aiter writes them."""
    parts = []
    starred = False
    for parameter in parameters:
        if parameter.keyword_only and not starred:
            parts.append("*")
            starred = True
        parts.append(parameter.name if parameter.default is None else f"{parameter.name}={parameter.default}")
    return ", ".join(parts)


def bindings(text: str) -> dict[str, tuple[str, ...]]:
    """Every `m.def` of a binding header: the compiled name and its arguments' names, none where it names none."""
    joined = text.replace("\\\n", "\n")
    starts = list(_BINDING.finditer(joined))
    ends = [match.start() for match in starts[1:]] + [len(joined)]
    found = {}
    for match, limit in zip(starts, ends, strict=True):
        entry = joined[match.end() : limit].partition(");")[0]
        found[match[1]] = tuple(_ARGUMENT.findall(entry))
    return found
