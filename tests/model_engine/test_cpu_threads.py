"""How many threads a CPU model computes with, and what is asked of torch, libgomp and glibc."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys

import psutil
import pytest

from atom.config import Config
from atom.model_engine.cpu_threads import (
    has_thread_for_each_core,
    keep_freed_memory,
    num_cpu_threads,
    prepare_environment,
)


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


@pytest.mark.parametrize(("threads", "device", "bound"), [(4, "cpu", True), (3, "cpu", False), (4, "cuda", False)])
def test_threads_are_to_be_bound_where_there_is_one_for_each_core(
    threads: int, device: str, bound: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(4)), raising=False)
    monkeypatch.setenv("ATOM_CPU_THREADS", str(threads))
    assert has_thread_for_each_core(Config.resolve("atom-tiny").hf, device) is bound


# Says which cores the thread that computes may use, which the thread that helps it, and which the others.
CORES = """
import json, os, sys, threading
from atom.model_engine.cpu_threads import prepare_environment
prepare_environment(bind_threads=sys.argv[1] == "bound")
threads = lambda: {int(name) for name in os.listdir("/proc/self/task")}
found = []
def work():
    import torch
    torch.set_num_threads(2)
    before = threads()
    torch.ones(1 << 22).add_(1)
    (helper,) = threads() - before
    found.extend(sorted(os.sched_getaffinity(thread)) for thread in (0, helper))
thread = threading.Thread(target=work)
thread.start()
thread.join()
print(json.dumps([*found, sorted(os.sched_getaffinity(0))]))
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="threads are listed on Linux only")
@pytest.mark.skipif((psutil.cpu_count(logical=False) or 1) < 2, reason="there is one core only")
def test_bound_threads_keep_to_cores_of_their_own_and_others_do_not() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_", "KMP_"))}

    def cores(how: str) -> list[set[int]]:
        command = [sys.executable, "-c", CORES, how]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return [set(each) for each in json.loads(done.stdout)]

    all_cores = set(os.sched_getaffinity(0))
    assert cores("free") == [all_cores] * 3
    its_own, helpers, others = cores("bound")
    assert its_own and helpers and not its_own & helpers
    assert others == all_cores


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
