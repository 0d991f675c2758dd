"""What a model on a CPU wants of the machine: how many threads its products are split over, and large pages.

A thread more pays only where a product takes longer than the threads need to meet. In a small model it does not, and
where another process wants the cores, each product waits until its slowest thread is scheduled: atom-tiny, 16 sequences
beside a busy process, gave 83 tokens/s with two threads and 680 with one.

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


def use_large_pages() -> None:
    """Have torch ask for pages of 2 MB, where it is on Linux. Before its first large allocation."""
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
