"""What Triton's interpreter gets wrong and a kernel here needs: rounding to 8-bit floats and to bfloat16.

Its conversion to 8 bits drops the carry of a mantissa that rounds up to the next power of two, so that 7.93 becomes 4;
that to bfloat16 cuts the bits off.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton.runtime import interpreter

_FLOAT8 = {tl.float8e4nv: torch.float8_e4m3fn, tl.float8e4b8: torch.float8_e4m3fnuz}


def round_as_a_device_does() -> None:
    """Let torch convert float32 to 8-bit floats and bfloat16, for the rest of the process."""
    builder = interpreter.InterpreterBuilder
    own = builder.create_fp_to_fp

    def convert(self: Any, source: Any, target: Any, rounding: Any) -> Any:
        if source.dtype.scalar == tl.float32 and target.scalar in _FLOAT8:
            rounded = torch.from_numpy(source.data).to(_FLOAT8[target.scalar])
            return interpreter.TensorHandle(rounded.view(torch.uint8).numpy(), target.scalar)
        return own(self, source, target, rounding)

    cast = builder.cast_impl

    def cast_by_torch(self: Any, source: Any, target: Any) -> Any:
        if source.dtype.scalar == tl.float32 and target.scalar == tl.bfloat16:
            rounded = torch.from_numpy(np.ascontiguousarray(source.data)).to(torch.bfloat16)
            return interpreter.TensorHandle(rounded.view(torch.uint16).numpy(), target.scalar)
        return cast(self, source, target)

    builder.create_fp_to_fp = convert
    builder.cast_impl = cast_by_torch
