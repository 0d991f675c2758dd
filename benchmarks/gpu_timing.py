"""How long work on a GPU takes, and what it does at best: reading memory, products.

On a CPU, where tests call this, work is timed once: the figures mean nothing there.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from benchmarks.gpu_shapes import Shape


def seconds(function: Callable[[], Any], device: torch.device, repeats: int = 10) -> float:
    """Median time of a call on the device."""
    if device.type != "cuda":
        begun = time.perf_counter()
        function()
        return time.perf_counter() - begun
    for _ in range(3):
        function()
    times = []
    for _ in range(repeats):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        function()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / 1e3)
    return statistics.median(times)


def seconds_in_a_graph(function: Callable[[], Any], device: torch.device, calls: int = 1, repeats: int = 10) -> float:
    """The same of a call in a captured graph of `calls` calls, without the host's part."""
    if device.type != "cuda":
        return seconds(function, device)
    function()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            function()
    return seconds(graph.replay, device, repeats) / calls


def read_bandwidth(device: torch.device, size: int = 1 << 30) -> float:
    """Bytes a second that a sum over so many floats reads."""
    data = torch.randn(size, device=device)
    return data.numel() * 4 / seconds(lambda: data.sum(), device)


def product_rate(device: torch.device, size: int = 8192) -> float:
    """Operations a second of a large bf16 product of random numbers."""
    a, b = (torch.randn(size, size, device=device, dtype=torch.bfloat16) for _ in range(2))
    return 2 * size**3 / seconds(lambda: a @ b, device)


class ProductFloors:
    """What all products of a step take, weights distinct, in one graph. Its weights are freed with it."""

    def __init__(self, shape: Shape, device: torch.device) -> None:
        self._device = device
        self._weights = [torch.randn(n, k, device=device, dtype=torch.bfloat16) for n, k in shape.weights()]
        if shape.quantization is not None:
            self._weights[:-1] = [weight.to(torch.float8_e4m3fn) for weight in self._weights[:-1]]

    @torch.inference_mode()
    def seconds(self, rows: int, head_rows: int) -> float:
        """Of a step of so many tokens, of which so many go through the head."""
        *layers, head = self._weights
        inputs = {k: self._random(rows, k) for k in {weight.shape[1] for weight in layers}}
        products = [product(inputs[weight.shape[1]], weight) for weight in layers]
        products.append(product(self._random(head_rows, head.shape[1]), head))

        def step() -> None:
            for call in products:
                call()

        found = seconds_in_a_graph(step, self._device, repeats=10 if rows < 1024 else 3)
        gc.collect()
        return found

    def _random(self, rows: int, width: int) -> torch.Tensor:
        return torch.randn(rows, width, device=self._device, dtype=torch.bfloat16)


def product(x: torch.Tensor, weight: torch.Tensor) -> Callable[[], torch.Tensor]:
    """The product by the library; of an fp8 weight, with an input that is fp8 already and scales by row."""
    if weight.dtype == torch.bfloat16:
        return lambda: F.linear(x, weight)
    by_token, by_output = (torch.ones(len(rows), 1, device=x.device) for rows in (x, weight))
    rounded = x.to(weight.dtype)
    return lambda: torch._scaled_mm(
        rounded, weight.t(), by_token, by_output.t(), out_dtype=x.dtype, use_fast_accum=x.is_cuda
    )
