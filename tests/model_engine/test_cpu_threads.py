"""How many threads a CPU model computes with, and what is asked of torch and libgomp before they are loaded."""

from __future__ import annotations

import os

import pytest

from atom.config import Config
from atom.model_engine.cpu_threads import num_cpu_threads, prepare_environment


def test_a_small_model_computes_with_one_thread() -> None:
    assert num_cpu_threads(Config.resolve("atom-tiny").hf, available=8) == 1


def test_the_variable_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATOM_CPU_THREADS", "3")
    assert num_cpu_threads(Config.resolve("atom-tiny").hf, available=8) == 3


def test_a_negative_number_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATOM_CPU_THREADS", "-1")
    with pytest.raises(ValueError, match="ATOM_CPU_THREADS"):
        num_cpu_threads(Config.resolve("atom-tiny").hf, available=8)


def test_what_the_user_has_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOMP_SPINCOUNT", "7")
    monkeypatch.delenv("THP_MEM_ALLOC_ENABLE", raising=False)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    prepare_environment()
    assert (os.environ["GOMP_SPINCOUNT"], os.environ["THP_MEM_ALLOC_ENABLE"]) == ("7", "1")
