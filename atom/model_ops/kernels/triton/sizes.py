"""Arithmetic of sizes on the host, in plain Python: Triton's functions of these names take 2 us a call."""

from __future__ import annotations


def next_power_of_2(size: int) -> int:
    """The smallest power of 2 that is not below `size`, which is positive."""
    return 1 << (size - 1).bit_length()


def cdiv(size: int, part: int) -> int:
    """Parts that hold `size`, the last of them perhaps not full."""
    return -(-size // part)
