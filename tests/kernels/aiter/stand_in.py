"""A package `aiter` for machines without AMD's: signatures from the contract, kernels in plain torch.

A call is bound as Python would bind it, must be one that the contract declares, is recorded, and computes what
documented.py says that the real kernel does. So a wrapper that passes an argument in a wrong place, dtype or layout
fails here as it would there, or gives wrong numbers.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
from atom_spec.aiter import CALLABLES, AiterCallable

from tests.kernels.aiter.documented import KERNELS

_WRAPPERS = "atom.model_ops.kernels.aiter"
# What a dotted name passes through that is no module.
_OBJECTS = {"aiter.tuned_gemm.tgemm", "aiter.dist.parallel_state.GroupCoordinator"}


QuantType = Enum("QuantType", ["No", "per_Tensor", "per_Token", "per_1x32", "per_1x128", "per_128x128"])


@dataclass
class StandIn:
    """What was called: names, and arguments by parameter."""

    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def names(self) -> list[str]:
        return [name for name, _ in self.calls]

    def last(self, name: str) -> dict[str, Any]:
        return [arguments for called, arguments in self.calls if called == name][-1]

    def function(self, item: AiterCallable) -> Callable[..., Any]:
        signature = _signature(item)
        declared = {(call.positional, frozenset(call.keywords)) for call in item.calls}

        def kernel(*args: Any, **kwargs: Any) -> Any:
            bound = signature.bind(*args, **kwargs)
            made = (tuple(list(signature.parameters)[: len(args)]), frozenset(kwargs))
            assert made in declared, f"{item.name}: the contract does not declare the call {made}"
            bound.apply_defaults()
            self.calls.append((item.name, dict(bound.arguments)))
            return KERNELS[item.name](**bound.arguments)

        kernel.__signature__ = signature  # type: ignore[attr-defined]  # what inspect.signature looks for
        return kernel


def _signature(item: AiterCallable) -> inspect.Signature:
    parameters = []
    for parameter in item.parameters:
        kind = inspect.Parameter.KEYWORD_ONLY if parameter.keyword_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
        default = inspect.Parameter.empty if parameter.default is None else _value(parameter.default)
        parameters.append(inspect.Parameter(parameter.name, kind, default=default))
    return inspect.Signature(parameters)


def _value(source: str) -> Any:
    """A default's value; one that only AITER knows stays text, but for the kinds of scales."""
    if source.startswith("QuantType."):
        return QuantType[source.partition(".")[2]]
    try:
        return ast.literal_eval(source)
    except ValueError:
        return source


def _package(stand_in: StandIn, moved: bool) -> dict[str, Any]:
    """Modules by name. moved: callables are at their newer homes only."""
    modules: dict[str, Any] = {}
    for item in CALLABLES.values():
        name = item.homes[0] if moved and item.homes else item.name
        parts = name.split(".")
        for length in range(1, len(parts)):
            path = ".".join(parts[:length])
            if path not in modules:
                modules[path] = SimpleNamespace() if path in _OBJECTS else ModuleType(path)
                if path not in _OBJECTS:
                    modules[path].__spec__ = ModuleSpec(path, None, is_package=True)
                    modules[path].__path__ = []
                if length > 1:
                    setattr(modules[".".join(parts[: length - 1])], parts[length - 1], modules[path])
        setattr(modules[".".join(parts[:-1])], parts[-1], stand_in.function(item))
    return {name: module for name, module in modules.items() if name not in _OBJECTS}


def _drop(*packages: str) -> dict[str, ModuleType]:
    """Take the packages out of sys.modules."""
    names = [n for n in sys.modules if any(n == p or n.startswith(p + ".") for p in packages)]
    return {name: sys.modules.pop(name) for name in names}


@contextmanager
def installed(gfx: str = "gfx942", moved: bool = False) -> Iterator[StandIn]:
    """The stand-in as `aiter`, on a machine that looks like ROCm with that GPU; our wrappers are imported anew."""
    stand_in = StandIn()
    kept, hip = _drop("aiter", _WRAPPERS), torch.version.hip
    sys.modules.update(_package(stand_in, moved))
    torch.version.hip = "a stand-in"
    try:
        architecture = importlib.import_module(f"{_WRAPPERS}.architecture")
        architecture.gfx_name = lambda: gfx
        yield stand_in
    finally:
        torch.version.hip = hip
        _drop("aiter", _WRAPPERS)
        sys.modules.update(kept)
