"""Compiles the Triton kernels for GPUs that are not there, by calling the operations and launching nothing.

`python -m tests.kernels.triton.compiled TARGET [SHAPE...]` prints a line for each kernel that an operation would launch
on TARGET (the keys of TARGETS) with a model's SHAPE (all of SHAPES): its name and bytes of shared memory. The
interpreter shows that a kernel computes the right thing; this shows that a compiler takes it, with the shapes that real
models have. `... compiled TARGET --variants` prints for each kernel how many of it batches of several sizes compile;
`... --early`, with ATOM_EARLY_START set, by which instructions kernels start before another's end.
Knows no numbers.
"""

from __future__ import annotations

import functools
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.runtime.jit import JITFunction

from atom.model_ops.kernels.triton import (
    activation,
    decode,
    drawing,
    fp8_fused,
    fp8_linear,
    fp8_product,
    fp8_quantize,
    fp8_split,
    fresh_prefill,
    kv_cache,
    linear,
    masks,
    norm,
    plan,
    prefill,
    random,
    sampling,
    verification,
)
from atom.model_ops.kernels.triton.fp8_split import Split
from atom.model_ops.kernels.triton.linear_few import by_rows, by_tensor_cores, by_threads, few_linear
from tests.kernels.dense import make_step

# Architecture, and the shared memory of a block in bytes.
TARGETS = {
    "sm90": (GPUTarget("cuda", 90, 32), 227 << 10),
    "gfx942": (GPUTarget("hip", "gfx942", 64), 64 << 10),
    "gfx950": (GPUTarget("hip", "gfx950", 64), 160 << 10),
}


class AbsentDevice:
    """What Triton asks of a driver before it launches; it never does."""

    def __init__(self, target: GPUTarget) -> None:
        self._target = target

    def get_current_target(self) -> GPUTarget:
        return self._target

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cpu")


def compile_only(target: GPUTarget, found: Callable[[Any], None]) -> None:
    """From here on a launch compiles for `target` and gives `found` the compiled kernel."""
    triton.runtime.driver.set_active(AbsentDevice(target))
    launch = JITFunction.run

    @functools.wraps(launch)
    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        kernel = launch(self, *args, grid=grid, warmup=True, **kwargs)
        found(kernel)
        return kernel

    JITFunction.run = run


@dataclass(frozen=True)
class Shape:
    """A model's attention, and what runs on it."""

    heads: tuple[int, int] = (16, 8)
    head_dim: int = 128
    block_size: int = 16
    dtype: torch.dtype = torch.bfloat16
    window: int | None = None
    soft_cap: float = 0.0
    has_sinks: bool = False
    qk_norm: bool = True
    fp8_cache: bool = False


SHAPES = {
    "Qwen3 0.6B": Shape(),
    "Qwen3 8B": Shape(heads=(32, 8)),
    "Llama 1B": Shape(heads=(32, 8), head_dim=64, qk_norm=False),
    "window, sinks": Shape(heads=(64, 8), head_dim=64, window=128, has_sinks=True, qk_norm=False),
    "cap": Shape(heads=(16, 8), head_dim=256, window=4096, soft_cap=50.0, qk_norm=False),
    "atom-tiny, float32": Shape(heads=(8, 2), head_dim=64, dtype=torch.float32),
    "multi-query": Shape(heads=(16, 1)),
    "window, sinks, fp8 cache": Shape(window=128, has_sinks=True, fp8_cache=True),
    "fp8 cache": Shape(heads=(32, 8), fp8_cache=True),
    "fp8 cache, small heads": Shape(heads=(4, 2), head_dim=16, qk_norm=False, fp8_cache=True),
    "fp8 cache, cap, float32": Shape(head_dim=256, dtype=torch.float32, soft_cap=50.0, fp8_cache=True),
}


def compile_all(names: Sequence[str], float8: torch.dtype) -> None:
    """Every operation, with the shapes of SHAPES that are named."""
    for width in (1024, 4096):
        x = torch.zeros(3, width, dtype=torch.bfloat16)
        norm.rms_norm(x, x[0], 1e-6)
        norm.add_rms_norm(x, x.clone(), x[0], 1e-6)
    activation.silu_and_mul(torch.zeros(3, 6144, dtype=torch.bfloat16))
    sample()
    for name in names:
        attention(SHAPES[name], float8)
        prompts(SHAPES[name])
    project(float8)
    few_tokens()


def sample() -> None:
    """From logits of three rows to their tokens."""
    logits = torch.zeros(3, 151936)
    floats, ints, longs = torch.ones(3), torch.ones(3, dtype=torch.int32), torch.ones(3, dtype=torch.int64)
    sampling.greedy_sample(logits.bfloat16())
    for dtype in (logits.dtype, torch.bfloat16):
        drawing.sample(logits.to(dtype), floats, ints, floats, floats, floats)
    random.philox_uniform(longs, longs)
    masks.mask_logits(logits, longs, torch.zeros(3, 4748, dtype=torch.int32))
    verification.verify_greedy(longs.view(3, 1), ints, torch.zeros(3, 2, dtype=torch.int64))


def project(float8: torch.dtype) -> None:
    """fp8 projections of few and many tokens: scales by row and in blocks, sizes that the tiles divide or do not."""
    for tokens, outputs, inputs in ((1, 6144, 4096), (40, 1024, 1024), (300, 1024, 1024), (300, 200, 300)):
        x = torch.zeros(tokens, inputs, dtype=torch.bfloat16)
        weight = torch.zeros(outputs, inputs, dtype=float8)
        blocks = torch.ones(-(-outputs // 128), -(-inputs // 128))
        by_row, bias = torch.ones(outputs, 1), torch.zeros(outputs, dtype=torch.bfloat16)
        for scales, block_rows, has_groups in ((by_row, 1, False), (blocks, 128, True)):
            form = fp8_quantize.InputForm(float8, has_groups)
            fp8_product.fp8_product(fp8_quantize.quantize(x, form), weight, scales, block_rows, bias)
            packed = fp8_linear.PackedFloat8Linear(weight, scales, block_rows, bias, fp8_linear._by_triton, form)
            fp8_linear.fp8_linear(x[:8], packed)
            if tokens == 40:
                # As is chosen up to 64 tokens, and by row to 128.
                for split in (Split(64, 64, 2, 4, 4), Split(128, 128, 1, 8, 5))[: 1 + (not has_groups)]:
                    fp8_split.fp8_split(fp8_quantize.quantize(x, form), weight, scales, block_rows, bias, split)
            fp8_fused.fp8_rms_norm(x, x.clone(), x[0], 1e-6, packed)
            fp8_fused.fp8_rms_norm(x, None, x[0], 1e-6, packed)
            fp8_fused.fp8_silu_and_mul(torch.zeros(tokens, 24576, dtype=x.dtype), packed)


def few_tokens() -> None:
    """Products of Qwen3's weights with a decode step's tokens, a kernel each, of every kind of tile."""
    for tokens, outputs, width, tile in (
        (1, 1024, 3072, by_threads(4, 4096, 8)), (4, 1024, 2048, by_threads(4, 2048, 4)),
        (8, 1024, 3072, by_tensor_cores(8, 8, 6)), (16, 2048, 6144, by_tensor_cores(16, 8, 4)),
        (8, 6144, 4096, by_rows(32, 128, 2, 8)), (16, 8192, 4096, by_rows(64, 128, 4, 6)),
    ):  # fmt: skip
        weight = torch.zeros(outputs, width, dtype=torch.bfloat16)
        x = weight[:1].expand(tokens, -1)
        dtype = x.dtype if tokens == 8 else torch.float32
        few_linear(x, weight, weight[:, 0].contiguous() if tokens == 8 else None, tile, dtype)


def early(float8: torch.dtype) -> None:
    """The kernels of a decode step, every kind of product among them, a norm of more rows too."""
    x = torch.zeros(2, 1024, dtype=torch.bfloat16)
    norm.rms_norm(x, x[0], 1e-6)
    norm.rms_norm(torch.zeros(3, 1024, dtype=torch.bfloat16), x[0], 1e-6)
    norm.add_rms_norm(x, x.clone(), x[0], 1e-6)
    activation.silu_and_mul(x)
    for tile in (by_threads(8, 1024, 4), by_tensor_cores(8, 8, 6), by_rows(32, 128, 2, 8)):
        few_linear(x, torch.zeros(64, 1024, dtype=torch.bfloat16), None, tile, torch.bfloat16)
    form = fp8_quantize.InputForm(float8)
    weight, scales = torch.zeros(64, 1024, dtype=float8), torch.ones(64, 1)
    packed = fp8_linear.PackedFloat8Linear(weight, scales, 1, None, fp8_linear._by_triton, form)
    for few in (x, torch.zeros(8, 1024, dtype=torch.bfloat16)):
        fp8_linear.fp8_linear(fp8_fused.fp8_rms_norm(few, None, x[0], 1e-6, packed), packed)
        fp8_product.fp8_product(fp8_quantize.quantize(few, form), weight, scales, 1, None)
    fp8_fused.fp8_silu_and_mul(torch.zeros(2, 2048, dtype=torch.bfloat16), packed)
    fp8_split.fp8_split(fp8_quantize.quantize(x, form), weight, scales, 1, None, Split(32, 64, 2, 4, 4))
    step = make_step([300], [1], [[*range(20)]], 16, 1)
    cache = torch.zeros(kv_cache.kv_cache_shape(20, 16, 8, 128), dtype=torch.bfloat16)
    step.plan = made = plan.attention_plan(step)
    qkv, table = torch.zeros(1, 32 * 128, dtype=torch.bfloat16), torch.zeros(400, 128, dtype=torch.bfloat16)
    query = kv_cache.qkv_rope_write(qkv, None, 1e-6, table, cache, None, made, 16, 8)[0]
    for is_even in (True, False):
        decode.attention_decode(query, cache, None, replace(made, is_even=is_even), 0.1, None, 0.0, None)


def attention(shape: Shape, float8: torch.dtype) -> None:
    """A mixed step: a decode, a chunk after a context, a fresh prompt; and decodes alone."""
    heads, kv_heads = shape.heads
    cache_dtype = float8 if shape.fp8_cache else shape.dtype
    scales = torch.ones(2, kv_heads) if shape.fp8_cache else None
    cache = torch.zeros(kv_cache.kv_cache_shape(40, shape.block_size, kv_heads, shape.head_dim), dtype=cache_dtype)
    table = torch.zeros(400, shape.head_dim, dtype=shape.dtype)
    weight = torch.ones(heads + kv_heads, shape.head_dim, dtype=shape.dtype) if shape.qk_norm else None
    softmax = (shape.head_dim**-0.5, shape.window, shape.soft_cap, torch.ones(heads) if shape.has_sinks else None)
    blocks = [*range(20)]
    for contexts, queries, num_decodes in (([300, 64, 0], [1, 20, 40], 1), ([300] * 80, [1] * 80, 80)):
        step = make_step(contexts, queries, [blocks] * len(contexts), shape.block_size, num_decodes)
        step.plan = made = plan.attention_plan(step)
        qkv = torch.zeros(step.num_tokens, (heads + 2 * kv_heads) * shape.head_dim, dtype=shape.dtype)
        q, k, v = kv_cache.qkv_rope_write(qkv, weight, 1e-6, table, cache, scales, made, heads, kv_heads)
        first = step.num_decode_tokens
        for is_even in (True, False):
            decode.attention_decode(q[:first], cache, scales, replace(made, is_even=is_even), *softmax)
        if first < len(q):
            prefill.attention_prefill(q[first:], k[first:], v[first:], cache, scales, made, *softmax)


def prompts(shape: Shape) -> None:
    """Fresh prompts, few and many, by the kernel for them where it takes the shape."""
    heads, kv_heads = shape.heads
    cache = torch.zeros(kv_cache.kv_cache_shape(40, shape.block_size, kv_heads, shape.head_dim), dtype=shape.dtype)
    softmax = (shape.head_dim**-0.5, shape.window, shape.soft_cap, torch.ones(heads) if shape.has_sinks else None)
    for length in (300, 2300):
        step = make_step([0, 0], [40, length], [[*range(150)]] * 2, shape.block_size, 0)
        q, k, v = (torch.zeros(40 + length, n, shape.head_dim, dtype=shape.dtype) for n in (heads, kv_heads, kv_heads))
        fresh_prefill.attention_prefill(q, k, v, cache, None, plan.attention_plan(step), *softmax)


def any_batch(float8: torch.dtype) -> None:
    """A decode step of several sizes between two powers of two, as mixed steps have them: no graph's, so not warm."""
    shape = SHAPES["Qwen3 8B"]
    heads, kv_heads = shape.heads
    cache = torch.zeros(kv_cache.kv_cache_shape(40, 16, kv_heads, shape.head_dim), dtype=shape.dtype)
    weight, logits = torch.zeros(512, 2048, dtype=float8), torch.zeros(32, 9000)
    for count in (17, 20, 25, 31):
        step = make_step([300] * count, [1] * count, [[*range(20)]] * count, 16, count)
        made = plan.attention_plan(step)
        q = torch.zeros(count, heads, shape.head_dim, dtype=shape.dtype)
        for is_even in (True, False):
            decode.attention_decode(q, cache, None, replace(made, is_even=is_even), 0.1, None, 0.0, None)
        x = torch.zeros(count, 2048, dtype=torch.bfloat16)
        for scales, block_rows, has_groups in ((torch.ones(512, 1), 1, False), (torch.ones(4, 16), 128, True)):
            form = fp8_quantize.InputForm(float8, has_groups, 4 if has_groups else 1)
            packed = fp8_linear.PackedFloat8Linear(weight, scales, block_rows, None, fp8_linear._by_triton, form)
            fp8_product.fp8_product(fp8_quantize.quantize(x, form), weight, scales, block_rows, None)
            fp8_linear.fp8_linear(fp8_fused.fp8_rms_norm(x, x.clone(), x[0], 1e-6, packed), packed)
            fp8_fused.fp8_silu_and_mul(torch.zeros(count, 4096, dtype=x.dtype), packed)
        few = torch.zeros(count % 5 + 5, 1024, dtype=torch.bfloat16)
        linear.linear(few, linear.linear_pack(few[:1].expand(64, -1).contiguous(), None))
        floats, longs = torch.ones(count), torch.ones(count, dtype=torch.int64)
        drawing.sample(logits[:count], floats, floats.int(), floats, floats, floats)
        random.philox_uniform(longs, longs)
        masks.mask_logits(logits[:count], longs, torch.zeros(count, 282, dtype=torch.int32))


def instructions(kernel: Any) -> list[str]:
    """Those of a kernel's PTX by which it lets the next one start and waits for the one before it, and the ways in
    which it reads and writes global memory before it waits.
    """
    ptx = kernel.asm.get("ptx", "")
    before, wait, _ = ptx.partition("griddepcontrol.wait")
    ways = re.findall(r"\b(ld|st|red|atom|cp)\.\S*global", before) if wait else []
    return [*re.findall(r"griddepcontrol\.\w+", ptx), *sorted(set(ways))]


def main() -> None:
    """Compile for the target on the command line; exits 1 where a kernel wants more shared memory than there is."""
    target, limit = TARGETS[sys.argv[1]]
    float8 = torch.float8_e4m3fnuz if target.arch == "gfx942" else torch.float8_e4m3fn
    if sys.argv[2:] == ["--early"]:
        compile_only(target, lambda kernel: print(kernel.metadata.name, *instructions(kernel)))
        early(float8)
        return
    kernels: dict[str, Any] = {}
    compile_only(target, lambda kernel: kernels.setdefault(kernel.hash, kernel.metadata))
    if sys.argv[2:] == ["--variants"]:
        any_batch(float8)
        for name, count in Counter(found.name for found in kernels.values()).items():
            print(f"{name} {count}")
        return
    compile_all(sys.argv[2:] or [*SHAPES], float8)
    seen = dict.fromkeys((found.name, found.shared) for found in kernels.values())
    for name, shared in seen:
        print(f"{name} {shared}")
    too_much = [f"{name}: {shared} of {limit} bytes" for name, shared in seen if shared > limit]
    if too_much:
        sys.exit("too much shared memory: " + ", ".join(too_much))


if __name__ == "__main__":
    main()
