"""Products of a decode step's few tokens: the library's beside our own, at the rate at which they read the weight.

Each is measured in a graph over as many distinct weights as the second-level cache can not hold. Owns which tiles are
worth a comparison.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from atom.model_ops.kernels.triton import early
from atom.model_ops.kernels.triton.activation import silu_and_mul
from atom.model_ops.kernels.triton.linear import PackedLinear, choose_tile
from atom.model_ops.kernels.triton.linear import linear as linear_of
from atom.model_ops.kernels.triton.linear_few import (
    MAX_TOKENS_BY_THREADS,
    Tile,
    by_rows,
    by_tensor_cores,
    by_threads,
    few_linear,
)
from atom.model_ops.kernels.triton.norm import add_rms_norm, rms_norm
from benchmarks.gpu_shapes import SHAPES
from benchmarks.gpu_timing import seconds_in_a_graph

TOKENS = (1, 2, 4, 8, 16)
_TILE_TOKENS = (1, 4, 8, 16)
_EARLY_TOKENS = (1, 8)
# Bytes of the weights of a graph, at least: several times the second-level cache of an H200.
_MANY_BYTES = 256 << 20
_MAX_STEPS = 8
_TILES = (
    by_threads(8, 1024, 4), by_threads(4, 1024, 2), by_threads(4, 2048, 4), by_threads(2, 4096, 4),
    by_threads(4, 4096, 8), by_threads(8, 2048, 8), by_threads(16, 512, 4),
    by_tensor_cores(8, 8, 6), by_tensor_cores(16, 8, 4), by_tensor_cores(32, 4, 4), by_tensor_cores(32, 8, 4),
    by_tensor_cores(64, 4, 3),
    by_rows(16, 256, 1, 4), by_rows(16, 256, 2, 6), by_rows(16, 512, 4, 4), by_rows(32, 128, 2, 8),
    by_rows(32, 256, 2, 4), by_rows(32, 256, 4, 4), by_rows(32, 512, 4, 3), by_rows(64, 64, 4, 12),
    by_rows(64, 128, 4, 6), by_rows(64, 256, 4, 4), by_rows(128, 64, 8, 8),
)  # fmt: skip
# Those of them that are tried behind a norm, too.
_TILES_EARLY = (by_rows(16, 256, 1, 4), by_rows(32, 256, 2, 4), by_rows(64, 128, 4, 6))

# Name, outputs and inputs of a weight.
Weights = tuple[tuple[str, int, int], ...]
Product = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def weights_of(*models: str) -> Weights:
    """Those of one layer, and the head."""
    names = ("qkv", "o", "gate_up", "down")
    found = []
    for model in models:
        weights = SHAPES[model].weights()
        named = [*zip(names, weights, strict=False), ("head", weights[-1])]
        found += [(f"{model} {name}", *size) for name, size in named]
    return tuple(found)


WEIGHTS = weights_of("0.6B", "8B")


def linear(device: torch.device, weights: Weights) -> list[dict[str, Any]]:
    """The library's product and the one that the formula chooses."""
    found = []
    for name, copies in _copies(device, weights):
        for tokens in TOKENS:
            tile = choose_tile(tokens, *copies[0].shape)
            found.append(_row(f"{name}, {tokens} tokens, the library", F.linear, tokens, copies))
            if tile is not None:
                with _environment("ATOM_EARLY_START", "0"):
                    found.append(_row(f"{name}, {tokens} tokens, {_described(tile)}", _ours(tile), tokens, copies))
    return found


def linear_tiles(device: torch.device, weights: Weights) -> list[dict[str, Any]]:
    """Every tile that can do the product, the fastest first, to check the formula by."""
    found = []
    for name, copies in _copies(device, weights):
        width = copies[0].shape[1]
        for tokens in _TILE_TOKENS:
            with _environment("ATOM_EARLY_START", "0"):
                rows = [
                    _row(f"{name}, {tokens} tokens, {_described(tile)}", _ours(tile), tokens, copies)
                    for tile in _TILES
                    if _is_candidate(tile, tokens, width)
                ]
            found += sorted(rows, key=lambda row: row["value"])
    return found


def linear_early(device: torch.device, weights: Weights) -> list[dict[str, Any]]:
    """Norms, products and activations of layers, one after the other and in every form of early starts.

    By the library, by what the formula chooses and by one tile alone where it can; then a norm and one product.
    """
    found = []
    for name, layers in _layers(device, weights):
        for tokens in TOKENS:
            ways: dict[str, Product] = {"the library": F.linear, "as chosen": _chosen}
            ways |= {_described(tile): _ours(tile) for tile in _TILES_EARLY if tokens > 1}
            for way, product in ways.items():
                found += _in_forms(f"{name}, {tokens} tokens, {way}", _layer(product), tokens, layers)
    for name, copies in _copies(device, weights):
        width = copies[0].shape[1]
        for tokens in _EARLY_TOKENS:
            tiles = [tile for tile in _TILES_EARLY if _is_candidate(tile, tokens, width)]
            ways = {"the library": F.linear, "as chosen": _chosen, **{_described(tile): _ours(tile) for tile in tiles}}
            for way, product in ways.items():
                named = f"{name}, {tokens} tokens, norm and {way}"
                found += _in_forms(named, _normed(product, width, device), tokens, copies)
    return found


def _in_forms(
    name: str, product: Callable[[torch.Tensor, Any], Any], tokens: int, copies: list[Any]
) -> list[dict[str, Any]]:
    """Late, and early in each form."""
    found = []
    for form in range(4):
        with _environment("ATOM_EARLY_START", "1" if form else "0", form or early.FORM):
            found.append(_row(f"{name}, {f'early {form}' if form else 'late'}", product, tokens, copies))
    return found


def _chosen(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return linear_of(x, PackedLinear(weight, None))


@dataclass(frozen=True)
class _Layer:
    """A layer's four weights, as one for `_row`."""

    weights: tuple[torch.Tensor, ...]

    @property
    def nbytes(self) -> int:
        return sum(weight.nbytes for weight in self.weights)

    @property
    def device(self) -> torch.device:
        return self.weights[0].device

    @property
    def shape(self) -> torch.Size:
        return self.weights[0].shape


def _layers(device: torch.device, weights: Weights) -> Iterator[tuple[str, list[_Layer]]]:
    """Of each model in `weights`: as many layers as the second-level cache can not hold, three at least."""
    for first in range(0, len(weights) - 3, 5):
        sizes = weights[first : first + 4]
        layer_bytes = sum(2 * outputs * width for _, outputs, width in sizes)
        count = max(3, -(-_MANY_BYTES // layer_bytes)) if device.type == "cuda" else 1
        made = [
            _Layer(tuple(torch.randn(n, k, device=device, dtype=torch.bfloat16) / k**0.5 for _, n, k in sizes))
            for _ in range(count)
        ]
        yield f"{sizes[0][0].split()[0]} layer", made


def _layer(product: Product) -> Callable[[torch.Tensor, _Layer], torch.Tensor]:
    """A layer without attention, whose heads' outputs are the first of its projection."""

    def run(x: torch.Tensor, layer: _Layer) -> torch.Tensor:
        qkv, o, gate_up, down = layer.weights
        scale, residual = qkv[0], x
        heads = product(rms_norm(x, scale, 1e-6), qkv)[:, : o.shape[1]]
        normed = add_rms_norm(product(heads, o), residual, scale, 1e-6)
        return product(silu_and_mul(product(normed, gate_up)), down)

    return run


def _normed(product: Product, width: int, device: torch.device) -> Product:
    scale = torch.ones(width, device=device, dtype=torch.bfloat16)
    return lambda x, weight: product(rms_norm(x, scale, 1e-6), weight)


@contextlib.contextmanager
def _environment(name: str, value: str, form: int = 1) -> Iterator[None]:
    """The variable with this value, and early starts in this form, for kernels that are launched meanwhile."""
    before, form_before = os.environ.get(name, ""), early.FORM
    os.environ[name], early.FORM = value, form
    early.starts_early.cache_clear()
    try:
        yield
    finally:
        os.environ[name], early.FORM = before, form_before
        early.starts_early.cache_clear()


def _is_candidate(tile: Tile, tokens: int, width: int) -> bool:
    """Whether the tile may be good for so many tokens, and no step is mostly beyond the inputs."""
    if tile.inputs >= 2 * width:
        return False
    if tile.stages:
        return tokens > 1
    return tokens <= MAX_TOKENS_BY_THREADS and width <= _MAX_STEPS * tile.inputs


def _copies(device: torch.device, weights: Weights) -> Iterator[tuple[str, list[torch.Tensor]]]:
    """Each weight as often as a graph needs it; one on a CPU, where a graph is a call."""
    for name, outputs, width in weights:
        count = -(-_MANY_BYTES // (2 * outputs * width)) if device.type == "cuda" else 1
        yield (
            f"{name} {outputs} x {width}",
            [torch.randn(outputs, width, device=device, dtype=torch.bfloat16) for _ in range(count)],
        )


def _described(tile: Tile) -> str:
    size = f"{tile.outputs} x {tile.inputs}"
    if not tile.stages:
        return f"{size} by threads, {tile.num_warps} warps"
    return f"{size} by {'tensor cores' if tile.shares_inputs else 'rows'}, {tile.stages} stages, {tile.num_warps} warps"


def _ours(tile: Tile) -> Product:
    return lambda x, weight: few_linear(x, weight, None, tile)


def _row(name: str, product: Callable[[torch.Tensor, Any], Any], tokens: int, copies: list[Any]) -> dict[str, Any]:
    """Microseconds a product, and what that is in bytes of the weight a second."""
    device = copies[0].device
    x = torch.randn(tokens, copies[0].shape[1], device=device, dtype=torch.bfloat16)

    def step() -> None:
        for weight in copies:
            product(x, weight)

    found = seconds_in_a_graph(step, device) / len(copies)
    return {"name": name, "value": 1e6 * found, "unit": f"us, {copies[0].nbytes / found / 1e9:.0f} GB/s"}
