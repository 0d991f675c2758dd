"""The Triton kernels compile for GPUs of both makers, without one: types, layouts, shared memory."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("triton", reason="Triton is not installed")

from tests.kernels.triton.compiled import SHAPES

# With nothing in Triton's cache, on a machine that is slow and busy.
TIMEOUT = 580
pytestmark = pytest.mark.timeout(TIMEOUT + 20)
ALL = (*SHAPES,)
DECODES = ("_decode", "_join", "_share_out", "_decode_shared", "_join_shared")
FP8_SPLIT = ("_fp8_part", "_fp8_add_parts")
FEW = ("Qwen3 8B", "window, sinks", "fp8 cache")


def compiled(*arguments: str) -> list[str]:
    """The lines that a process of its own prints."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    environment.pop("TRITON_INTERPRET", None)
    command = [sys.executable, "-m", "tests.kernels.triton.compiled", *arguments]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return ran.stdout.splitlines()


@pytest.mark.parametrize(
    ("target", "shapes"), [("sm90", ALL[::2]), ("sm90", ALL[1::2]), ("gfx942", FEW), ("gfx950", FEW)]
)
def test_kernels_compile(target: str, shapes: tuple[str, ...]) -> None:
    kernels = {line.split()[0] for line in compiled(target, *shapes)}
    assert {"_rms_norm", "_silu_and_mul", "_qkv_rope_write", "_prefill", "_slice_argmax"} <= kernels
    assert set(DECODES) <= kernels
    assert ("_fresh_prefill" in kernels) == (target == "sm90")
    assert {"_quantize", "_fp8_product", "_fp8_by_threads", "_fp8_by_tensor_cores", *FP8_SPLIT} <= kernels
    assert {"_linear_by_threads", "_linear_by_tensor_cores", "_linear_by_rows"} <= kernels


def test_kernels_start_early_where_a_gpu_can(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("_rms_norm", "_add_rms_norm", "_silu_and_mul", "_qkv_rope_write", *DECODES)
    products = ("_linear_by_threads", "_linear_by_tensor_cores", "_linear_by_rows")
    fp8 = ("_quantize", "_fp8_product", "_fp8_rms_norm", "_fp8_silu_and_mul", "_fp8_by_threads", "_fp8_by_tensor_cores")
    wanted = {*names, *products, *fp8, *FP8_SPLIT}
    let_next, wait = "griddepcontrol.launch_dependents", "griddepcontrol.wait"
    monkeypatch.setenv("ATOM_EARLY_START", "1")
    for target, has_orders in (("sm90", True), ("gfx942", False)):
        found: dict[str, set[tuple[str, ...]]] = {}
        for line in compiled(target, "--early"):
            name, *steps = line.split()
            found.setdefault(name, set()).add((*steps,))
        assert found.keys() == wanted
        at_once, after = ((let_next, wait), (wait, let_next)) if has_orders else ((), ())
        # By rows: up to two let the next one start at once.
        assert found["_rms_norm"] == {at_once, after}
        # What reads before it waits reads weights: nothing else is there already.
        reads = {"_linear_by_threads", "_fp8_by_threads", "_fp8_rms_norm"} if has_orders else set()
        for name, orders in found.items():
            read = ("ld",) if name in reads else ()
            assert orders <= {at_once + read, after + read}, name
            assert name not in (*products, "_silu_and_mul") or orders == {at_once + read}, name


def test_one_kernel_serves_any_batch_size() -> None:
    """A size that no graph has must not compile anything while requests wait; two forms of fp8 are two kernels."""
    found = dict(line.split() for line in compiled("sm90", "--variants"))
    two = {"_quantize", "_fp8_product", "_fp8_rms_norm", "_fp8_silu_and_mul", *FP8_SPLIT}
    assert two | {*DECODES, "_draw", "_uniform", "_mask"} <= found.keys()
    assert {name: int(count) for name, count in found.items()} == {name: 1 + (name in two) for name in found}
