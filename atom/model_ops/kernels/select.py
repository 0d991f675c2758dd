"""Choosing a backend for every operation, once at start.

Owns the order of preference, the rules of groups (one KV cache layout, one form of packed weights) and ATOM_KERNELS.
Knows no operation by name; layers take the functions from `Kernels` when they are built.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from atom_spec.kernels import BACKENDS, GROUPS, OPERATIONS, PLATFORMS

from atom.model_ops.kernels.table import TABLE

logger = logging.getLogger(__name__)

Function = Callable[..., Any]


@dataclass(frozen=True)
class Kernels:
    """The functions in use. `choice` maps operation to backend; `kernels["rms_norm"]` is the function."""

    platform: str
    choice: dict[str, str]
    functions: dict[str, Function]

    def __getitem__(self, operation: str) -> Function:
        return self.functions[operation]


class _Importer:
    """Imports a backend's functions, remembering why one can not be had."""

    def __init__(self, table: Mapping[str, Mapping[str, str]]) -> None:
        self._table = table
        self._known: dict[tuple[str, str], Function | str] = {}

    def find(self, operation: str, backend: str) -> Function | str:
        """The function, or the reason why there is none."""
        key = (operation, backend)
        if key not in self._known:
            self._known[key] = self._import(operation, backend)
        return self._known[key]

    def _import(self, operation: str, backend: str) -> Function | str:
        target = self._table.get(operation, {}).get(backend)
        if target is None:
            return "not implemented"
        module, _, function = target.partition(":")
        try:
            found: Function = getattr(importlib.import_module(module), function)
        except (Exception, SystemExit) as error:
            # A vendor's package may raise anything at import, SystemExit included, on a machine it was not made for.
            return f"{type(error).__name__}: {error}".splitlines()[0]
        return found


def select_kernels(platform: str, overrides: str = "", table: Mapping[str, Mapping[str, str]] = TABLE) -> Kernels:
    """Resolve every operation for `platform` (rocm, cuda or cpu). `overrides` is the text of ATOM_KERNELS.

    Raises ValueError for a platform, operation or backend that does not exist, for an override that can not be had, and
    when some operation has no implementation.
    """
    if platform not in PLATFORMS:
        raise ValueError(f"unknown platform {platform!r}; known are {', '.join(PLATFORMS)}")
    wanted = parse_overrides(overrides)
    importer = _Importer(table)
    choice: dict[str, str] = {}
    for group in GROUPS:
        operations = [name for name, operation in OPERATIONS.items() if operation.group == group]
        choice.update(_select_group(group, operations, PLATFORMS[platform], wanted, importer))
    functions: dict[str, Function] = {}
    for operation, backend in choice.items():
        function = importer.find(operation, backend)
        assert not isinstance(function, str)
        functions[operation] = function
    _log(platform, choice, importer)
    return Kernels(platform, choice, functions)


def parse_overrides(text: str) -> dict[str, str]:
    """`op=backend,op=backend` as a dict; `all=backend` names every operation. Raises ValueError on anything else."""
    wanted: dict[str, str] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        operation, separator, backend = (piece.strip() for piece in item.partition("="))
        if not separator or backend not in BACKENDS:
            raise ValueError(f"ATOM_KERNELS: {item!r} is not OPERATION=BACKEND with one of {', '.join(BACKENDS)}")
        if operation == "all":
            wanted.update(dict.fromkeys(OPERATIONS, backend))
        elif operation in OPERATIONS:
            wanted[operation] = backend
        else:
            raise ValueError(f"ATOM_KERNELS: no operation {operation!r}; there are {', '.join(OPERATIONS)}")
    return wanted


def _select_group(
    group: str, operations: list[str], order: tuple[str, ...], wanted: Mapping[str, str], importer: _Importer
) -> dict[str, str]:
    """A backend an operation. Where the group shares something, the first kind that all operations have wins."""
    same = GROUPS[group].same
    if same == "nothing":
        return _first(operations, order, set(BACKENDS), wanted, importer)
    candidates = dict.fromkeys([*(wanted[name] for name in operations if name in wanted), *order])
    # A backend that is named is for the operations beside too, though the platform does not look for it.
    order = tuple(dict.fromkeys([*order, *candidates]))
    problem: ValueError | None = None
    for kind in dict.fromkeys(_kind(backend, same) for backend in candidates):
        of_kind = {backend for backend in BACKENDS if _kind(backend, same) == kind}
        try:
            return _first(operations, order, of_kind, wanted, importer)
        except ValueError as error:
            problem = problem or error
    raise problem or ValueError(f"no backend for the operations of group {group}")


def _kind(backend: str, same: str) -> str:
    return BACKENDS[backend].layout if same == "layout" else backend


def _first(
    operations: Iterable[str],
    order: tuple[str, ...],
    allowed: set[str],
    wanted: Mapping[str, str],
    importer: _Importer,
) -> dict[str, str]:
    choice: dict[str, str] = {}
    for name in operations:
        backends = (wanted[name],) if name in wanted else order
        reasons = {backend: importer.find(name, backend) for backend in backends if backend in allowed}
        usable = [backend for backend, found in reasons.items() if not isinstance(found, str)]
        if not usable:
            why = "; ".join(f"{backend}: {reason}" for backend, reason in reasons.items())
            forced = f"ATOM_KERNELS asks for {name}={wanted[name]}, but " if name in wanted else ""
            raise ValueError(
                f"{forced}no usable kernel for {name} ({why or 'its backend shares no layout with its group'})"
            )
        choice[name] = usable[0]
    return choice


def _log(platform: str, choice: Mapping[str, str], importer: _Importer) -> None:
    by_backend: dict[str, list[str]] = {}
    for operation, backend in choice.items():
        by_backend.setdefault(backend, []).append(operation)
    for backend, operations in by_backend.items():
        logger.info("kernels on %s: %s does %s", platform, backend, ", ".join(operations))
    preferred = PLATFORMS[platform][0]
    for operation, backend in choice.items():
        if backend != preferred:
            why = importer.find(operation, preferred)
            logger.info(
                "kernels: %s by %s, not %s: %s",
                operation,
                backend,
                preferred,
                why if isinstance(why, str) else "override or layout",
            )
