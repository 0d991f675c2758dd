"""From a dotted name that a program would import to the `def` or `class` behind it, by reading alone.

Owns Python's rules as far as a library's package uses them: modules, packages, `from x import y as z`, star imports,
`name = other`, `name = Class()`, methods. A name that is bound twice in a module is what the last binding makes it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tools.aiter_contract.tree import SourceTree

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Found:
    """A definition, the file that holds it, and whether it is a method, whose first parameter callers do not pass."""

    file: str
    node: Definition
    is_method: bool = False


@dataclass(frozen=True)
class _Module:
    name: str
    file: str
    body: list[ast.stmt]

    def package_of(self, level: int) -> str:
        """What `level` dots stand for in an import of this module."""
        parts = self.name.split(".")
        keep = len(parts) - level + (1 if self.file.endswith("/__init__.py") else 0)
        return ".".join(parts[:keep])


class Resolver:
    """Finds definitions in one tree; a module is parsed once."""

    def __init__(self, tree: SourceTree) -> None:
        self._tree = tree
        self._modules: dict[str, _Module | None] = {}

    def find(self, dotted: str) -> Found | None:
        """The definition of `package.module.name` or `package.module.name.method`, None when there is none."""
        parts = dotted.split(".")
        # The longest module first: `aiter.fused_moe.fused_moe` is a function of a module of that name.
        for length in range(len(parts) - 1, 0, -1):
            module = self._module(".".join(parts[:length]))
            if module is not None:
                return self._member(module, parts[length:])
        return None

    def _member(self, module: _Module, path: list[str]) -> Found | None:
        found = self._name(module, path[0], frozenset())
        for name in path[1:]:
            if found is None or not isinstance(found.node, ast.ClassDef):
                return None
            methods = [n for n in found.node.body if isinstance(n, ast.FunctionDef) and n.name == name]
            found = Found(found.file, methods[-1], is_method=True) if methods else None
        return found

    def _module(self, name: str) -> _Module | None:
        if name not in self._modules:
            base = name.replace(".", "/")
            file = next((f for f in (f"{base}/__init__.py", f"{base}.py") if self._tree.has(f)), None)
            self._modules[name] = _Module(name, file, ast.parse(self._tree.text(file)).body) if file else None
        return self._modules[name]

    def _name(self, module: _Module, name: str, seen: frozenset[tuple[str, str]]) -> Found | None:
        if (module.name, name) in seen:
            return None
        seen = seen | {(module.name, name)}
        found: Found | None = None
        for statement in _statements(module.body):
            if isinstance(statement, Definition) and statement.name == name:
                found = Found(module.file, statement)
            elif isinstance(statement, ast.ImportFrom):
                found = self._imported(module, statement, name, seen) or found
            elif isinstance(statement, ast.Assign) and name in _targets(statement):
                found = self._assigned(module, statement.value, seen)
        return found

    def _imported(
        self, module: _Module, statement: ast.ImportFrom, name: str, seen: frozenset[tuple[str, str]]
    ) -> Found | None:
        base = module.package_of(statement.level) if statement.level else ""
        source = self._module(".".join(filter(None, (base, statement.module))))
        if source is None:
            return None
        for alias in statement.names:
            if alias.name == "*" and not name.startswith("_"):
                found = self._name(source, name, seen)
                if found is not None:
                    return found
            elif (alias.asname or alias.name) == name:
                return self._name(source, alias.name, seen)
        return None

    def _assigned(self, module: _Module, value: ast.expr, seen: frozenset[tuple[str, str]]) -> Found | None:
        """`name = other` and `name = Class()`."""
        if isinstance(value, ast.Call):
            value = value.func
        return self._name(module, value.id, seen) if isinstance(value, ast.Name) else None


def _targets(statement: ast.Assign) -> set[str]:
    return {target.id for target in statement.targets if isinstance(target, ast.Name)}


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """A module's statements in order, those inside `if` and `try` too: which branch runs is not known."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If):
            yield from _statements([*statement.body, *statement.orelse])
        elif isinstance(statement, ast.Try):
            handlers = [inner for handler in statement.handlers for inner in handler.body]
            yield from _statements([*statement.body, *handlers, *statement.orelse, *statement.finalbody])
