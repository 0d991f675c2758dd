"""Linears with fp8 weights: packed projections, splits over a pretended group, quantising while they are loaded."""

from __future__ import annotations

import pytest
import torch

from atom.model_ops.context import BuildContext
from atom.model_ops.float8 import quantize
from atom.model_ops.linear import Linear, MergedColumnLinear, RowLinear
from atom.model_ops.quantized_linear import QuantizingSlot
from atom.quantization import Quantization
from tests.model_ops.build import build_context

BY_ROW = Quantization()
BLOCKS = Quantization(has_blocks=True, scale_name="weight_scale_inv")
ONLINE = Quantization(is_online=True)


def build(quantization: Quantization, **changes: object) -> BuildContext:
    return build_context(quantization=quantization, **changes)


def fp8(outputs: int, inputs: int, has_blocks: bool) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Weight and scales of a checkpoint, and what they mean."""
    weight = torch.randn(outputs, inputs).mul(50).to(torch.float8_e4m3fn)
    if not has_blocks:
        scales = torch.rand(outputs, 1) + 0.01
        return weight, scales, weight.float() * scales
    scales = torch.rand(-(-outputs // 128), -(-inputs // 128)) + 0.01
    whole = scales.repeat_interleave(128, 0)[:outputs].repeat_interleave(128, 1)[:, :inputs]
    return weight, scales, weight.float() * whole


def rounded(x: torch.Tensor, group: int | None = None) -> torch.Tensor:
    parts = [quantize(part, torch.float8_e4m3fn) for part in x.split(group or x.shape[1], dim=1)]
    return torch.cat([values.float() * scales for values, scales in parts], dim=1)


def fill(layer: Linear, tensors: list[torch.Tensor]) -> None:
    """Give the slots of a quantised layer the checkpoint's tensors, in order."""
    layer.take_form(True)
    slots = list(layer.weight_slots())  # type: ignore[attr-defined]  # every packed layer has them
    for slot, tensor in zip(slots, tensors, strict=True):
        assert slot.problem(tensor) is None
        slot.fill(tensor)
    layer.finish_loading()


@torch.inference_mode()
@pytest.mark.parametrize("sizes", [(128, 256, 100), (48, 200, 130)], ids=["at blocks", "across blocks"])
@pytest.mark.parametrize("quantization", [BY_ROW, BLOCKS], ids=["by row", "blocks"])
def test_scales_of_packed_projections(quantization: Quantization, sizes: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    parts = [fp8(size, 300, quantization.has_blocks) for size in sizes]
    biases = [torch.randn(size) for size in sizes]
    layer = MergedColumnLinear(300, sizes, True, build(quantization))
    fill(layer, [t for (weight, scales, _), bias in zip(parts, biases, strict=True) for t in (weight, scales, bias)])
    x = torch.randn(4, 300)
    near = rounded(x, 128 if quantization.has_blocks else None)
    for found, (_, _, whole), bias in zip(layer(x).split(sizes, dim=1), parts, biases, strict=True):
        assert torch.allclose(found, near @ whole.T + bias, rtol=1e-4, atol=1e-2)


@torch.inference_mode()
@pytest.mark.parametrize("shape", [(6, 1), (6,), (1,), ()])
def test_one_scale_for_a_whole_weight(shape: tuple[int, ...]) -> None:
    weight = torch.randn(6, 16).to(torch.float8_e4m3fn)
    scales = torch.rand(shape) + 0.5
    layer = RowLinear(16, 6, False, build(BY_ROW))
    fill(layer, [weight, scales])
    x = torch.randn(2, 16)
    whole = weight.float() * scales.reshape(-1, 1)
    assert torch.allclose(layer(x), rounded(x) @ whole.T, atol=1e-4)


@torch.inference_mode()
@pytest.mark.parametrize("quantization", [BY_ROW, BLOCKS], ids=["by row", "blocks"])
def test_split_over_a_group(quantization: Quantization) -> None:
    """Columns side by side, rows summed: each rank with its own scales."""
    torch.manual_seed(0)
    group = 128 if quantization.has_blocks else None
    weight, scales, whole = fp8(512, 256, quantization.has_blocks)
    x, inner = torch.randn(3, 256), torch.randn(3, 512)
    outputs, total = [], torch.zeros(3, 256)
    rows = fp8(256, 512, quantization.has_blocks)
    for rank in range(2):
        context = build(quantization, tp_rank=rank, tp_size=2)
        column = MergedColumnLinear(256, [512], False, context)
        fill(column, [weight, scales])
        outputs.append(column(x))
        row = RowLinear(512, 256, False, context)
        fill(row, [rows[0], rows[1]])
        part = inner.chunk(2, dim=1)[rank]
        assert torch.allclose(row(part), rounded(part, group) @ rows[2].chunk(2, dim=1)[rank].T, rtol=1e-4, atol=1e-2)
        total += row(part)
    assert torch.allclose(torch.cat(outputs, dim=1), rounded(x, group) @ whole.T, rtol=1e-4, atol=1e-2)
    assert (total - inner @ rows[2].T).norm() / total.norm() < 0.05


def test_a_block_can_not_be_cut() -> None:
    layer = MergedColumnLinear(128, [384], False, build(BLOCKS, tp_size=2))
    layer.take_form(True)
    with pytest.raises(ValueError, match=r"blocks of a weight \[384, 128\] can not be split over 2 devices"):
        list(layer.weight_slots())


@torch.inference_mode()
def test_quantised_while_it_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """In pieces of a few rows, the same as at once."""
    monkeypatch.setattr("atom.model_ops.quantized_linear._VALUES_AT_ONCE", 100)
    torch.manual_seed(0)
    gate, up = torch.randn(30, 40, dtype=torch.bfloat16), torch.randn(20, 40, dtype=torch.bfloat16)
    layer = MergedColumnLinear(40, [30, 20], False, build(ONLINE))
    fill(layer, [gate, up])
    x = torch.randn(3, 40)
    wanted = torch.cat(
        [values.float() * scales for values, scales in (quantize(w, torch.float8_e4m3fn) for w in (gate, up))]
    )
    assert torch.allclose(layer(x), rounded(x) @ wanted.T, atol=1e-4)
    exact = x @ torch.cat((gate, up)).float().T
    assert (layer(x) - exact).norm() / exact.norm() < 0.05


def test_no_memory_before_the_form_is_known() -> None:
    layer = RowLinear(16, 6, False, build(ONLINE))
    assert layer.weight is not None
    assert layer.weight.is_meta
    layer.take_form(False)
    assert layer.weight.dtype == torch.float32
    assert [slot.parameter for slot in layer.weight_slots()] == ["weight"]
    layer = RowLinear(16, 6, False, build(ONLINE))
    layer.take_form(True)
    assert layer.weight is not None
    assert layer.weight.dtype == torch.float8_e4m3fn
    assert [type(slot) for slot in layer.weight_slots()] == [QuantizingSlot]


def test_tensors_that_do_not_fit() -> None:
    layer = MergedColumnLinear(130, [6], False, build(BLOCKS))
    layer.take_form(True)
    weight, scales = layer.weight_slots()
    assert weight.problem(torch.zeros(6, 130)) == "is torch.float32, by config.json it is torch.float8_e4m3fn"
    assert scales.problem(torch.zeros(1, 1)) == "has shape [1, 1], by quantization_config it is [1, 2]"
    layer = MergedColumnLinear(130, [6], False, build(BY_ROW))
    layer.take_form(True)
    _, scales = layer.weight_slots()
    assert scales.problem(torch.zeros(2)) == "has shape [2], by quantization_config it is [6, 1] or [6] or [1] or []"
    layer = MergedColumnLinear(130, [6], False, build(ONLINE))
    layer.take_form(True)
    (weight,) = layer.weight_slots()
    assert "is torch.float8_e4m3fn already" in str(weight.problem(torch.zeros(6, 130).to(torch.float8_e4m3fn)))
    assert weight.problem(torch.zeros(5, 130)) == "has shape [5, 130], by config.json it is [6, 130]"
    plain = MergedColumnLinear(4, [6], False, build_context())
    (weight,) = plain.weight_slots()
    assert weight.problem(torch.zeros(6, 4).to(torch.float8_e4m3fn)) == (
        "is torch.float8_e4m3fn, by config.json it is not quantised"
    )
