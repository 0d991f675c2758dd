"""Products of a decode step's few tokens: the library's beside our own, at the rate at which they read the weight.

Each is measured in a graph over as many distinct weights as the second-level cache can not hold. Owns which tiles are
worth a comparison.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F

from atom.model_ops.kernels.triton.early import starts_early
from atom.model_ops.kernels.triton.linear import choose_tile
from atom.model_ops.kernels.triton.linear_few import (
    MAX_TOKENS_BY_THREADS,
    Tile,
    by_rows,
    by_tensor_cores,
    by_threads,
    few_linear,
)
from atom.model_ops.kernels.triton.norm import rms_norm
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
    """A norm that starts early and the product behind it: the library's, ours after the norm, ours early."""
    found = []
    for name, copies in _copies(device, weights):
        width = copies[0].shape[1]
        for tokens in _EARLY_TOKENS:
            name_with_tokens = f"{name}, {tokens} tokens, norm and"
            chosen = choose_tile(tokens, *copies[0].shape)
            tiles = dict.fromkeys(
                tile for tile in (chosen, *_TILES_EARLY) if tile and _is_candidate(tile, tokens, width)
            )
            with _environment("ATOM_EARLY_START", "1"):
                by_library = _normed(F.linear, width, device)
                found.append(_row(f"{name_with_tokens} the library", by_library, tokens, copies))
            for tile in tiles:
                normed = _normed(_ours(tile), width, device)
                for kind, is_on in (("one after the other", "0"), ("early", "1")):
                    with _environment("ATOM_EARLY_START", is_on):
                        found.append(_row(f"{name_with_tokens} {_described(tile)}, {kind}", normed, tokens, copies))
    return found


def _normed(product: Product, width: int, device: torch.device) -> Product:
    scale = torch.ones(width, device=device, dtype=torch.bfloat16)
    return lambda x, weight: product(rms_norm(x, scale, 1e-6), weight)


@contextlib.contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    """The variable with this value, for kernels that are launched meanwhile."""
    before = os.environ.get(name, "")
    os.environ[name] = value
    starts_early.cache_clear()
    try:
        yield
    finally:
        os.environ[name] = before
        starts_early.cache_clear()


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


def _row(name: str, product: Product, tokens: int, copies: list[torch.Tensor]) -> dict[str, Any]:
    """Microseconds a product, and what that is in bytes of the weight a second."""
    device = copies[0].device
    x = torch.randn(tokens, copies[0].shape[1], device=device, dtype=torch.bfloat16)

    def step() -> None:
        for weight in copies:
            product(x, weight)

    found = seconds_in_a_graph(step, device) / len(copies)
    return {"name": name, "value": 1e6 * found, "unit": f"us, {copies[0].nbytes / found / 1e9:.0f} GB/s"}
