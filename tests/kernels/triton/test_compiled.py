"""The Triton kernels compile for GPUs of both makers, without one: types, layouts, shared memory."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("triton")

FEW = ("Qwen3 8B", "window, sinks", "fp8 cache", "balanced")


@pytest.mark.parametrize(("target", "shapes"), [("sm90", ()), ("gfx942", FEW), ("gfx950", FEW)])
def test_kernels_compile(target: str, shapes: tuple[str, ...]) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    environment.pop("TRITON_INTERPRET", None)
    command = [sys.executable, "-m", "tests.kernels.triton.compiled", target, *shapes]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    kernels = {line.split()[0] for line in ran.stdout.splitlines()}
    assert {"_rms_norm", "_silu_and_mul", "_qkv_rope_write", "_decode", "_prefill", "_slice_argmax"} <= kernels
    assert {"_quantize", "_fp8_product"} <= kernels
