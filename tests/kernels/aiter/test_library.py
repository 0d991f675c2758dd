"""Where AITER can be had and where not; every call of a wrapper is in the contract, and says so there."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from pathlib import Path

import pytest
import torch
from atom_spec.aiter import CALLABLES, FP8_DTYPES

from atom.model_ops.kernels.select import select_kernels
from atom.model_ops.kernels.table import TABLE
from tests.kernels.aiter.stand_in import StandIn, installed

WRAPPERS = Path(__file__).parents[3] / "atom/model_ops/kernels/aiter"
# What the GPU of the fixtures, gfx942, has no kernels for.
OF_GFX950 = {"fp4_linear_pack", "fp4_linear"}
OPERATIONS = [operation for operation, row in TABLE.items() if "aiter" in row and operation not in OF_GFX950]


def loads() -> dict[str, set[str]]:
    """Names that each wrapper module loads."""
    found: dict[str, set[str]] = {}
    for path in sorted(WRAPPERS.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "load":
                assert isinstance(node.args[0], ast.Constant)
                found.setdefault(node.args[0].value, set()).add(path.stem)
    return found


def test_the_contract_names_the_callers() -> None:
    declared = {item.name: set(item.caller.split(", ")) for item in CALLABLES.values() if item.caller}
    assert declared == loads()


def test_the_backend_is_chosen_where_it_can_be_had(aiter: StandIn) -> None:
    kernels = select_kernels("rocm")
    assert [op for op in OPERATIONS if kernels.choice[op] != "aiter"] == []
    assert {kernels.choice[op] for op in ("greedy_sample", "sample")} <= {"triton", "reference"}


def test_fp4_is_chosen_on_the_gpu_that_has_it(aiter: StandIn) -> None:
    assert {select_kernels("rocm").choice[op] for op in OF_GFX950} == {"reference"}
    with pytest.raises(ValueError, match="AITER has fp4 products on gfx950, and this GPU is gfx942"):
        select_kernels("rocm", "fp4_linear=aiter")
    with installed("gfx950"):
        assert {select_kernels("rocm").choice[op] for op in [*OPERATIONS, *OF_GFX950]} == {"aiter"}


def test_a_callable_at_its_newer_home_is_found() -> None:
    with installed(moved=True) as stand_in:
        assert "aiter.ops.triton.unified_attention" not in sys.modules
        kernels = select_kernels("rocm")
        assert [op for op in OPERATIONS if kernels.choice[op] != "aiter"] == []
        assert stand_in.calls == []


def test_a_missing_callable_is_passed_over_by_name(aiter: StandIn) -> None:
    del sys.modules["aiter"].rms_norm  # type: ignore[attr-defined]  # a stand-in module's attribute
    with pytest.raises(ValueError, match=r"rms_norm=aiter.*AiterUnavailable: amd-aiter .* has no aiter\.rms_norm"):
        select_kernels("rocm", "rms_norm=aiter")
    kernels = select_kernels("rocm")
    # Norms share a module; attention writes its cache with the same kernel.
    passed_over = {op for op in OPERATIONS if kernels.choice[op] != "aiter"}
    assert {"rms_norm", "add_rms_norm", "qkv_rope_write", "attention_decode"} <= passed_over
    assert {"silu_and_mul", "linear"}.isdisjoint(passed_over)


def test_without_rocm_nothing_is_imported() -> None:
    if torch.version.hip is not None:
        pytest.skip("this torch is built for ROCm")
    with pytest.raises(ValueError, match="AiterUnavailable: this torch is not built for ROCm"):
        select_kernels("rocm", "silu_and_mul=aiter")
    assert "aiter" not in {select_kernels("rocm").choice[op] for op in OPERATIONS}


def test_another_gpu_is_passed_over() -> None:
    with (
        installed("gfx1100"),
        pytest.raises(ValueError, match="AITER has kernels for gfx942, gfx950, and this GPU is gfx1100"),
    ):
        select_kernels("rocm", "silu_and_mul=aiter")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("raise RuntimeError('ROCm version file not found')", "RuntimeError: ROCm version file not found"),
        ("raise SystemExit('failed build')", "SystemExit: failed build"),
    ],
)
def test_a_package_that_fails_to_import_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, said: str
) -> None:
    (tmp_path / "aiter").mkdir()
    (tmp_path / "aiter/__init__.py").write_text(source)
    with installed():
        for name in [n for n in sys.modules if n.partition(".")[0] == "aiter"]:
            del sys.modules[name]
        monkeypatch.syspath_prepend(str(tmp_path))
        with pytest.raises(ValueError, match=f"can not be imported: {said}"):
            select_kernels("rocm", "silu_and_mul=aiter")
        assert "aiter" not in select_kernels("rocm").choice.values()


def test_a_package_that_is_not_there() -> None:
    with installed():
        for name in [n for n in sys.modules if n.partition(".")[0] == "aiter"]:
            del sys.modules[name]
        if importlib.util.find_spec("aiter") is not None:
            pytest.skip("AITER is installed here")
        with pytest.raises(ValueError, match="amd-aiter is not installed"):
            select_kernels("rocm", "silu_and_mul=aiter")


def test_fp8_by_architecture() -> None:
    assert FP8_DTYPES == {"gfx942": "float8_e4m3fnuz", "gfx950": "float8_e4m3fn"}
    for gfx, name in FP8_DTYPES.items():
        with installed(gfx):
            module = importlib.import_module("atom.model_ops.kernels.aiter.architecture")
            assert module.fp8_dtype() is getattr(torch, name)
