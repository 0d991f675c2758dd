"""--level: the same greedy tokens at every level, what is compiled at which, and what happens without a compiler."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from atom.config import Config
from atom.model_engine.model_runner import compilation_level
from atom.model_ops.kernels.compiled.functions import compiled_kernels
from atom.model_ops.kernels.compiled.pieces import CompilerMissing, check_compiler
from atom.model_ops.kernels.reference.attention import weighted_values
from atom.model_ops.kernels.reference.plan import DecodeGroup, Plan
from atom.model_ops.kernels.select import select_kernels
from atom.model_ops.step import StepInputs
from tests.kernels.test_attention import CASES
from tests.kernels.test_attention import run as attention_error
from tests.models.drive import Driver, make_runner
from tests.models.tiny import make_model, save_model

CPU = torch.device("cpu")


def has_compiler() -> bool:
    try:
        check_compiler(3)
    except CompilerMissing:
        return False
    return True


needs_compiler = pytest.mark.skipif(not has_compiler(), reason="Inductor finds no C++ compiler here")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(make_model("qwen3-tied"), tmp_path_factory.mktemp("model"))


def tokens(folder: Path, **settings: Any) -> list[list[int]]:
    """Greedy tokens of prompts of different length, in chunks, so that some decode while others are still read."""
    driver = Driver(make_runner(folder, max_model_len=128, **settings))
    running = [driver.add(list(range(1, 4 + 20 * index))) for index in range(3)]
    driver.generate(running, 16, chunk=17)
    return [sequence.output for sequence in running]


@pytest.mark.parametrize("level", [1, pytest.param(3, marks=needs_compiler)])
def test_greedy_tokens_do_not_depend_on_the_level(folder: Path, level: int) -> None:
    assert tokens(folder, level=level) == tokens(folder, level=0)


@needs_compiler
@pytest.mark.parametrize("name", ["mixed", "decodes of very different length", "decodes with drafts", "a cap"])
def test_compiled_attention(name: str) -> None:
    """With what no formula covers going to the reference."""
    kernels = compiled_kernels(select_kernels("cpu"), 3, CPU)
    assert attention_error(kernels, CASES[name]) < 2e-5
    assert attention_error(kernels, CASES[name], torch.bfloat16, poison=100.0) < 3e-2


def test_values_at_the_end_of_the_cache() -> None:
    """torch's sum of embeddings skips a row if told to, and takes -1 for the last one."""
    cache = torch.randn(2, 2, 1, 4, 16)
    group = DecodeGroup(None, torch.tensor([[1]], dtype=torch.int32), torch.tensor([4]))
    nothing = torch.zeros(1, dtype=torch.int64)
    lens = np.array([4], dtype=np.int32)
    step = StepInputs(nothing, nothing, nothing, group.block_ids, lens - 1, lens // 4, 1, 1, 4)
    found = weighted_values(torch.ones(1, 2, 4), cache, Plan(step, [group], [], []), group)
    assert torch.allclose(found.view(2, 16), cache[1, 1, 0].sum(0).expand(2, -1), atol=1e-6)


@needs_compiler
def test_what_is_compiled_at_which_level() -> None:
    kernels = select_kernels("cpu")
    compiled = {
        level: {name for name, backend in compiled_kernels(kernels, level, CPU).choice.items() if "compiled" in backend}
        for level in range(4)
    }
    assert compiled[0] == set()
    assert compiled[2] == {"rms_norm", "add_rms_norm", "silu_and_mul", "qkv_rope_write"}
    assert compiled[1] == compiled[3] == {*compiled[2], "attention_decode"}


def test_other_backends_and_what_was_asked_for_are_left_alone() -> None:
    kernels = select_kernels("cpu")
    kernels.choice["rms_norm"] = "triton"
    compiled = compiled_kernels(kernels, 1, CPU, asked_for={"silu_and_mul"})
    assert {name for name in compiled.choice if compiled[name] is not kernels[name]} == {
        "add_rms_norm",
        "qkv_rope_write",
        "attention_decode",
    }


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    monkeypatch.setattr("torch._inductor.config.cpp.cxx", ("no-such-compiler",))
    with pytest.raises(CompilerMissing, match="--level 2 on a CPU needs a C\\+\\+ compiler"):
        compiled_kernels(select_kernels("cpu"), 2, CPU)


def test_the_level_of_a_device(folder: Path) -> None:
    def level(device: str, **settings: Any) -> int:
        return compilation_level(Config.resolve(str(folder), **settings), torch.device(device))

    assert (level("cpu"), level("cuda")) == (0, 3)
    assert (level("cpu", level=2), level("cuda", level=0)) == (2, 0)
    assert level("cpu", level=3, enforce_eager=True) == 0
