"""Single Triton kernels beside what they read and what else could do the work: microseconds a call.

Kernels run in a graph; what torch does in many calls does not, since some of them wait for the device.

Owns the inputs. `Sizes` are those of a busy step; a test has small ones for Triton's interpreter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from atom.model_ops.float8 import float8_dtype, quantize
from atom.model_ops.kernels.reference import sampling as plain
from atom.model_ops.kernels.triton import decode, drawing, fp8_fused, fp8_linear, fp8_quantize, kv_cache, masks, norm
from atom.model_ops.kernels.triton.fp8_quantize import GROUP, InputForm
from atom.model_ops.kernels.triton.plan import attention_plan
from atom.model_ops.step import StepInputs
from benchmarks import gpu_elementwise, gpu_linear, gpu_prefill
from benchmarks.gpu_shapes import SHAPES, Shape
from benchmarks.gpu_timing import seconds, seconds_in_a_graph


@dataclass(frozen=True, slots=True)
class Sizes:
    """rows: of a decode step; tokens: of a prefill step; batches: contexts of the sequences that decode, by name.

    weights: that few tokens are multiplied with. models, prompts: of which the attention of whole prompts is measured.
    shapes, many, few: models and tokens of which what lies between products is.
    """

    rows: int = 256
    tokens: int = 16384
    vocab: int = 151936
    width: int = 4096
    outputs: int = 24576
    heads: tuple[int, int] = (32, 8)
    head_dim: int = 128
    layers: int = 36
    batches: tuple[tuple[str, tuple[int, ...]], ...] = (
        ("63 of 1024 and one of 32768", (*[1024] * 63, 32768)),
        ("256 of 1088", (1088,) * 256),
        ("8 of 1088", (1088,) * 8),
        ("one of 1088", (1088,)),
    )
    weights: gpu_linear.Weights = gpu_linear.WEIGHTS
    models: gpu_prefill.Models = gpu_prefill.MODELS
    prompts: gpu_prefill.Prompts = gpu_prefill.PROMPTS
    shapes: Mapping[str, Shape] = field(default_factory=lambda: {name: SHAPES[name] for name in ("0.6B", "8B")})
    many: tuple[int, ...] = gpu_elementwise.MANY_TOKENS
    few: tuple[int, ...] = gpu_elementwise.FEW_TOKENS


@dataclass(frozen=True, slots=True)
class Bench:
    """A device, what it reads a second, and sizes."""

    device: torch.device
    bandwidth: float
    sizes: Sizes

    def row(self, name: str, function: Callable[[], Any], calls: int = 10) -> dict[str, Any]:
        """The kernel's time."""
        return {"name": name, "value": 1e6 * seconds_in_a_graph(function, self.device, calls), "unit": "us"}

    def by_torch(self, name: str, function: Callable[[], Any]) -> dict[str, Any]:
        """The reference's time on the same device."""
        return {"name": f"{name}, by torch", "value": 1e6 * seconds(function, self.device), "unit": "us"}

    def floor(self, name: str, num_bytes: float) -> dict[str, Any]:
        """The time to read and write so many bytes."""
        return {"name": f"{name}, floor", "value": 1e6 * num_bytes / self.bandwidth, "unit": "us"}


def sample(bench: Bench) -> list[dict[str, Any]]:
    """Rows whose filters the gathered logits decide, flat rows that are read again and again, and no filter."""
    rows, vocab, device = bench.sizes.rows, bench.sizes.vocab, bench.device
    ones = torch.ones(rows, device=device)
    uniform, none = torch.rand(rows, device=device), torch.zeros(rows, dtype=torch.int32, device=device)
    found = []
    for name, spread, top_k, top_p in (
        ("top-k 50, top-p 0.9", 3.0, 50, 0.9), ("top-p 0.9, flat", 0.02, 0, 0.9), ("no filter", 3.0, 0, 1.0),
    ):  # fmt: skip
        logits = spread * torch.randn(rows, vocab, device=device)
        given = (ones, none + top_k, top_p * ones, 0 * ones, uniform)
        name = f"{rows} x {vocab}, {name}"
        found.append(bench.row(name, lambda logits=logits, given=given: drawing.sample(logits, *given), 2))
        found.append(bench.by_torch(name, lambda logits=logits, given=given: plain.sample(logits, *given)))
    return [*found, bench.floor(f"{rows} x {vocab}", 4 * rows * vocab)]


def mask_logits(bench: Bench) -> list[dict[str, Any]]:
    """Every row with a mask of half of the vocabulary."""
    rows, vocab, device = bench.sizes.rows, bench.sizes.vocab, bench.device
    logits = torch.randn(rows, vocab, device=device)
    bits = torch.randint(-(2**31), 2**31 - 1, (rows, -(-vocab // 32)), device=device).to(torch.int32)
    where = torch.arange(rows, device=device)
    name = f"{rows} x {vocab}"
    return [
        bench.row(name, lambda: masks.mask_logits(logits, where, bits)),
        bench.by_torch(name, lambda: plain.mask_logits(logits, where, bits)),
        bench.floor(name, rows * vocab * (4 / 2 + 1 / 8)),
    ]


def fp8_quantise(bench: Bench) -> list[dict[str, Any]]:
    """Alone, and with the norm before it; a scale a token or one for 128 values."""
    width, float8 = bench.sizes.width, float8_dtype(bench.device)
    weight = torch.ones(width, dtype=torch.bfloat16, device=bench.device)
    found = []
    for tokens in (bench.sizes.rows, bench.sizes.tokens):
        x, residual = (torch.randn(tokens, width, device=bench.device).bfloat16() for _ in range(2))
        for kind, form in (("by token", InputForm(float8)), ("by 128", InputForm(float8, True))):
            packed = fp8_linear.PackedFloat8Linear(weight, weight, 1, None, fp8_linear._by_triton, form)
            name = f"{tokens} x {width}, {kind}"
            found += [
                bench.row(name, lambda x=x, form=form: fp8_quantize.quantize(x, form)),
                bench.row(
                    f"norm, {name}",
                    lambda x=x, packed=packed, to=residual: fp8_fused.fp8_rms_norm(x, to, weight, 1e-6, packed),
                ),
            ]
        found.append(bench.floor(f"{tokens} x {width}", 3 * tokens * width))
        name = f"norm, {tokens} x {width}"
        found += [
            bench.row(f"{name}, 16 bits", lambda x=x, to=residual: norm.add_rms_norm(x, to, weight, 1e-6)),
            bench.floor(name, 7 * tokens * width),
        ]
    return found


def fp8_product(bench: Bench) -> list[dict[str, Any]]:
    """A large projection of few and many tokens: by whoever the table takes, and by the Triton product."""
    outputs, width, device = bench.sizes.outputs, bench.sizes.width, bench.device
    wide = torch.randn(outputs, width, device=device)
    blocks = torch.ones(-(-outputs // GROUP), -(-width // GROUP), device=device)
    by_row = quantize(wide, torch.float8_e4m3fn)
    found = []
    for kind, (weight, scales), rows in (("by row", by_row, 1), ("in blocks", (by_row[0], blocks), GROUP)):
        packed = fp8_linear.fp8_linear_pack(weight, scales, rows, None, torch.bfloat16)
        for tokens in dict.fromkeys((1, min(32, bench.sizes.rows), bench.sizes.rows, bench.sizes.tokens)):
            x = torch.randn(tokens, width, device=device).bfloat16()
            rounded = fp8_quantize.quantize(x, packed.input_form)
            by = "Triton" if packed.product is fp8_linear._by_triton else "torch"
            name, calls = f"{tokens} x {width} x {outputs}, {kind}", 10 if tokens < 1024 else 2
            found.append(bench.row(f"{name}, by {by}", lambda x=rounded, p=packed: p.product(x, p), calls))
            if by == "torch":
                found.append(
                    bench.row(f"{name}, by Triton", lambda x=rounded, p=packed: fp8_linear._by_triton(x, p), calls)
                )
            found.append(bench.floor(name, outputs * width + tokens * (width + 2 * outputs)))
    return found


def decode_splits(bench: Bench) -> list[dict[str, Any]]:
    """Decode attention of all layers of a step, its plan included, by ATOM_DECODE_SPLITS; both caches."""
    sizes, device = bench.sizes, bench.device
    heads, kv_heads = sizes.heads
    found = []
    for name, contexts in sizes.batches:
        step = decodes(contexts, device)
        shape = kv_cache.kv_cache_shape(int(step.block_tables.max()) + 1, 16, kv_heads, sizes.head_dim)
        q = torch.randn(len(contexts), heads, sizes.head_dim, device=device).bfloat16()
        for kind, dtype in (("bf16", torch.bfloat16), ("fp8", float8_dtype(device))):
            cache = torch.randn(shape, dtype=torch.bfloat16, device=device).to(dtype)
            scales = torch.ones(2, kv_heads, device=device) if kind == "fp8" else None

            def attend(splits: str, cache: Any = cache, scales: Any = scales, q: Any = q, step: Any = step) -> None:
                made = attention_plan(step)
                made.is_balanced, made.joins_last = splits == "balanced", splits == "joined"
                for _ in range(sizes.layers):
                    decode.attention_decode(q, cache, scales, made, sizes.head_dim**-0.5, None, 0.0, None)

            for splits in ("equal", "joined", "balanced"):
                one = bench.row(f"{name}, {kind} cache, {splits}", lambda s=splits, f=attend: f(s), 1)
                found.append({**one, "value": one["value"] / sizes.layers, "unit": "us a layer"})
            floor = bench.floor(f"{name}, {kind} cache", sum(contexts) * 2 * kv_heads * sizes.head_dim * dtype.itemsize)
            found.append({**floor, "unit": "us a layer"})
    return found


def decodes(contexts: tuple[int, ...], device: torch.device) -> StepInputs:
    """A step of decodes of sequences with so many keys, their blocks of 16 in random places."""
    lens = np.asarray(contexts)
    counts = -(-lens // 16)
    blocks = np.random.default_rng(3).permutation(int(counts.sum())).astype(np.int32)
    tables = np.zeros((len(lens), int(counts.max())), dtype=np.int32)
    tables[np.arange(tables.shape[1]) < counts[:, None]] = blocks
    positions = torch.from_numpy(lens - 1).to(device)
    return StepInputs(
        token_ids=torch.zeros_like(positions),
        positions=positions,
        slot_mapping=torch.full_like(positions, -1),
        block_tables=torch.from_numpy(tables).to(device),
        context_lens=(lens - 1).astype(np.int32),
        query_lens=np.ones(len(lens), dtype=np.int32),
        num_decodes=len(lens),
        num_decode_tokens=len(lens),
        block_size=16,
    )


KERNELS: dict[str, Callable[[Bench], list[dict[str, Any]]]] = {
    "sample": sample,
    "mask_logits": mask_logits,
    "fp8 quantise": fp8_quantise,
    "fp8 product": fp8_product,
    "decode splits": decode_splits,
    "prefill attention": lambda bench: gpu_prefill.prefill_attention(
        bench.device, bench.sizes.models, bench.sizes.prompts
    ),
    "prefill elementwise": lambda bench: gpu_elementwise.prefill_elementwise(
        bench.device, bench.sizes.shapes, bench.sizes.many, bench.sizes.few
    ),
    "prefill attention cuDNN": lambda bench: gpu_prefill.prefill_attention_cudnn(
        bench.device, bench.sizes.models, bench.sizes.prompts
    ),
    "linear": lambda bench: gpu_linear.linear(bench.device, bench.sizes.weights),
    "linear early": lambda bench: gpu_linear.linear_early(bench.device, bench.sizes.weights),
    "linear tiles": lambda bench: gpu_linear.linear_tiles(bench.device, bench.sizes.weights),
}
