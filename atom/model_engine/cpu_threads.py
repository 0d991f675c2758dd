"""How many threads the products of a CPU model are split over.

A thread more pays only where a product takes longer than the threads need to meet. In a small model it does not, and
where another process wants the cores, each product waits until its slowest thread is scheduled: atom-tiny, 16 sequences
beside a busy process, gave 83 tokens/s with two threads and 680 with one. Owns the number only.
"""

from __future__ import annotations

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
