"""Kernels that start while the one before them still runs: programmatic dependent launch, on Hopper and later GPUs.

The way of a kernel to the device then passes while the one before computes, and a product's weight, which depends on
no other kernel, is read meanwhile. `ATOM_EARLY_START=0` turns it off. A kernel that lets the next one start changes
nothing unless that is launched early.

Why nothing is read too early or overwritten too soon: every program of a kernel that is launched early waits for the
kernel before it to end, and for its writes, before it reads or writes anything that another kernel touches. Weights
alone are read before, which nothing writes while steps run. Hence a kernel's end means the end of all that were
launched before it: of the one before it, because it waited for that, and so on back to one that was launched as
usual, before which the device had finished everything. Whoever waits for the direct predecessor therefore waits for
all, and may also write into memory that the allocator took from any of them, in graphs as well: a graph keeps the
order of the stream, and its replay begins when what came before it has ended. The library's kernels fit in, whichever
way they are launched: one launched as usual starts when the kernel before it has ended, and one that the library
itself launches early must wait for what it reads. No kernel waits for one that can not run: the next starts only when
all programs of this one are on the device.

When a small kernel lets the next start depends on the step's rows (docs/decisions/0074). Of one or two, at once:
products by threads, whose first loads wait in registers, then begin while the product before the last ends. Of more,
after its own wait: a product by tensor cores takes much of a multiprocessor's shared memory, and one that came while
another product still ran would get what that leaves free, several programs on one multiprocessor and none on the next.
"""

from __future__ import annotations

import functools
from typing import Any

import triton
import triton.language as tl

from atom import envs

_HOPPER = 90
# When the next kernel may start, as kernels' constant EARLY says; 0 where it starts as usual.
AT_ONCE, AFTER_THE_WAIT = 1, 2
# Rows of a step in which it may at once; its products are by threads.
_ROWS_AT_ONCE = 2


def starts_early(num_rows: int = _ROWS_AT_ONCE + 1) -> int:
    """EARLY of a kernel for so many rows; without a number, for more than a few."""
    if not can_start_early():
        return 0
    return AT_ONCE if num_rows <= _ROWS_AT_ONCE else AFTER_THE_WAIT


def early_launch() -> dict[str, Any]:
    """Options of a launch that may come before the end of the kernel before it."""
    return {"launch_pdl": True} if can_start_early() else {}


@functools.cache
def can_start_early() -> bool:
    """Whether kernels are compiled and launched so in this process."""
    if not envs.ATOM_EARLY_START or triton.knobs.runtime.interpret:
        return False
    target = triton.runtime.driver.active.get_current_target()
    return bool(target.backend == "cuda" and target.arch >= _HOPPER)


@triton.jit
def let_next_start(EARLY: tl.constexpr):
    """The next kernel may start once every program of this one has come here or has ended."""
    if EARLY:
        tl.extra.cuda.gdc_launch_dependents()


@triton.jit
def wait_for_previous(EARLY: tl.constexpr):
    """Until the kernel before this one has ended and all that it wrote can be read."""
    if EARLY:
        tl.extra.cuda.gdc_wait()


@triton.jit
def fetch_early(at, EARLY: tl.constexpr):
    """Ask for the 128 bytes around each pointer, which no kernel writes, to be in the second-level cache when read."""
    if EARLY:
        tl.inline_asm_elementwise(
            "prefetch.global.L2 [$1]; mov.b32 $0, 0;", "=r,l", [at.to(tl.int64)], dtype=tl.int32, is_pure=False, pack=1
        )


@triton.jit
def take_turn(EARLY: tl.constexpr):
    """Both, first thing in a kernel that has nothing to do before."""
    if EARLY == 1:
        let_next_start(EARLY)
    wait_for_previous(EARLY)
    if EARLY == 2:
        let_next_start(EARLY)
