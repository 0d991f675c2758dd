"""Attention of fresh prompts alone, by every way there is: microseconds of a layer, and operations a second.

Owns which forms of the kernel for fresh prompts are worth a comparison. cuDNN takes prompts of one length only, and
builds a plan for each length that it sees first.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from atom.model_ops.kernels.triton import kv_cache, prefill
from atom.model_ops.kernels.triton.fresh_prefill import ALONE, IN_TWOS, attend
from atom.model_ops.kernels.triton.plan import Plan, PrefillRows, attention_plan
from atom.model_ops.step import StepInputs
from benchmarks.gpu_shapes import SHAPES
from benchmarks.gpu_timing import seconds, seconds_in_a_graph

# Number of prompts and their length; a model's name, query heads, key heads and head size.
Prompts = tuple[tuple[int, int], ...]
Models = tuple[tuple[str, int, int, int], ...]
PROMPTS: Prompts = ((1, 8192), (8, 2048), (1, 1024), (16, 256))
MODELS: Models = tuple(
    (name, SHAPES[name].heads, SHAPES[name].kv_heads, SHAPES[name].head_dim) for name in ("0.6B", "8B")
)
_FORMS = {
    "a program alone": ALONE,
    "a program alone, one head": replace(ALONE, heads=1),
    "two programs at a time": IN_TWOS,
    "two programs at a time, one head": replace(IN_TWOS, heads=1),
}


def prefill_attention(
    device: torch.device, models: Models = MODELS, prompts: Prompts = PROMPTS
) -> list[dict[str, Any]]:
    """torch's flash attention, where the device has it, and the forms of the kernel for fresh prompts."""
    found = []
    for name, num_heads, kv_heads, head_dim in models:
        for count, length in prompts:
            step = fresh(count, length, device)
            plan = attention_plan(step)
            q, k, v = projected(count * length, num_heads, kv_heads, head_dim, device)
            shape = kv_cache.kv_cache_shape(int(step.block_tables.max()) + 1, 16, kv_heads, head_dim)
            cache = torch.zeros(shape, dtype=q.dtype, device=device)
            scale = head_dim**-0.5
            ways: dict[str, Callable[[], Any]] = {
                "torch": lambda q=q, k=k, v=v, cache=cache, plan=plan, scale=scale: prefill.attention_prefill(
                    q, k, v, cache, None, plan, scale, None, 0.0, None
                )
            }
            for kind, form in _FORMS.items():
                ways[kind] = lambda q=q, k=k, v=v, plan=plan, scale=scale, form=form: attend(
                    q, k, v, plan, rows_of(plan), scale, form
                )
            for kind, way in ways.items():
                taken = seconds_in_a_graph(way, device, 3)
                found += rows(f"{name} {count}x{length}, {kind}", taken, operations(count, length, num_heads, head_dim))
    return found


def prefill_attention_cudnn(
    device: torch.device, models: Models = MODELS, prompts: Prompts = PROMPTS
) -> list[dict[str, Any]]:
    """Through torch's scaled_dot_product_attention; the first call of a shape and of a length one longer apart."""
    backend = SDPBackend.CUDNN_ATTENTION if device.type == "cuda" else SDPBackend.MATH
    found = []
    for name, num_heads, kv_heads, head_dim in models:
        for count, length in prompts:
            made = projected(count * (length + 1), num_heads, kv_heads, head_dim, device)

            def call(length: int, count: int = count, made: Any = made) -> torch.Tensor:
                tokens = count * length
                q, k, v = (x[:tokens].unflatten(0, (count, length)).transpose(1, 2) for x in made)
                with sdpa_kernel(backend):
                    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)

            firsts = {
                kind: first_call(lambda n=n: call(n), device)
                for kind, n in (("", length), (", one longer", length + 1))
            }
            for kind, taken in firsts.items():
                found.append({"name": f"{name} {count}x{length}, first call{kind}", "value": 1e3 * taken, "unit": "ms"})
            taken = seconds(lambda n=length: call(n), device)
            found += rows(f"{name} {count}x{length}", taken, operations(count, length, num_heads, head_dim))
    return found


def rows(name: str, taken: float, done: float) -> list[dict[str, Any]]:
    """A way's time and rate."""
    return [
        {"name": name, "value": 1e6 * taken, "unit": "us"},
        {"name": f"{name}, rate", "value": done / taken / 1e12, "unit": "TFLOP/s"},
    ]


def operations(count: int, length: int, num_heads: int, head_dim: int) -> float:
    """Of one layer: every query with the keys up to its own, scores and values."""
    return 2.0 * count * length * (length + 1) * num_heads * head_dim


def first_call(function: Callable[[], Any], device: torch.device) -> float:
    """Seconds of a call, the host's part included."""
    begun = time.perf_counter()
    function()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - begun


def projected(
    num_tokens: int, num_heads: int, kv_heads: int, head_dim: int, device: torch.device
) -> tuple[torch.Tensor, ...]:
    """q, k and v [T, heads, D] as the step has them: parts of wider rows."""
    fused = torch.randn(num_tokens, num_heads + 2 * kv_heads, head_dim, device=device).bfloat16()
    return fused.split((num_heads, kv_heads, kv_heads), dim=1)


def rows_of(plan: Plan) -> PrefillRows:
    """The prompts that the host knows."""
    assert isinstance(plan.prefill, PrefillRows)
    return plan.prefill


def fresh(count: int, length: int, device: torch.device) -> StepInputs:
    """A step of prompts that have nothing in the cache, their blocks of 16 one after the other."""
    blocks = -(-length // 16)
    tables = torch.arange(count * blocks, dtype=torch.int32, device=device).view(count, blocks)
    positions = torch.arange(length, device=device).repeat(count)
    return StepInputs(
        token_ids=torch.zeros_like(positions),
        positions=positions,
        slot_mapping=torch.full_like(positions, -1),
        block_tables=tables,
        context_lens=np.zeros(count, dtype=np.int32),
        query_lens=np.full(count, length, dtype=np.int32),
        num_decodes=0,
        num_decode_tokens=0,
        block_size=16,
    )
