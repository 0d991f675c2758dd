"""The table, the spec and the functions agree; the choice of backends follows the documented order."""

from __future__ import annotations

import importlib
import inspect
from contextlib import nullcontext
from pathlib import Path

import pytest
from atom_spec.kernels import BACKENDS, OPERATIONS, PLATFORMS, Argument

from atom.model_ops.kernels.select import parse_overrides, select_kernels
from atom.model_ops.kernels.table import TABLE
from tests.kernels.aiter.stand_in import installed

ENTRIES = [(operation, backend) for operation, backends in TABLE.items() for backend in backends]
_ANNOTATIONS = {
    "tensor": "torch.Tensor",
    "tensor or None": "torch.Tensor | None",
    "int": "int",
    "int or None": "int | None",
    "float": "float",
    "bool": "bool",
}


def problems(operation: str, function: object) -> list[str]:
    """How the function's signature differs from the spec; empty when it does not."""
    spec = OPERATIONS[operation]
    found = list(inspect.signature(function).parameters.values())  # type: ignore[arg-type]  # the table holds functions
    names, wanted = [p.name for p in found], [a.name for a in spec.arguments]
    if names != wanted:
        return [f"arguments {names}, the spec has {wanted}"]
    wrong = [p.name for p in found if p.kind is not p.POSITIONAL_OR_KEYWORD or p.default is not p.empty]
    notes = [f"{name} must be positional and without default" for name in wrong]
    pairs = [*zip(found, spec.arguments, strict=True)]
    notes += [f"{p.name} is {p.annotation}, the spec has {a.type}" for p, a in pairs if not _fits(p.annotation, a)]
    returned = inspect.signature(function).return_annotation  # type: ignore[arg-type]  # the table holds functions
    return notes + ([] if _fits(returned, spec.returns) else [f"returns {returned}, the spec has {spec.returns.type}"])


def _fits(annotation: object, argument: Argument) -> bool:
    return argument.type == "object" or annotation == _ANNOTATIONS[argument.type]


def test_every_operation_has_a_reference() -> None:
    assert set(TABLE) == set(OPERATIONS)
    assert all("reference" in backends for backends in TABLE.values())


@pytest.mark.parametrize(("operation", "backend"), ENTRIES)
def test_signature_follows_the_spec(operation: str, backend: str) -> None:
    assert backend in BACKENDS
    if backend.startswith("triton"):
        pytest.importorskip("triton", reason="Triton is not installed")
    module, _, name = TABLE[operation][backend].partition(":")
    with installed("gfx950") if backend == "aiter" else nullcontext():
        assert problems(operation, getattr(importlib.import_module(module), name)) == []


def test_the_signature_check_sees_differences() -> None:
    # Never called and wrong on purpose, with torch's types by name: neither checker is to look.
    def renamed(x: "torch.Tensor", weights: "torch.Tensor", eps: float) -> "torch.Tensor": ...  # type: ignore # noqa  # wrong on purpose, as said
    def swapped(x: "torch.Tensor", eps: float, weight: "torch.Tensor") -> "torch.Tensor": ...  # type: ignore # noqa  # wrong on purpose, as said
    def default(x: "torch.Tensor", weight: "torch.Tensor", eps: float = 1e-6) -> "torch.Tensor": ...  # type: ignore # noqa  # wrong on purpose, as said
    def retyped(x: "torch.Tensor", weight: "torch.Tensor", eps: int) -> "torch.Tensor": ...  # type: ignore # noqa  # wrong on purpose, as said

    assert all(problems("rms_norm", function) for function in (renamed, swapped, default, retyped))


def test_cpu_takes_the_reference() -> None:
    kernels = select_kernels("cpu")
    assert set(kernels.choice) == set(OPERATIONS)
    assert set(kernels.choice.values()) == {"reference"}
    assert kernels["rms_norm"].__name__ == "rms_norm"


def entry(module: str = "atom.model_ops.kernels.reference.norm", name: str = "rms_norm") -> str:
    return f"{module}:{name}"


def table_with(**changes: dict[str, str]) -> dict[str, dict[str, str]]:
    """The reference's functions, and the changes."""
    return {name: {"reference": row["reference"], **changes.get(name, {})} for name, row in TABLE.items()}


def test_a_backend_that_has_the_operation_comes_first_and_one_that_lacks_it_is_passed_over() -> None:
    kernels = select_kernels("cuda", table=table_with(rms_norm={"triton": entry()}))
    assert kernels.choice["rms_norm"] == "triton"
    assert kernels.choice["add_rms_norm"] == "reference"


def test_a_backend_that_can_not_be_imported_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "vendor_exits.py").write_text("raise SystemExit('no such device')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    broken = {"aiter": entry("vendor_exits"), "triton": entry("no.such.module")}
    kernels = select_kernels("rocm", table=table_with(rms_norm=broken))
    assert kernels.choice["rms_norm"] == "reference"
    with pytest.raises(ValueError, match=r"rms_norm=aiter.*SystemExit: no such device"):
        select_kernels("rocm", "rms_norm=aiter", table_with(rms_norm=broken))


def test_operations_that_share_the_cache_share_its_layout() -> None:
    attention = [name for name, operation in OPERATIONS.items() if operation.group == "attention"]
    some = table_with(attention_decode={"triton": entry()})
    assert {select_kernels("cuda", table=some).choice[name] for name in attention} == {"reference"}
    every = table_with(**{name: {"triton": entry()} for name in attention})
    assert {select_kernels("cuda", table=every).choice[name] for name in attention} == {"triton"}
    with pytest.raises(ValueError, match="attention_decode=triton"):
        select_kernels("cuda", "attention_decode=triton,kv_cache_shape=reference", every)
    forced = select_kernels("cuda", "attention_decode=reference", every)
    assert {forced.choice[name] for name in attention} == {"reference"}


@pytest.mark.parametrize("asked", ["linear=reference", "linear_pack=reference", "linear=reference,rms_norm=reference"])
def test_a_backend_that_is_named_for_an_operation_does_the_group_where_it_shares_one(asked: str) -> None:
    group = ("linear_pack", "linear", "logits")
    every = table_with(**{name: {"triton": entry()} for name in group})
    for platform in ("cuda", "rocm"):
        for overrides, backend in (("", "triton"), (asked, "reference")):
            choice = select_kernels(platform, overrides, every).choice
            assert {choice[name] for name in group} == {backend}
    with pytest.raises(ValueError, match=r"no usable kernel for linear.*triton: not implemented"):
        select_kernels("cuda", "linear=triton", table_with())


def test_backends_of_one_layout_share_the_cache() -> None:
    pytest.importorskip("triton", reason="Triton is not installed")
    assert select_kernels("cuda")["attention_prefill"].__module__.endswith(".fresh_prefill")
    asked = select_kernels("cuda", "attention_prefill=torch_flash")
    assert asked["attention_prefill"].__module__.endswith(".prefill")
    assert {asked.choice[name] for name in ("attention_decode", "attention_plan", "qkv_rope_write")} == {"triton"}


@pytest.mark.parametrize("text", ["rms_norm", "rms_norm=fast", "norm=reference", "=reference"])
def test_a_wrong_override_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="ATOM_KERNELS"):
        parse_overrides(text)


def test_overrides_are_read() -> None:
    assert parse_overrides(" rms_norm = reference , ") == {"rms_norm": "reference"}
    assert set(parse_overrides("all=reference")) == set(OPERATIONS)
    with pytest.raises(ValueError, match="no usable kernel for rms_norm"):
        select_kernels("cpu", "rms_norm=triton", table_with())
    with pytest.raises(ValueError, match="unknown platform"):
        select_kernels("tpu")
    assert set(PLATFORMS) == {"rocm", "cuda", "cpu"}
