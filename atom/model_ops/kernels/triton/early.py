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

Forms differ in when a small kernel lets the next start, and in whether a product asks for its weight before it waits:
one that starts while the product before the last still runs has it in the second-level cache so early that the other's
may replace it there.
"""

from __future__ import annotations

import functools
from typing import Any

import triton
import triton.language as tl

from atom import envs

_HOPPER = 90
# 1: at once, and weights are asked for. 2: after the wait, and weights are asked for. 3: at once, and they are not.
FORM = 1


@functools.cache
def starts_early() -> int:
    """The form in which kernels are compiled and launched so in this process; 0 where they are not."""
    if not envs.ATOM_EARLY_START or triton.knobs.runtime.interpret:
        return 0
    target = triton.runtime.driver.active.get_current_target()
    return FORM if target.backend == "cuda" and target.arch >= _HOPPER else 0


def early_launch() -> dict[str, Any]:
    """Options of a launch that may come before the end of the kernel before it."""
    return {"launch_pdl": True} if starts_early() else {}


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
    if EARLY == 1 or EARLY == 2:
        tl.inline_asm_elementwise(
            "prefetch.global.L2 [$1]; mov.b32 $0, 0;", "=r,l", [at.to(tl.int64)], dtype=tl.int32, is_pure=False, pack=1
        )


@triton.jit
def take_turn(EARLY: tl.constexpr):
    """Both, first thing in a kernel that has nothing to do before."""
    if EARLY != 2:
        let_next_start(EARLY)
    wait_for_previous(EARLY)
    if EARLY == 2:
        let_next_start(EARLY)
