"""Products of a decode step's few tokens: the library's beside our own, at the rate at which they read the weight.

Each is measured in a graph over as many distinct weights as the second-level cache can not hold. Owns which tiles are
worth a comparison.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from atom.model_ops.kernels.triton import early
from atom.model_ops.kernels.triton.activation import silu_and_mul
from atom.model_ops.kernels.triton.linear import choose_tile
from atom.model_ops.kernels.triton.linear_few import (
    MAX_TOKENS,
    MAX_TOKENS_BY_THREADS,
    Tile,
    by_rows,
    by_tensor_cores,
    by_threads,
    few_linear,
)
from atom.model_ops.kernels.triton.norm import add_rms_norm, rms_norm
from benchmarks.gpu_shapes import SHAPES, Shape
from benchmarks.gpu_timing import seconds_in_a_graph

TOKENS = (1, 2, 4, 8, 16)
_EARLY_TOKENS = (*TOKENS, 32)
_TILE_TOKENS = (1, 4, 8, 16)
# Bytes of the weights of a graph, at least: several times the second-level cache of an H200.
_MANY_BYTES = 256 << 20
_MAX_STEPS = 8
# What the formula chooses from, and the nearest beside it.
_TILES = (
    by_threads(4, 1024, 2), by_threads(4, 2048, 4), by_threads(4, 4096, 8), by_threads(16, 512, 4),
    by_tensor_cores(8, 8, 6), by_tensor_cores(16, 8, 4),
    by_rows(16, 256, 1, 4), by_rows(32, 128, 2, 8), by_rows(32, 256, 4, 4), by_rows(64, 128, 4, 6),
)  # fmt: skip
# Lines of the weight that a program by tensor cores asks for before its turn; the default is between them.
_LINES = (0, 512)

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


# Beside the models that are measured, outputs between the few of one and the many of the other.
WEIGHTS = (*weights_of("0.6B", "8B"), ("1.7B down", 2048, 6144), ("4B o", 2560, 4096), ("4B down", 2560, 9728))


def linear(device: torch.device, weights: Weights) -> list[dict[str, Any]]:
    """The library's product and the one that the formula chooses."""
    found = []
    for name, copies in _copies(device, weights):
        for tokens in TOKENS:
            tile = choose_tile(tokens, *copies[0].shape)
            found.append(_row(f"{name}, {tokens} tokens, the library", F.linear, tokens, copies))
            if tile is not None:
                with _early("0"):
                    found.append(_row(f"{name}, {tokens} tokens, {_described(tile)}", _ours(tile), tokens, copies))
    return found


def linear_tiles(device: torch.device, weights: Weights) -> list[dict[str, Any]]:
    """Tiles that can do the product, the fastest first, to check the formula by."""
    found = []
    for name, copies in _copies(device, weights):
        width = copies[0].shape[1]
        for tokens in _TILE_TOKENS:
            with _early("0"):
                rows = [
                    _row(f"{name}, {tokens} tokens, {_described(tile)}", _ours(tile), tokens, copies)
                    for tile in _TILES
                    if _is_candidate(tile, tokens, width)
                ]
            found += sorted(rows, key=lambda row: row["value"])
    return found


def linear_early(device: torch.device, shapes: Mapping[str, Shape]) -> list[dict[str, Any]]:
    """Norms, products and activations of layers, one after the other: by the library and as chosen, late and early.

    Of more tokens than are multiplied by threads also early with other numbers of lines asked for, and with one tile.
    """
    found = []
    # The interpreter takes half a minute for a layer's products.
    counts = _EARLY_TOKENS if device.type == "cuda" else _EARLY_TOKENS[-1:]
    for name, layers in _layers(device, shapes):
        for tokens in counts:
            ways = {"the library": F.linear, "as chosen": _chosen()}
            for way, product in ways.items():
                with _early("0"):
                    found.append(_row(f"{name}, {tokens} tokens, {way}, late", _layer(product), tokens, layers))
            if 2 < tokens <= MAX_TOKENS:
                ways |= {f"as chosen, {lines} lines": _chosen(lines) for lines in _LINES}
                ways |= {_described(tile): _ours(tile) for tile in (by_rows(32, 128, 2, 8), by_rows(64, 128, 4, 6))}
            with _early("1"):
                found += [
                    _row(f"{name}, {tokens} tokens, {way}, early", _layer(product), tokens, layers)
                    for way, product in ways.items()
                ]
    return found


def _chosen(lines: int | None = None) -> Product:
    """What the formula chooses, where that is by tensor cores with so many lines asked for."""

    def product(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        tile = choose_tile(x.shape[0], *weight.shape) if x.shape[0] <= MAX_TOKENS else None
        if tile is None:
            return F.linear(x, weight)
        if lines is not None and tile.stages:
            tile = dataclasses.replace(tile, lines=lines)
        return few_linear(x, weight, None, tile, x.dtype)

    return product


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


def _layers(device: torch.device, shapes: Mapping[str, Shape]) -> Iterator[tuple[str, list[_Layer]]]:
    """Of each model: as many as the second-level cache can not hold, three at least."""
    for model, shape in shapes.items():
        sizes = shape.weights()[:4]
        count = max(3, -(-_MANY_BYTES // sum(2 * n * k for n, k in sizes))) if device.type == "cuda" else 1
        made = [
            _Layer(tuple(torch.randn(n, k, device=device, dtype=torch.bfloat16) / k**0.5 for n, k in sizes))
            for _ in range(count)
        ]
        yield f"{model} layer", made


def _layer(product: Product) -> Callable[[torch.Tensor, _Layer], torch.Tensor]:
    """A layer without attention, whose heads' outputs are the first of its projection."""

    def run(x: torch.Tensor, layer: _Layer) -> torch.Tensor:
        qkv, o, gate_up, down = layer.weights
        scale, residual = qkv[0], x
        heads = product(rms_norm(x, scale, 1e-6), qkv)[:, : o.shape[1]]
        normed = add_rms_norm(product(heads, o), residual, scale, 1e-6)
        return product(silu_and_mul(product(normed, gate_up)), down)

    return run


@contextlib.contextmanager
def _early(value: str) -> Iterator[None]:
    """ATOM_EARLY_START with this value, for kernels that are launched meanwhile."""
    name = "ATOM_EARLY_START"
    before = os.environ.get(name, "")
    os.environ[name] = value
    early.can_start_early.cache_clear()
    try:
        yield
    finally:
        os.environ[name] = before
        early.can_start_early.cache_clear()


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
    return lambda x, weight: few_linear(x, weight, None, tile, x.dtype)


def _row(name: str, product: Callable[[torch.Tensor, Any], Any], tokens: int, copies: list[Any]) -> dict[str, Any]:
    """Microseconds a product, and what that is in bytes of the weight a second."""
    device = copies[0].device
    x = torch.randn(tokens, copies[0].shape[1], device=device, dtype=torch.bfloat16)

    def step() -> None:
        for weight in copies:
            product(x, weight)

    found = seconds_in_a_graph(step, device) / len(copies)
    return {"name": name, "value": 1e6 * found, "unit": f"us, {copies[0].nbytes / found / 1e9:.0f} GB/s"}
