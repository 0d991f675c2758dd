"""AITER's callables, by the names of the contract (atom_spec.aiter).

Owns the import of the package, which may raise anything on a machine that it was not made for, and the choice among a
callable's homes in different versions. What the contract does not hold can not be had from here: what is called has
been checked.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import logging
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from atom_spec.aiter import CALLABLES, FP8_DTYPES, PACKAGE, VERSION

from atom.model_ops.kernels.aiter import architecture

logger = logging.getLogger(__name__)


class AiterUnavailable(ImportError):
    """AITER, or a callable of it, can not be used here; `select` then passes the backend over."""


def load(name: str) -> Callable[..., Any]:
    """The callable of that name in the contract. Raises AiterUnavailable; KeyError for a name that is not there."""
    item = CALLABLES[name]
    reason = _why_unusable()
    if reason is not None:
        raise AiterUnavailable(reason)
    for home in (item.name, *item.homes):
        found = _lookup(home)
        if found is not None:
            return found
    raise AiterUnavailable(f"{PACKAGE} {_version()} has no {name}")


@cache
def _why_unusable() -> str | None:
    """Why the package can not be used, None when it can. Asked once: a failing import may try to compile first."""
    if torch.version.hip is None:
        return "this torch is not built for ROCm"
    gfx = architecture.gfx_name()
    if gfx not in FP8_DTYPES:
        return f"AITER has kernels for {', '.join(FP8_DTYPES)}, and this GPU is {gfx}"
    if importlib.util.find_spec("aiter") is None:
        return f"{PACKAGE} is not installed"
    try:
        importlib.import_module("aiter")
    except (Exception, SystemExit) as error:
        return f"{PACKAGE} can not be imported: {type(error).__name__}: {error}"
    if _version() != VERSION:
        logger.warning("AITER is %s; its calls are checked against %s (docs/aiter.md)", _version(), VERSION)
    return None


def _lookup(dotted: str) -> Callable[..., Any] | None:
    """The object at the end of the longest module path, None when there is none."""
    parts = dotted.split(".")
    for length in range(len(parts) - 1, 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for name in parts[length:]:
            found = getattr(found, name, None)
        return found if callable(found) else None
    return None


def _version() -> str:
    try:
        return importlib.metadata.version(PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        return "of unknown version"
