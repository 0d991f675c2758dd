"""The stand-in for AITER, and the kernels that `select` takes with it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from atom.model_ops.kernels.select import Kernels, select_kernels
from tests.kernels.aiter.stand_in import StandIn, installed


@pytest.fixture
def aiter() -> Iterator[StandIn]:
    with installed() as stand_in:
        yield stand_in


@pytest.fixture
def kernels(aiter: StandIn) -> Kernels:
    return select_kernels("rocm")
