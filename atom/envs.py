"""The only reader of ATOM_* variables.

`envs.ATOM_KERNELS` reads the variable each time, so that a test or a parent process may change it. Names, types and
defaults are those of spec/settings.yaml; a name that is not declared there is an AttributeError.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from atom_spec.settings import ENVIRONMENT, Setting

from atom.setting_values import check_value, parse_text, refusal

if TYPE_CHECKING:
    ATOM_API_KEY: str | None
    ATOM_KERNELS: str | None
    ATOM_EARLY_START: bool
    ATOM_CPU_THREADS: int
    ATOM_TORCH_PROFILER_DIR: Path | None
    ATOM_PROFILER_MORE: bool
    ATOM_PROFILER_TIMEOUT: float
    ATOM_ENABLE_DETAILED_ANNOTATION: bool

_VARIABLES = {variable.name: variable for variable in ENVIRONMENT}


def read(name: str) -> Any:
    """The value of a declared variable, its default when it is unset or empty. ValueError that names the variable."""
    variable = _VARIABLES[name]
    text = os.environ.get(name, "")
    if not text:
        return variable.default
    try:
        value = check_value(variable, parse_text(variable, text))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    reason = refusal(variable, value)
    if reason is not None:
        raise ValueError(f"{name}={text}: {reason}")
    return value


def check_all() -> None:
    """ValueError that names the first declared variable with a value that can not be used."""
    for name in _VARIABLES:
        read(name)


def default_of(setting: Setting) -> Any:
    """What holds for a flag that was not given: the variable that stands in for it, if it is set, else its default."""
    value = None if setting.env is None else read(setting.env)
    if value is None:
        return setting.default
    return tuple(filter(None, value.split(","))) if setting.repeat else value


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in _VARIABLES:
            return read(name)
        raise AttributeError(f"{name} is not declared in spec/settings.yaml")
