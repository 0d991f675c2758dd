"""Reading a spec file so that every complaint can name its line.

Owns YAML with duplicate keys refused and a line for every node, and `SpecError`. Knows no contract.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

NodePath = tuple[str | int, ...]


class SpecError(Exception):
    """A spec file that says something wrong. `str()` is `file:line: message`."""

    def __init__(self, path: Path, line: int, message: str) -> None:
        super().__init__(f"{path}:{line}: {message}")
        self.path = path
        self.line = line


class YamlFile:
    """A parsed YAML file. `data` is plain Python; `line_of` gives the 1-based line of any node in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines: dict[NodePath, int] = {(): 1}
        loader = yaml.SafeLoader(path.read_text(encoding="utf-8"))
        try:
            root = loader.get_single_node()
            self.data: Any = None if root is None else self._construct(loader, root, ())
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark
            raise SpecError(path, mark.line + 1 if mark else 1, str(error.problem or error)) from error
        finally:
            loader.dispose()

    def line_of(self, *node_path: str | int) -> int:
        """The line of the node, or of its nearest ancestor that exists."""
        while node_path not in self._lines:
            node_path = node_path[:-1]
        return self._lines[node_path]

    def error(self, message: str, *node_path: str | int) -> SpecError:
        """A complaint about the node; to be raised by the caller."""
        return SpecError(self.path, self.line_of(*node_path), message)

    def _construct(self, loader: yaml.SafeLoader, node: yaml.Node, at: NodePath) -> Any:
        self._lines.setdefault(at, node.start_mark.line + 1)
        if isinstance(node, yaml.SequenceNode):
            return [self._construct(loader, child, (*at, i)) for i, child in enumerate(node.value)]
        if not isinstance(node, yaml.MappingNode):
            return loader.construct_object(node)
        mapping: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = loader.construct_object(key_node)
            line = key_node.start_mark.line + 1
            if not isinstance(key, str | int):
                raise SpecError(self.path, line, f"key {key!r} must be a string")
            if key in mapping:
                raise SpecError(self.path, line, f"key {key!r} is given twice")
            self._lines[(*at, key)] = line
            mapping[key] = self._construct(loader, value_node, (*at, key))
        return mapping
