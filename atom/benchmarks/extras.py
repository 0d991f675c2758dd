"""Packages that only the benchmarks need, imported where they are used.

Owns the error that names the extra. They come with `pip install 'atom[bench]'`; serving does not need them.
"""

from __future__ import annotations

import importlib
from typing import Any


class MissingExtraError(RuntimeError):
    """A package of the `bench` extra is not installed; the message says how to get it."""


def need(package: str, purpose: str) -> Any:
    """The module `package`. Raises MissingExtraError, which names `purpose` and the extra."""
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package.partition(".")[0]:
            raise
        raise MissingExtraError(
            f"{purpose} needs the package {error.name}, which comes with the bench extra: pip install 'atom[bench]'"
        ) from None
