"""Products with fp8 weights: whoever can do them, side by side, at the rate at which they read the weight.

As gpu_linear has them for 16 bits: in a graph over as many distinct weights as the second-level cache can not hold.
Owns which tiles and splits are worth a comparison. Inputs are rounded beforehand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from atom.model_ops.float8 import quantize
from atom.model_ops.kernels.triton import fp8_linear
from atom.model_ops.kernels.triton.fp8_few import Tile, by_tensor_cores, by_threads, fits, fp8_few
from atom.model_ops.kernels.triton.fp8_fused import fp8_rms_norm
from atom.model_ops.kernels.triton.fp8_linear import PackedFloat8Linear
from atom.model_ops.kernels.triton.fp8_quantize import GROUP, Rounded
from atom.model_ops.kernels.triton.fp8_quantize import quantize as quantize_input
from atom.model_ops.kernels.triton.fp8_split import Split, can_split, fp8_split
from benchmarks.gpu_linear import Weights
from benchmarks.gpu_timing import seconds_in_a_graph

TOKENS, _TILE_TOKENS, _NORM_TOKENS = (1, 8, 32, 128, 256), (1, 2, 4, 8, 16), (1, 8, 32, 128)
# What the interpreter is given.
_CPU_TOKENS = (1, 17)
_MOST_BY_THREADS = 2
# Bytes of the weights of a graph, at least: several times the second-level cache of an H200.
_MANY_BYTES = 256 << 20
_MAX_STEPS = 8
_TILES = (
    by_threads(4, 4096, 8), by_threads(8, 4096, 8), by_threads(8, 2048, 4), by_threads(16, 2048, 8),
    by_threads(8, 1024, 2), by_threads(16, 1024, 4),
    by_tensor_cores(16, 4, 6), by_tensor_cores(16, 8, 4), by_tensor_cores(32, 4, 4), by_tensor_cores(32, 8, 4),
)  # fmt: skip
# By the number of tokens, beside the one that is chosen.
_SPLITS = {
    8: (Split(16, 64, 4, 4, 6),),
    32: (Split(32, 64, 1, 4, 6), Split(32, 64, 4, 4, 6), Split(32, 128, 4, 4, 4)),
    128: (Split(128, 128, 1, 8, 5), Split(128, 128, 4, 8, 3), Split(128, 256, 1, 8, 4), Split(128, 256, 4, 8, 4)),
    256: (Split(128, 128, 2, 8, 5), Split(128, 256, 4, 8, 4)),
}
# Tokens with which the library is asked for one scale a tensor.
_FEWEST_WHOLE = 32

Product = Callable[[Rounded, PackedFloat8Linear], torch.Tensor]


@dataclass(frozen=True, slots=True)
class Packed:
    """A weight as often as a graph needs it, under a name."""

    name: str
    copies: list[PackedFloat8Linear]

    @property
    def has_groups(self) -> bool:
        """Whether scales are by 128 x 128."""
        return self.copies[0].scales.shape[1] > 1


def products(device: torch.device, weights: Weights) -> list[dict[str, Any]]:
    """By torch and by whom the operation takes; by row also in other splits, and by torch with one scale a tensor."""
    found = []
    for packed in _packed(device, weights):
        one = packed.copies[0]
        for tokens in _given(device, TOKENS):
            ways: dict[str, Product] = {"chosen": fp8_linear.fp8_linear}
            if one.product is not fp8_linear._by_triton:
                ways["by torch"] = lambda x, p: p.product(x, p)
            if not packed.has_groups:
                ways |= {
                    _described_split(split): _split(split)
                    for split in _SPLITS.get(tokens, ())
                    if can_split(split, one.weight.shape[1], one.block_rows, packed.has_groups)
                }
                if tokens >= _FEWEST_WHOLE:
                    ways["by torch, one scale"] = _by_torch_with_one_scale
            found += [_row(f"{packed.name}, {tokens} tokens, {way}", ways[way], tokens, packed.copies) for way in ways]
    return found


def _by_torch_with_one_scale(x: Rounded, packed: PackedFloat8Linear) -> torch.Tensor:
    """What the library does without scales of rows: a product that still has to be multiplied by them."""
    return torch._scaled_mm(
        x.values, packed.weight.t(), packed.scales[0, 0], packed.scales[0, 0], out_dtype=x.dtype, use_fast_accum=True
    )


def tiles(device: torch.device, weights: Weights) -> list[dict[str, Any]]:
    """Every tile that can do the product, the fastest first, to check the formula by; scales by row alone."""
    found = []
    for packed in _packed(device, weights):
        if packed.has_groups:
            continue
        one = packed.copies[0]
        for tokens in _given(device, _TILE_TOKENS):
            rows = [
                _row(f"{packed.name}, {tokens} tokens, {_described(tile)}", _few(tile), tokens, packed.copies)
                for tile in _TILES
                if _is_candidate(tile, tokens, one.weight.shape[1])
                and fits(tile, one.weight.shape[1], one.block_rows, packed.has_groups)
            ]
            found += sorted(rows, key=lambda row: row["value"])
    return found


def with_norm(device: torch.device, weights: Weights) -> list[dict[str, Any]]:
    """A norm that rounds and the product behind it, as a decode step has them; ATOM_EARLY_START says how they start."""
    found = []
    for packed in _packed(device, weights):
        width = packed.copies[0].weight.shape[1]
        scale = torch.ones(width, device=device, dtype=torch.bfloat16)
        for tokens in _given(device, _NORM_TOKENS):
            x = torch.randn(tokens, width, device=device).bfloat16()
            residual = torch.zeros_like(x)

            def step(x: Any = x, residual: Any = residual, scale: Any = scale, packed: Packed = packed) -> None:
                for one in packed.copies:
                    fp8_linear.fp8_linear(fp8_rms_norm(x, residual, scale, 1e-6, one), one)

            found.append(_timed(f"{packed.name}, {tokens} tokens, norm and product", step, packed.copies))
        found += _rounding(packed)
    return found


def _rounding(packed: Packed) -> list[dict[str, Any]]:
    """One token that a kernel rounds, and that the product rounds itself."""
    one = packed.copies[0]
    x = torch.randn(1, one.weight.shape[1], device=one.weight.device).bfloat16()

    def apart() -> None:
        for one in packed.copies:
            fp8_linear.fp8_linear(quantize_input(x, one.input_form), one)

    def together() -> None:
        for one in packed.copies:
            fp8_linear.fp8_linear(x, one)

    return [
        _timed(f"{packed.name}, 1 tokens, rounded by a kernel", apart, packed.copies),
        _timed(f"{packed.name}, 1 tokens, rounded by the product", together, packed.copies),
    ]


def layers_only(weights: Weights) -> Weights:
    """Those of the larger model without its head, which stays in 16 bits; all where none is named so."""
    return tuple(one for one in weights if one[0].startswith("8B") and not one[0].endswith("head")) or weights


def _given(device: torch.device, tokens: tuple[int, ...]) -> tuple[int, ...]:
    return tokens if device.type == "cuda" else _CPU_TOKENS


def _is_candidate(tile: Tile, tokens: int, width: int) -> bool:
    """Whether the tile does so many tokens, and no step is mostly beyond the inputs."""
    if tile.inputs >= 2 * width:
        return False
    if tile.stages:
        return tokens > 1
    return tokens <= _MOST_BY_THREADS and width <= _MAX_STEPS * tile.inputs


def _packed(device: torch.device, weights: Weights) -> Iterator[Packed]:
    """Each weight with scales by row and by 128 x 128; one copy on a CPU, where a graph is a call."""
    for name, outputs, width in weights:
        count = -(-_MANY_BYTES // (outputs * width)) if device.type == "cuda" else 1
        wide = (torch.randn(outputs, width, device=device, dtype=torch.bfloat16) for _ in range(count))
        rounded = [quantize(one, torch.float8_e4m3fn) for one in wide]
        blocks = torch.full((-(-outputs // GROUP), -(-width // GROUP)), 0.01, device=device)
        for kind, rows in (("by row", 1), ("in blocks", GROUP)):
            copies = [
                fp8_linear.fp8_linear_pack(weight, scales if rows == 1 else blocks, rows, None, torch.bfloat16)
                for weight, scales in rounded
            ]
            yield Packed(f"{name} {outputs} x {width}, {kind}", copies)


def _described(tile: Tile) -> str:
    by = f"tensor cores, {tile.stages} stages" if tile.stages else "threads"
    return f"{tile.outputs} x {tile.inputs} by {by}, {tile.num_warps} warps"


def _few(tile: Tile) -> Product:
    return lambda x, p: fp8_few(x, p.weight, p.scales, p.block_rows, p.bias, tile)


def _described_split(split: Split) -> str:
    return f"{split.tokens} x {split.outputs} in {split.parts} parts, {split.stages} stages, {split.num_warps} warps"


def _split(split: Split) -> Product:
    return lambda x, p: fp8_split(x, p.weight, p.scales, p.block_rows, p.bias, split)


def _row(name: str, product: Product, tokens: int, copies: list[PackedFloat8Linear]) -> dict[str, Any]:
    """Microseconds a product, and what that is in bytes of the weight a second."""
    weight = copies[0].weight
    x = torch.randn(tokens, weight.shape[1], device=weight.device).bfloat16()
    rounded = quantize_input(x, copies[0].input_form)

    def step() -> None:
        for one in copies:
            product(rounded, one)

    return _timed(name, step, copies)


def _timed(name: str, step: Callable[[], None], copies: list[PackedFloat8Linear]) -> dict[str, Any]:
    weight = copies[0].weight
    found = seconds_in_a_graph(step, weight.device) / len(copies)
    return {"name": name, "value": 1e6 * found, "unit": f"us, {weight.nbytes / found / 1e9:.0f} GB/s"}
