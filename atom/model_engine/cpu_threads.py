"""What a model on a CPU wants of the machine: how many threads its products are split over, how they wait, large pages.

A thread more pays only where a product takes longer than the threads need to meet. In a small model it does not, and
where another process wants the cores, each product waits until its slowest thread is scheduled: atom-tiny, 16 sequences
beside a busy process, gave 83 tokens/s with two threads and 680 with one.

Threads that wait for another spin, by default for some 7 ms, which is time that the other one needs when the machine is
busy: at load 6 a 0.6B model with two threads spent 906 ms of CPU on a token that takes 90. A spin of about a
millisecond outlasts what lies between two products and between two steps: with 4 sequences 52 tokens/s, as with the
default on a quiet machine, and 48 with a fifth of it.

A decode step reads every weight once. In pages of 4 KB the processor spends a part of that on looking up addresses, the
larger part the busier the memory is: all linears of a 0.6B step took 72 to 105 ms on a shared machine, and 70 to 78 ms
in pages of 2 MB. Knows no tensors.
"""

from __future__ import annotations

import os

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


def prepare_environment() -> None:
    """Ask for short spins, and for pages of 2 MB where memory comes in large pieces. Before torch is imported."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
