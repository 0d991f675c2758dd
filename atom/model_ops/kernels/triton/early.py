"""Kernels that start while the one before them still runs: programmatic dependent launch, on Hopper and later GPUs.

What a product reads of its weight depends on no other kernel, so it can be on its way while the kernel before computes.
`ATOM_EARLY_START` turns it on. A kernel that lets the next one start changes nothing unless that is launched early; one
that is launched early waits for the kernel before it to end, before it reads or writes anything that another kernel
touches. Since all that are launched early wait, whatever ran before that has ended too.
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
