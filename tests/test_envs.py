"""The reader of ATOM_* variables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from atom_spec.settings import ENVIRONMENT

from atom import envs


def test_values_are_read_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ATOM_KERNELS", raising=False)
    assert envs.ATOM_KERNELS is None
    monkeypatch.setenv("ATOM_KERNELS", "rope=reference")
    assert envs.ATOM_KERNELS == "rope=reference"
    monkeypatch.setenv("ATOM_KERNELS", "")
    assert envs.ATOM_KERNELS is None


def test_wrong_values_name_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATOM_PROFILER_TIMEOUT", "soon")
    with pytest.raises(ValueError, match="ATOM_PROFILER_TIMEOUT: 'soon' is not a number"):
        _ = envs.ATOM_PROFILER_TIMEOUT
    with pytest.raises(ValueError, match="ATOM_PROFILER_TIMEOUT: 'soon' is not a number"):
        envs.check_all()
    monkeypatch.setenv("ATOM_PROFILER_TIMEOUT", "1.5")
    envs.check_all()
    for text, value in [("1", True), ("off", False)]:
        monkeypatch.setenv("ATOM_PROFILER_MORE", text)
        assert envs.ATOM_PROFILER_MORE is value


def test_a_variable_of_a_feature_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    variable = replace(envs._VARIABLES["ATOM_PROFILER_MORE"], refuse="nobody has built it")
    monkeypatch.setitem(envs._VARIABLES, "ATOM_PROFILER_MORE", variable)
    monkeypatch.setenv("ATOM_PROFILER_MORE", "1")
    with pytest.raises(ValueError, match="ATOM_PROFILER_MORE=1: nobody has built it"):
        _ = envs.ATOM_PROFILER_MORE


def test_undeclared_variables_do_not_exist() -> None:
    unknown: Any = envs
    with pytest.raises(AttributeError, match="ATOM_NO_SUCH"):
        _ = unknown.ATOM_NO_SUCH


def test_the_declared_types_are_those_of_the_table() -> None:
    kinds = {"string": "str | None", "path": "Path | None", "boolean": "bool", "number": "float", "integer": "int"}
    with open(envs.__file__) as source:
        text = source.read()
    for variable in ENVIRONMENT:
        assert f"    {variable.name}: {kinds[variable.type]}\n" in text
    assert text.count("    ATOM_") == len(ENVIRONMENT)
