"""The Triton kernels on a GPU, the same checks that the interpreter runs."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed")

from tests.kernels.triton.checks import CHECKS


@pytest.mark.gpu
@pytest.mark.parametrize("name", CHECKS)
def test_kernel_on_the_gpu(name: str) -> None:
    torch.manual_seed(7)
    CHECKS[name](torch.device("cuda"))
