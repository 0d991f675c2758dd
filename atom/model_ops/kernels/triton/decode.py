"""Decode attention over the paged cache: what of it is computed by which program, in which form.

The query heads that share a key head are the rows of one product; a program has them over a part of a sequence's keys.
decode_even.py cuts every sequence into as many parts, which is the least work where lengths are about equal.
decode_shared.py cuts long ones into more, by a plan that the device makes; its parts are found by reading that plan,
which costs a tenth where nothing is gained. Who made the step knows which it is (StepInputs.is_even).
Shapes: Td tokens, HQ/HK heads, D head size.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch
import triton.language as tl

from atom.model_ops.kernels.triton import shares
from atom.model_ops.kernels.triton.decode_even import attend_evenly
from atom.model_ops.kernels.triton.decode_shared import attend_shares
from atom.model_ops.kernels.triton.early import early_launch, starts_early
from atom.model_ops.kernels.triton.paged import LOG2_E, precision
from atom.model_ops.kernels.triton.plan import Plan
from atom.model_ops.kernels.triton.sizes import next_power_of_2


@dataclass(frozen=True, slots=True)
class Form:
    """Keys a tile, stages of the pipeline and warps of a program."""

    tile: int
    stages: int = 3
    warps: int = 4


@functools.cache
def choose_form(dtype: torch.dtype, padded: int, is_float8: bool, is_large: bool) -> Form:
    """By the queries' type, the head size's power of two, the cache, and whether a batch is so large that its sequences
    need not be cut.
    """
    if dtype == torch.float32 or not is_float8 or not tl.target_info.is_cuda():
        return Form(32 if dtype == torch.float32 or padded > 128 else 64)
    # In pairs (pairs.py). Few programs want more bytes on their way each, many want to be many.
    form = Form(64, warps=2) if is_large else Form(128)
    return form if padded <= 128 else Form(form.tile // 2, warps=form.warps)


def attention_decode(
    q: torch.Tensor,
    kv_cache: torch.Tensor,
    kv_scales: torch.Tensor | None,
    plan: Plan,
    scale: float,
    window: int | None,
    soft_cap: float,
    sinks: torch.Tensor | None,
) -> torch.Tensor:
    """q [Td, HQ, D] over each token's cached keys, its own among them; returns [Td, HQ * D]."""
    num_tokens, num_heads, head_dim = q.shape
    num_kv_heads, block_size = kv_cache.shape[2], kv_cache.shape[3]
    padded = max(16, next_power_of_2(head_dim))
    parts = shares.num_parts(num_tokens, num_kv_heads)
    form = choose_form(q.dtype, padded, kv_scales is not None, parts == 1)
    out = torch.empty((num_tokens, num_heads * head_dim), dtype=q.dtype, device=q.device)
    tensors = (
        q, q.stride(0), kv_cache, kv_scales, plan.block_tables, plan.block_tables.stride(0), plan.decode_rows, sinks,
        out, scale * LOG2_E, window or 0,
    )  # fmt: skip
    constants = {
        "HQ": num_heads, "HK": num_kv_heads, "D": head_dim, "DP": padded, "BS": block_size,
        "M": max(16, next_power_of_2(num_heads // num_kv_heads)), "N": form.tile,
        "HAS_SCALES": kv_scales is not None, "HAS_WINDOW": window is not None,
        "HAS_ROWS": plan.decode_rows is not None, "HAS_SINKS": sinks is not None, "SOFT_CAP": soft_cap,
        "PRECISION": precision(q.dtype), "STAGES": form.stages, "EARLY": starts_early(num_tokens),
        "num_warps": form.warps, **early_launch(),
    }  # fmt: skip
    if plan.is_even:
        attend_evenly(q, out, plan.positions, num_kv_heads, parts, tensors, constants)
        return out
    made: shares.Shares = plan.keep(
        (num_tokens, num_kv_heads, form.tile, window),
        lambda: shares.share_out(plan.positions, num_tokens, num_kv_heads, form.tile, window),
    )
    attend_shares(q, out, made, num_kv_heads, tensors, constants)
    return out
