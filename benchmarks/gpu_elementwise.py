"""What a prefill does beside products and attention: microseconds of a layer's kernel, and the rate of its bytes.

Owns what of their forms is worth a comparison: warps, and the order in which programs go over the activation's input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from unittest.mock import patch

import torch
import triton
import triton.language as tl

from atom.model_ops.kernels.triton import activation, kv_cache, norm
from atom.model_ops.kernels.triton.plan import attention_plan
from benchmarks.gpu_prefill import fresh
from benchmarks.gpu_shapes import Shape
from benchmarks.gpu_timing import seconds_in_a_graph

MANY_TOKENS = (16384, 8192)
# Steps that the rotation takes a program a token for, and one below.
FEW_TOKENS = (32, 128, 256)


def prefill_elementwise(
    device: torch.device, shapes: Mapping[str, Shape], many: tuple[int, ...], few: tuple[int, ...]
) -> list[dict[str, Any]]:
    """As the engine has them, for many tokens; then the rotation for few tokens, and other forms for the most."""
    found = []
    for name, shape in shapes.items():
        for tokens in many:
            ways = [rotation(shape, tokens, device), *norms(shape, tokens, device), silu(shape, tokens, device)]
            if tokens == max(many):
                ways += other_forms(shape, tokens, device)
            found += [row(f"{name}, {tokens} tokens", way, device) for way in ways]
            del ways
        found += [row(f"{name}, {tokens} tokens", rotation(shape, tokens, device), device) for tokens in few]
    return found


# Name, call, and the bytes that it reads and writes at least.
Way = tuple[str, Callable[[], Any], int]


def row(name: str, way: Way, device: torch.device) -> dict[str, Any]:
    """Its time and rate."""
    kind, call, num_bytes = way
    taken = seconds_in_a_graph(call, device, 10)
    return {"name": f"{name}, {kind}", "value": 1e6 * taken, "unit": f"us, {num_bytes / taken / 1e9:.0f} GB/s"}


def rotation(shape: Shape, tokens: int, device: torch.device, num_warps: int | None = None) -> Way:
    """qkv_rope_write of a prompt, its blocks one after the other."""
    heads, kv_heads, head_dim = shape.heads, shape.kv_heads, shape.head_dim
    step = fresh(1, tokens, device)
    step.slot_mapping = torch.arange(tokens, device=device)
    plan = attention_plan(step)
    cache = torch.zeros(kv_cache.kv_cache_shape(-(-tokens // 16), 16, kv_heads, head_dim), device=device).bfloat16()
    qkv = torch.randn(tokens, (heads + 2 * kv_heads) * head_dim, device=device).bfloat16()
    weight = torch.ones(heads + kv_heads, head_dim, dtype=qkv.dtype, device=device)
    table = torch.ones(tokens, head_dim, dtype=qkv.dtype, device=device)

    def call() -> Any:
        with patch.object(kv_cache, "_num_warps", lambda size: num_warps or chosen(size)):
            return kv_cache.qkv_rope_write(qkv, weight, 1e-6, table, cache, None, plan, heads, kv_heads)

    chosen = kv_cache._num_warps
    kind = "qkv_rope_write" if num_warps is None else f"qkv_rope_write, {num_warps} warps"
    return kind, call, 2 * tokens * head_dim * (2 * heads + 5 * kv_heads)


def norms(shape: Shape, tokens: int, device: torch.device, num_warps: int | None = None) -> list[Way]:
    """Both norms."""
    x, residual = (torch.randn(tokens, shape.hidden, device=device).bfloat16() for _ in range(2))
    weight = torch.ones(shape.hidden, dtype=x.dtype, device=device)
    chosen = norm._num_warps
    more = "" if num_warps is None else f", {num_warps} warps"

    def call(function: Callable[..., Any], *arguments: Any) -> Any:
        with patch.object(norm, "_num_warps", lambda size: num_warps or chosen(size)):
            return function(*arguments, weight, 1e-6)

    return [
        (f"rms_norm{more}", lambda: call(norm.rms_norm, x), 4 * x.numel()),
        (f"add_rms_norm{more}", lambda: call(norm.add_rms_norm, x, residual), 8 * x.numel()),
    ]


def silu(shape: Shape, tokens: int, device: torch.device) -> Way:
    """The activation."""
    x = torch.randn(tokens, 2 * shape.intermediate, device=device, dtype=torch.bfloat16)
    return "silu_and_mul", lambda: activation.silu_and_mul(x), 3 * x.numel()


@triton.jit
def _silu_in_order(x, out, size, chunks, BLOCK: tl.constexpr):  # noqa: ANN001, ANN202  # as all kernels
    """Programs that follow each other lie beside each other in memory."""
    row = (tl.program_id(0) // chunks).to(tl.int64)
    columns = tl.program_id(0) % chunks * BLOCK + tl.arange(0, BLOCK)
    inside = columns < size
    gate = tl.load(x + row * 2 * size + columns, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(x + row * 2 * size + size + columns, mask=inside, other=0.0).to(tl.float32)
    active = gate / (1.0 + tl.exp(-gate))
    tl.store(out + row * size + columns, (active * up).to(out.dtype.element_ty), mask=inside)


def other_forms(shape: Shape, tokens: int, device: torch.device) -> list[Way]:
    """Warps of the rotation and the norms, blocks and order of the activation."""
    size = shape.intermediate
    x = torch.randn(tokens, 2 * size, device=device, dtype=torch.bfloat16)
    out = torch.empty(tokens, size, device=device, dtype=torch.bfloat16)
    queries = kv_cache._num_warps(shape.heads * shape.head_dim // 2)
    ways = [rotation(shape, tokens, device, num_warps) for num_warps in (max(1, queries // 2), 2 * queries)]
    of_norm = norm._num_warps(triton.next_power_of_2(shape.hidden))
    for num_warps in (max(1, of_norm // 2), 2 * of_norm):
        ways += norms(shape, tokens, device, num_warps)
    for block, num_warps in ((1024, 4), (2048, 4), (4096, 8)):
        across, chunks = (tokens, triton.cdiv(size, block)), triton.cdiv(size, block)
        ways += [
            (
                f"silu_and_mul, {block} values, {num_warps} warps, rows first",
                lambda b=block, w=num_warps, grid=across: activation._silu_and_mul[grid](
                    x, x.stride(0), out, size, b, False, num_warps=w
                ),
                3 * x.numel(),
            ),
            (
                f"silu_and_mul, {block} values, {num_warps} warps, in order",
                lambda b=block, w=num_warps, n=chunks: _silu_in_order[(tokens * n,)](x, out, size, n, b, num_warps=w),
                3 * x.numel(),
            ),
        ]
    return ways
