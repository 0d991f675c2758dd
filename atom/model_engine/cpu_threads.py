"""What a model on a CPU wants of the machine: threads for its products, where, how they wait, large pages, memory kept.

A thread more pays only where a product takes longer than the threads need to meet. In a small model it does not, and
where another process wants the cores, each product waits until its slowest thread is scheduled: atom-tiny, 16 sequences
beside a busy process, gave 83 tokens/s with two threads and 680 with one.

Threads that wait for another spin, by default for some 7 ms, which is time that the other one needs when the machine is
busy: at load 6 a 0.6B model with two threads spent 906 ms of CPU on a token that takes 90. A spin of about a
millisecond outlasts what lies between two products and between two steps: with 4 sequences 52 tokens/s, as with the
default on a quiet machine, and 48 with a fifth of it.

Left alone, the system puts two of a model's threads on one core whenever others compute too, and may leave them there:
while one spins the other can not run, and a step takes many times as long as on two cores. Where a model has a thread
for every core, each keeps to its own. Beside two busy processes, alternating, a 0.6B model's first token came after
1,523 ms, and after 463 with threads bound, and the next ones 312 and 48 ms apart.

A decode step reads every weight once. In pages of 4 KB the processor spends a part of that on looking up addresses, the
larger part the busier the memory is: all linears of a 0.6B step took 72 to 105 ms on a shared machine, and 70 to 78 ms
in pages of 2 MB.

A step of prompts makes and drops a dozen tensors of megabytes a layer. By default glibc gives the system back what
is free at the end of its memory, and page after page is cleared when the next layer wants it again: 16 prompts of 127
tokens took 5.4 to 5.7 s, 26,000 pages cleared, and 5.2 to 5.4 with freed memory kept. Knows no tensors.
"""

from __future__ import annotations

import ctypes
import os
import sys

from atom import envs
from atom.hf_config import HFConfig

# Weights of a layer's largest product below which one thread does it: atom-tiny has 0.2 million, a 0.6B model 3.
SMALL_PRODUCT = 1 << 20


def num_cpu_threads(hf: HFConfig, available: int) -> int:
    """Threads to use, `available` at most unless ATOM_CPU_THREADS asks for another number."""
    chosen: int = envs.ATOM_CPU_THREADS
    if chosen:
        return chosen
    return 1 if hf.hidden_size * hf.intermediate_size < SMALL_PRODUCT else available


# Read by libgomp and by torch when they are loaded. What the user has set stays.
_ENVIRONMENT = {"GOMP_SPINCOUNT": "50000", "THP_MEM_ALLOC_ENABLE": "1"}
_BOUND = {"OMP_PROC_BIND": "true", "OMP_PLACES": "cores"}
# Any of these says where threads go, or how many there are.
_OWN_CHOICE = ("OMP_PROC_BIND", "OMP_PLACES", "OMP_NUM_THREADS", "GOMP_CPU_AFFINITY", "KMP_AFFINITY")
# A machine has a GPU where one of these is, as far as can be told before torch is there: NVIDIA's, AMD's, Windows'.
_GPU_FILES = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")


def has_thread_for_each_core(hf: HFConfig, device: str) -> bool:
    """Whether the model will compute on the CPU, with a thread for each core. device: auto, cpu or cuda."""
    if device == "cuda" or (device == "auto" and any(map(os.path.exists, _GPU_FILES))):
        return False
    num_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    return num_cores > 1 and num_cpu_threads(hf, num_cores) == num_cores


def prepare_environment(bind_threads: bool = False) -> None:
    """Ask for short spins, and for pages of 2 MB where memory comes in large pieces. Before torch is imported.

    bind_threads: each thread to a core of its own, for a model with as many threads as there are cores; two models with
    fewer would keep to the same ones. Only in a process of the engine's own: whoever else uses torch's threads there,
    and whatever is started from them, would be bound as well.
    """
    wanted = dict(_ENVIRONMENT)
    if bind_threads and not any(name in os.environ for name in _OWN_CHOICE):
        wanted |= _BOUND
    for name, value in wanted.items():
        os.environ.setdefault(name, value)


# glibc's numbers of what mallopt sets, its limits on them among others: a thread's memory comes in pieces of 64 MB, so
# that larger tensors are the system's in any case.
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4
_KEPT_BYTES, _PIECE_BYTES = 1 << 30, 64 << 20


def keep_freed_memory() -> bool:
    """Let the process keep up to a gigabyte of freed memory for its next steps; False where that can not be asked for.

    To be called when the weights are loaded, of which nothing is to be kept. What the user has set for malloc stays.
    """
    is_set = any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in os.environ)
    if is_set or not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # other C libraries than glibc have none
    if mallopt is None:
        return False
    settings = {_M_MMAP_MAX: 0, _M_TRIM_THRESHOLD: _KEPT_BYTES, _M_TOP_PAD: _PIECE_BYTES}
    return all(mallopt(name, value) == 1 for name, value in settings.items())
