"""How many threads a CPU model computes with, and what is asked of torch, libgomp and glibc."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from atom.config import Config
from atom.model_engine.cpu_threads import keep_freed_memory, num_cpu_threads, prepare_environment


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


# Writes forty megabytes again and again, in a thread as the model's is, and tells how many pages were cleared for it.
FAULTS = """
import resource, sys, threading
from atom.model_engine.cpu_threads import keep_freed_memory
assert sys.argv[1] == "plain" or keep_freed_memory()
def work():
    faults = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        b"x" * (40 << 20)
        faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    print(faults[-1])
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="mallopt is glibc's")
@pytest.mark.parametrize(("how", "cleared"), [("plain", True), ("kept", False)])
def test_freed_memory_is_used_again(how: str, cleared: bool) -> None:
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_TUNABLES"))}
    command = [sys.executable, "-c", FAULTS, how]
    done = subprocess.run(command, env=plain, capture_output=True, text=True, check=True)
    assert (int(done.stdout) > 10) is cleared  # 10,240 pages of 4 KB, or 20 of 2 MB


def test_what_the_user_has_set_for_malloc_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "131072")
    assert not keep_freed_memory()
