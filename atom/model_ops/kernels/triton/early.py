"""Kernels that start while the one before them still runs: programmatic dependent launch, on Hopper and later GPUs.

The way of a kernel to the device then passes while the one before computes, and a product's weight, which depends on no
other kernel, is read meanwhile. `ATOM_EARLY_START` turns it on. A kernel that lets the next one start changes nothing
unless that is launched early. Every program of a kernel that is launched early waits for the kernel before it to end,
before it reads or writes anything that another kernel touches; hence what ran before that has ended, too.
"""

from __future__ import annotations

import functools
from typing import Any

import triton
import triton.language as tl

from atom import envs

_HOPPER = 90


@functools.cache
def starts_early() -> bool:
    """Whether kernels are compiled and launched so, in this process."""
    if not envs.ATOM_EARLY_START or triton.knobs.runtime.interpret:
        return False
    target = triton.runtime.driver.active.get_current_target()
    return bool(target.backend == "cuda" and target.arch >= _HOPPER)


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
    if EARLY:
        tl.inline_asm_elementwise(
            "prefetch.global.L2 [$1]; mov.b32 $0, 0;", "=r,l", [at.to(tl.int64)], dtype=tl.int32, is_pure=False, pack=1
        )


@triton.jit
def take_turn(EARLY: tl.constexpr):
    """Both, first thing in a kernel that has nothing to do before."""
    let_next_start(EARLY)
    wait_for_previous(EARLY)
