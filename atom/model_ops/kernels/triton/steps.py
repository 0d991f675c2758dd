"""Steps that all attention kernels share: products, and scores under a soft cap."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def product(a, b, PRECISION: tl.constexpr):
    """a @ b, accumulated in float32. "ieee": computed in float32 without tf32."""
    if PRECISION == "ieee":
        return tl.dot(a.to(tl.float32), b.to(tl.float32), input_precision="ieee")
    return tl.dot(a, b)


@triton.jit
def capped(scores, SOFT_CAP: tl.constexpr):
    """SOFT_CAP * tanh(scores / SOFT_CAP) of scores in units of log2; 0 leaves them as they are."""
    if SOFT_CAP > 0.0:
        # tanh(x) is 1 - 2 / (e^(2x) + 1), which is right where the power overflows, too.
        scores = SOFT_CAP * 1.4426950408889634 * (1.0 - 2.0 / (tl.exp2(scores * (2.0 / SOFT_CAP)) + 1.0))
    return scores
