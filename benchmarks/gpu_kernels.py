"""Single Triton kernels beside what they read and what else could do the work: microseconds a call.

Kernels run in a graph; what torch does in many calls does not, since some of them wait for the device.

Owns the inputs. `Sizes` are those of a busy step; a test has small ones for Triton's interpreter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from atom.model_ops.float8 import float8_dtype
from atom.model_ops.kernels.triton import fp8_fused, fp8_linear, fp8_quantize, norm
from atom.model_ops.kernels.triton.fp8_quantize import InputForm
from benchmarks import gpu_decode, gpu_decode_fp8, gpu_elementwise, gpu_fp8, gpu_linear, gpu_prefill, gpu_sampling
from benchmarks.gpu_shapes import SHAPES, Shape
from benchmarks.gpu_timing import seconds_in_a_graph


@dataclass(frozen=True, slots=True)
class Sizes:
    """rows: of a decode step; tokens: of a prefill step; batches: contexts of the sequences that decode, by name.

    weights: that few tokens are multiplied with. models, prompts: of which the attention of whole prompts is measured.
    shapes, many, few: models and tokens of which what lies between products is.
    fp8_batches: as batches, whose caches hold fp8.
    """

    rows: int = 256
    tokens: int = 16384
    vocab: int = 151936
    width: int = 4096
    outputs: int = 24576
    model: gpu_decode.Model = gpu_decode.MODEL
    batches: gpu_decode.Batches = gpu_decode.BATCHES
    weights: gpu_linear.Weights = gpu_linear.WEIGHTS
    models: gpu_prefill.Models = gpu_prefill.MODELS
    prompts: gpu_prefill.Prompts = gpu_prefill.PROMPTS
    shapes: Mapping[str, Shape] = field(default_factory=lambda: {name: SHAPES[name] for name in ("0.6B", "8B")})
    many: tuple[int, ...] = gpu_elementwise.MANY_TOKENS
    few: tuple[int, ...] = gpu_elementwise.FEW_TOKENS
    fp8_batches: gpu_decode.Batches = gpu_decode_fp8.FP8_BATCHES


@dataclass(frozen=True, slots=True)
class Bench:
    """A device, what it reads a second, and sizes."""

    device: torch.device
    bandwidth: float
    sizes: Sizes

    def row(self, name: str, function: Callable[[], Any], calls: int = 10) -> dict[str, Any]:
        """The kernel's time."""
        return {"name": name, "value": 1e6 * seconds_in_a_graph(function, self.device, calls), "unit": "us"}

    def floor(self, name: str, num_bytes: float) -> dict[str, Any]:
        """The time to read and write so many bytes."""
        return {"name": f"{name}, floor", "value": 1e6 * num_bytes / self.bandwidth, "unit": "us"}


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


KERNELS: dict[str, Callable[[Bench], list[dict[str, Any]]]] = {
    "sample": lambda bench: gpu_sampling.sample(bench.device, bench.bandwidth, bench.sizes.rows, bench.sizes.vocab),
    "sample forms": lambda bench: gpu_sampling.sample_forms(bench.device, bench.sizes.rows, bench.sizes.vocab),
    "mask_logits": lambda bench: gpu_sampling.mask_logits(
        bench.device, bench.bandwidth, bench.sizes.rows, bench.sizes.vocab
    ),
    "fp8 quantise": fp8_quantise,
    "fp8 product": lambda bench: gpu_fp8.products(bench.device, gpu_fp8.layers_only(bench.sizes.weights)),
    "fp8 norm and product": lambda bench: gpu_fp8.with_norm(bench.device, gpu_fp8.layers_only(bench.sizes.weights)),
    "fp8 tiles": lambda bench: gpu_fp8.tiles(bench.device, gpu_fp8.layers_only(bench.sizes.weights)),
    "decode splits": lambda bench: gpu_decode.decode_splits(
        bench.device, bench.bandwidth, bench.sizes.model, bench.sizes.batches
    ),
    "decode fp8": lambda bench: gpu_decode_fp8.decode_fp8(
        bench.device, bench.bandwidth, bench.sizes.model, bench.sizes.fp8_batches
    ),
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
    "linear early": lambda bench: gpu_linear.linear_early(bench.device, bench.sizes.shapes),
    "linear tiles": lambda bench: gpu_linear.linear_tiles(bench.device, bench.sizes.weights),
}
