"""The GPU benchmark, as far as a CPU can tell: the names of its cells, that each of them runs, and its time limit."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from dataclasses import replace
from typing import Any

import pytest
import torch

from atom.model_engine.model_runner import ModelRunner
from benchmarks.gpu import Cell, Machine, all_cells, choose, measure_model, tried
from benchmarks.gpu_shapes import SHAPES, Shape

TINY = Shape(64, 2, 4, 96, True, {2: 1e6}, {(3, 20): 1e6}, kv_heads=2, head_dim=16, vocab=300)
MACHINE = Machine(torch.device("cpu"), 1e9, 1e9)
SETTINGS: dict[str, Any] = {
    "max_model_len": 256, "max_num_batched_tokens": 64, "kv_cache_memory": 8 << 20, "dtype": "float32",
}  # fmt: skip

# In a process of its own: the interpreter must be chosen before Triton is imported.
KERNELS = """
import torch
from benchmarks.gpu_decode import Model
from benchmarks.gpu_kernels import KERNELS, Bench, Sizes
from benchmarks.gpu_shapes import Shape
torch.set_num_threads(1)
sizes = Sizes(2, 5, 200, 128, 40, Model((4, 2), 16, 1), (("two", (70, 5)),), (("w", 16, 512),), (("m", 2, 1, 64),),
              ((2, 9),), {"t": Shape(64, 1, 4, 48, True, {}, {}, 2, 16)}, (3, 2), (1,), (("two", (70, 5)),))
bench = Bench(torch.device("cpu"), 1e9, sizes)
for name, measure in KERNELS.items():
    for row in measure(bench):
        assert row["value"] > 0, row
        print(name, row["name"], sep=": ")
"""


def test_every_cell_of_the_table_is_there_with_its_bar() -> None:
    names = {cell.name for cell in all_cells()}
    measured = [shape for shape in SHAPES.values() if shape.batches]
    assert {f"{model} B={batch}" for model, shape in SHAPES.items() for batch in shape.batches} <= names
    assert all(shape.batches == (1, 8, 32, 128, 256) for shape in measured)
    assert {"0.6B prefill 1x128", "0.6B mixed 8+128", "8B fp8 KV B=32", "8B fp8 weights prefill 8x2048"} <= names
    assert {"0.6B profile B=1", "8B profile B=256", "8B start", "0.6B prefill 1x128", "kernel decode splits"} <= names
    assert len(names) == len(all_cells())
    assert [shape.decode_bars[256] for shape in measured] == [9.5, 18.0, 15.0, 15.8]


def test_patterns_choose_cells_in_their_order() -> None:
    assert [cell.name for cell in choose(["8B B=1", "0.6B B=8", "8B B=1"])] == ["0.6B B=8", "8B B=1"]
    assert [cell.name for cell in choose(["0.6B prefill *"])][:2] == ["0.6B prefill 1x8192", "0.6B prefill 8x2048"]
    with pytest.raises(ValueError, match=r"ATOM_BENCH_CELLS: '9B' is no cell; there are 0\.6B start, "):
        choose(["0.6B *", "9B"])


@pytest.mark.parametrize("kinds", [{}, {"kv_cache_dtype": "fp8"}, {"quantization": "fp8"}])
def test_a_model_is_measured(kinds: dict[str, Any]) -> None:
    torch.set_num_threads(1)
    cells = [
        Cell("t start", "start", "0.6B"), Cell("t prefill", "prefill", "0.6B", 3, 20),
        Cell("t mixed", "mixed", "0.6B", 2, 9), Cell("t B=2", "decode", "0.6B", 2, 16),
        Cell("t drawn", "drawn", "0.6B", 2, 16), Cell("t profile", "profile", "0.6B", 2, 16),
        Cell("t long", "prefill profile", "0.6B", 3, 20),
    ]  # fmt: skip
    shape = replace(TINY, **kinds)
    rows = measure_model(shape, cells if not kinds else cells[:2], MACHINE, time.monotonic() + 1e6, **SETTINGS)
    found = {row["name"]: row for row in rows}
    assert all(row["value"] > 0 for row in rows)
    assert found["t prefill"]["bar"] == "<= 1e+06"
    assert {"0.6B start to ready", "t prefill, floor"} <= found.keys()
    if not kinds:
        assert {"t mixed", "t drawn", "t B=2", "t B=2, floor"} <= found.keys()
        assert {"t profile, the step", "t profile, all kernels"} <= found.keys()
        assert {"t long, the step", "t long, all kernels"} <= found.keys()


def model_runners() -> list[ModelRunner]:
    return [x for x in gc.get_objects() if type(x) is ModelRunner]


@pytest.mark.parametrize("fails", [False, True])
def test_a_model_leaves_its_memory_to_the_next(fails: bool) -> None:
    others = {id(runner) for runner in model_runners()}  # of other tests
    cells = [Cell("t prefill", "prefill", "0.6B", 1, 9 if not fails else 10_000)]
    rows = tried("t", lambda: measure_model(TINY, cells, MACHINE, time.monotonic() + 1e6, **SETTINGS))
    assert any("FAILED" in row["name"] for row in rows) is fails
    assert not [runner for runner in model_runners() if id(runner) not in others]


def test_what_there_is_no_time_for_is_listed() -> None:
    cells = choose(["8B B=1", "8B B=256"])
    rows = measure_model(SHAPES["8B"], cells, MACHINE, time.monotonic() + 5)
    assert [row["name"] for row in rows] == [f"8B B={n}: left out, it needs" for n in (1, 256)]


def test_a_failure_is_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = tried("8B", lambda: [{}][1:][0])
    assert row["name"] == "8B: FAILED"
    assert "IndexError" in capsys.readouterr().err


def test_kernels_run_under_the_interpreter() -> None:
    pytest.importorskip(
        "triton",
        minversion="3.9",
        reason="Triton 3.9 is not installed: interpreters before it lack e4m3fnuz and constants in bfloat16",
    )
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(
        [sys.executable, "-c", KERNELS], env=environment, capture_output=True, text=True, timeout=280, check=False
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    names = [cell.name.removeprefix("kernel ") for cell in all_cells() if cell.kind == "kernel"]
    assert list(dict.fromkeys(line.split(": ")[0] for line in ran.stdout.splitlines())) == names
    assert "decode splits: two, fp8 cache, uneven, chosen" in ran.stdout
    assert "prefill attention: m 2x9, torch, rate" in ran.stdout
    assert "prefill elementwise: t, 3 tokens, silu_and_mul, 1024 values, 4 warps, in order" in ran.stdout
    assert "linear: w 16 x 512, 8 tokens, the library" in ran.stdout
    assert "linear tiles: w 16 x 512, 1 tokens, 16 x 512 by threads, 4 warps" in ran.stdout
