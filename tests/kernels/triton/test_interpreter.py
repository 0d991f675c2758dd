"""The Triton kernels on the CPU, in Triton's interpreter, which must be chosen before Triton is imported."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip(
    "triton",
    minversion="3.9",
    reason="Triton 3.9 is not installed: interpreters before it lack e4m3fnuz and constants in bfloat16",
)

from tests.kernels.triton.checks import CHECKS

_PARTS = 2


@pytest.mark.parametrize("part", range(_PARTS))
def test_kernels_under_the_interpreter(part: int) -> None:
    names = list(CHECKS)[part::_PARTS]
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.kernels.triton.checks", "cpu", *names]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=580, check=False)
    passed = [line.removeprefix("passed: ") for line in ran.stdout.splitlines()]
    assert ran.returncode == 0, f"failed after {passed}:\n{ran.stderr[-3000:]}"
    assert passed == names
