"""What AITER's kernels can not do, said before they would do something else.

A refusal comes from the first step that an engine runs, at its start, and names what to change.
"""

from __future__ import annotations

import torch

from atom.model_ops.float8 import is_float8
from atom.model_ops.kernels.aiter.architecture import fp8_dtype

# Most query heads a key head that the assembled decode kernel takes.
MAX_GROUP = 16
# Of the flash layout, keys and values of 128 tokens do not fit into gfx942's 64 KiB, of 256 not into gfx950's 160.
_BLOCK_SIZES = (16, 32, 64)

_OTHER_BACKEND = "ATOM_KERNELS=attention_decode=triton"


class AiterUnsupported(ValueError):
    """A model or a setting that AITER has no kernel for."""


def require_16_bits(x: torch.Tensor, operation: str) -> None:
    """AITER's kernels compute in bfloat16 and float16."""
    if x.dtype not in (torch.bfloat16, torch.float16):
        raise AiterUnsupported(
            f"AITER has no {operation} for {_name(x.dtype)}: give --dtype bfloat16, or another backend by "
            f"ATOM_KERNELS={operation}=triton"
        )


def is_fp8(kv_cache: torch.Tensor) -> bool:
    """Whether the cache is fp8. AiterUnsupported for a type that this GPU's kernels would misread."""
    if not is_float8(kv_cache.dtype):
        return False
    if kv_cache.dtype != fp8_dtype():
        raise AiterUnsupported(
            f"the KV cache is {_name(kv_cache.dtype)}, and AITER reads {_name(fp8_dtype())} on this GPU: give "
            f"no --kv-cache-dtype fp8, or {_OTHER_BACKEND}"
        )
    return True


def require_block_size(block_size: int) -> None:
    """AITER's attention takes powers of two from 16 on, and has whole blocks in a GPU's shared memory."""
    if block_size not in _BLOCK_SIZES:
        raise AiterUnsupported(
            f"AITER's attention has no block size {block_size}: give --block-size 16, 32 or 64, or {_OTHER_BACKEND}"
        )


def require_assembled(
    num_heads: int, num_kv_heads: int, window: int | None, soft_cap: float, sinks: torch.Tensor | None
) -> None:
    """What the decode kernel of the shuffled layout leaves out; the flash layout's has it all."""
    lacking = [
        what
        for what, asked in (
            ("sliding windows", window is not None),
            ("a soft cap", soft_cap != 0.0),
            ("sinks", sinks is not None),
            (f"{num_heads // num_kv_heads} query heads a key head", num_heads > MAX_GROUP * num_kv_heads),
        )
        if asked
    ]
    if lacking:
        raise AiterUnsupported(
            f"AITER's decode kernel for blocks of 16 has no {' and no '.join(lacking)}: give --block-size 32, whose "
            f"cache layout another kernel of AITER's reads, or {_OTHER_BACKEND}"
        )


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
