"""The engine and its kernels on one GPU, dummy weights, with the floors of the same run.

Cells have names, such as `0.6B B=1`, `8B prefill 1x8192`, `0.6B drawn B=1`, `8B profile B=256`, `kernel sample`:
ATOM_BENCH_CELLS is a list of them with commas, in which * stands for anything (`8B B=*`, `kernel *`); all by default.
ATOM_BENCH_SECONDS (540) ends a run: a cell that would not be done by then is left out, and listed.

Decode cells: Qwen3 shapes, 1024 tokens in and 128 out, greedy, milliseconds a token; the floor is all products of a
step in one graph, and the bytes of the KV cache at the measured bandwidth. A prefill's floor: its products, and the
operations of attention at the rate of a large product. `drawn` cells decode with temperature, top-p and top-k.
"""

from __future__ import annotations

import fnmatch
import gc
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from atom.model_engine.engine_core import EngineCore
from benchmarks.gpu_engine import (
    decode_kernels,
    decode_seconds,
    engine,
    mixed_seconds,
    prefill_kernels,
    prefill_seconds,
)
from benchmarks.gpu_shapes import ANSWER, PROMPT, SHAPES, Shape
from benchmarks.gpu_timing import ProductFloors, product_rate, read_bandwidth

_DEFAULT_SECONDS = 540.0
# For the estimates of a cell's time, low on purpose: operations a second of a prefill, seconds of a start.
_SLOW_RATE, _START = 3e14, 14.0
_PROFILED_ANSWER = 64
# Kernels that are compiled in many forms.
_KERNEL_SECONDS = {
    "kernel sample forms": 25.0, "kernel fp8 product": 40.0, "kernel fp8 norm and product": 15.0,
    "kernel fp8 tiles": 60.0,
    "kernel linear": 25.0, "kernel linear early": 15.0, "kernel linear tiles": 60.0, "kernel prefill attention": 20.0,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cell:
    """One measurement. kind: start, prefill, prefill profile, mixed, decode, drawn, profile or kernel; model: of
    SHAPES, or empty for a kernel."""

    name: str
    kind: str
    model: str = ""
    count: int = 0
    length: int = PROMPT

    def seconds(self) -> float:
        """What it takes, a model's start apart."""
        if self.kind == "kernel":
            return _KERNEL_SECONDS.get(self.name, 8.0)
        if self.kind in ("start", "mixed"):
            return 0.0 if self.kind == "start" else 1.5
        shape = SHAPES[self.model]
        weights = sum(n * k for n, k in shape.weights())
        operations = 2 * weights * self.count * self.length
        if self.kind in ("prefill", "prefill profile"):
            return 1 + 4 * operations / _SLOW_RATE
        return 2 + 2 * operations / _SLOW_RATE + 0.2 * shape.decode_bars.get(self.count, 20.0)


def all_cells() -> list[Cell]:
    """In the order in which they run: models one after the other, then kernels."""
    found = []
    for model, shape in SHAPES.items():
        found.append(Cell(f"{model} start", "start", model))
        found += [Cell(f"{model} prefill {n}x{length}", "prefill", model, n, length) for n, length in shape.prefills]
        found += [
            Cell(f"{model} prefill profile {n}x{length}", "prefill profile", model, n, length)
            for n, length in shape.profiled_prefills
        ]
        found += [Cell(f"{model} mixed {n}+{length}", "mixed", model, n, length) for n, length in shape.mixed]
        found += [Cell(f"{model} B={batch}", "decode", model, batch) for batch in shape.batches]
        found += [Cell(f"{model} drawn B={batch}", "drawn", model, batch) for batch in shape.drawn]
        found += [Cell(f"{model} profile B={batch}", "profile", model, batch) for batch in shape.profiled]
    kernels = (
        "sample", "sample forms",
        "mask_logits", "fp8 quantise", "fp8 product", "fp8 norm and product", "fp8 tiles", "decode splits",
        "decode fp8", "prefill attention", "prefill elementwise", "prefill attention cuDNN", "linear", "linear early",
        "linear tiles",
    )  # fmt: skip
    return [*found, *(Cell(f"kernel {name}", "kernel") for name in kernels)]


def choose(patterns: Sequence[str]) -> list[Cell]:
    """The cells that any pattern matches, in their order. ValueError for a pattern that matches none."""
    cells = all_cells()
    for pattern in patterns:
        if not any(fnmatch.fnmatchcase(cell.name, pattern) for cell in cells):
            names = ", ".join(cell.name for cell in cells)
            raise ValueError(f"ATOM_BENCH_CELLS: {pattern!r} is no cell; there are {names}")
    return [cell for cell in cells if any(fnmatch.fnmatchcase(cell.name, pattern) for pattern in patterns)]


def run() -> list[dict[str, Any]]:
    """Every row; ValueError without a GPU."""
    cells = choose([part.strip() for part in os.environ.get("ATOM_BENCH_CELLS", "*").split(",")])
    if not torch.cuda.is_available():
        raise ValueError("this benchmark needs a GPU")
    deadline = time.monotonic() + float(os.environ.get("ATOM_BENCH_SECONDS", _DEFAULT_SECONDS))
    machine = Machine.measured(torch.device("cuda"))
    rows = machine.rows()
    report(rows)
    for model in dict.fromkeys(cell.model for cell in cells if cell.model):
        of_model = [cell for cell in cells if cell.model == model]
        rows += tried(model, lambda model=model, of=of_model: measure_model(SHAPES[model], of, machine, deadline))
    for cell in cells:
        if cell.kind == "kernel":
            rows += tried(cell.name, lambda cell=cell: measure_kernel(cell, machine, deadline))
    return rows


def tried(name: str, measure: Callable[[], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The rows of `measure`. What fails has a row that says so, and its stack on stderr: a GPU's time is dear."""
    try:
        rows = measure()
    except Exception:
        traceback.print_exc()
        rows = report([row(f"{name}: FAILED", float("nan"), "")])
    # A model and its cache take nearly all memory; only now does nothing refer to them.
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return rows


@dataclass(frozen=True, slots=True)
class Machine:
    """What the device does at best, in this run: bytes and operations a second."""

    device: torch.device
    bandwidth: float
    rate: float

    @classmethod
    def measured(cls, device: torch.device) -> Machine:
        """A second's work."""
        return cls(device, read_bandwidth(device), product_rate(device))

    def rows(self) -> list[dict[str, Any]]:
        """As rows of the table."""
        return [
            row("memory, read", self.bandwidth / 1e9, "GB/s"),
            row("bf16 product, 8192^3", self.rate / 1e12, "TFLOP/s"),
        ]


def row(name: str, value: float, unit: str, bar: float | None = None) -> dict[str, Any]:
    """A row of the table."""
    return {"name": name, "value": value, "unit": unit, **({} if bar is None else {"bar": f"<= {bar:g}"})}


def report(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Show rows as they come, so that a run that is cut short has shown something; returns them."""
    for one in rows:
        print(f"  {one['name']:66} {one['value']:9.3f} {one['unit']} {one.get('bar', '')}", file=sys.stderr, flush=True)
    return rows


def left_out(cell: Cell, needed: float) -> list[dict[str, Any]]:
    """In place of a cell for which there was no time."""
    return report([row(f"{cell.name}: left out, it needs", needed, "s")])


def measure_model(
    shape: Shape, cells: Sequence[Cell], machine: Machine, deadline: float, **settings: Any
) -> list[dict[str, Any]]:
    """Cells of one model, in one engine."""
    needed = _START + min(cell.seconds() for cell in cells)
    if time.monotonic() + needed > deadline:
        return [one for cell in cells for one in left_out(cell, needed)]
    floors: dict[Cell, float] = {}

    def find_floors() -> list[dict[str, Any]]:
        floors.update(measure_floors(shape, cells, machine))
        return []

    rows = tried(f"{cells[0].model} floors", find_floors)
    started = time.monotonic()
    batches = [cell.count for cell in cells if cell.kind in ("decode", "drawn", "profile")]
    with engine(shape, machine.device, max([16, *batches]), **settings) as core:
        rows += report([row(f"{cells[0].model} start to ready", time.monotonic() - started, "s", shape.start_bar)])
        for cell in cells:
            if time.monotonic() + cell.seconds() > deadline:
                rows += left_out(cell, cell.seconds())
                continue
            rows += report(measure_cell(core, shape, cell))
            rows += report([row(f"{cell.name}, floor", floors[cell], "ms")] if cell in floors else [])
    return rows


def measure_cell(core: EngineCore, shape: Shape, cell: Cell) -> list[dict[str, Any]]:
    """In a running engine; nothing for its start."""
    if cell.kind == "prefill":
        bar = shape.prefill_bars.get((cell.count, cell.length))
        return [row(cell.name, 1e3 * prefill_seconds(core, shape, cell.count, cell.length), "ms", bar)]
    if cell.kind == "mixed":
        return [row(cell.name, 1e3 * mixed_seconds(core, shape, cell.count, cell.length), "ms")]
    if cell.kind in ("decode", "drawn"):
        is_random = cell.kind == "drawn"
        decode_seconds(core, shape, cell.count, 8, cell.length, is_random)
        found = decode_seconds(core, shape, cell.count, ANSWER, cell.length, is_random)
        return [row(cell.name, 1e3 * found, "ms", None if is_random else shape.decode_bars.get(cell.count))]
    if cell.kind == "profile":
        times = decode_kernels(core, shape, cell.count, _PROFILED_ANSWER, cell.length)
        return kernel_rows(cell, times)
    if cell.kind == "prefill profile":
        return kernel_rows(cell, prefill_kernels(core, shape, cell.count, cell.length))
    return []


def kernel_rows(cell: Cell, times: dict[str, float]) -> list[dict[str, Any]]:
    """Of a profile."""
    return [row(f"{cell.name}, {name[:90]}", 1e6 * value, "us") for name, value in times.items()]


def measure_floors(shape: Shape, cells: Sequence[Cell], machine: Machine) -> dict[Cell, float]:
    """Milliseconds that decode and prefill cells take at best."""
    measured = [cell for cell in cells if cell.kind in ("decode", "prefill")]
    found = {}
    if measured:
        products = ProductFloors(shape, machine.device)
        for cell in measured:
            if cell.kind == "decode":
                kept = shape.kv_bytes(cell.count * (cell.length + ANSWER // 2)) / machine.bandwidth
                found[cell] = 1e3 * (products.seconds(cell.count, cell.count) + kept)
            else:
                attention = cell.count * shape.attention_operations(cell.length) / machine.rate
                found[cell] = 1e3 * (products.seconds(cell.count * cell.length, cell.count) + attention)
        del products
        gc.collect()
        if machine.device.type == "cuda":
            torch.cuda.empty_cache()
    return found


def measure_kernel(cell: Cell, machine: Machine, deadline: float) -> list[dict[str, Any]]:
    """One of gpu_kernels.KERNELS."""
    if time.monotonic() + cell.seconds() > deadline:
        return left_out(cell, cell.seconds())
    from benchmarks.gpu_kernels import KERNELS, Bench, Sizes

    bench = Bench(machine.device, machine.bandwidth, Sizes())
    with torch.inference_mode():
        found = KERNELS[cell.name.removeprefix("kernel ")](bench)
    return report([{**one, "name": f"{cell.name}, {one['name']}"} for one in found])
