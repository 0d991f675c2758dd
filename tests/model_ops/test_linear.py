"""Split layers over a pretended group of two: the parts together equal the whole."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
import torch

from atom.model_ops.activation import gated_activation
from atom.model_ops.linear import Linear, MergedColumnLinear, QKVLinear, RowLinear
from tests.model_ops.build import build_context


def fill(layer: Linear, tensors: Iterable[torch.Tensor]) -> None:
    """Give the slots of a layer the checkpoint's tensors, in order."""
    slots = list(layer.weight_slots())  # type: ignore[attr-defined]  # every packed layer has them
    given = list(tensors)
    assert [slot.checkpoint_shape for slot in slots] == [tuple(tensor.shape) for tensor in given]
    for slot, tensor in zip(slots, given, strict=True):
        slot.target.copy_(slot.piece(tensor))
    layer.finish_loading()


def ranks(size: int) -> list:
    return [build_context(tp_rank=rank, tp_size=size) for rank in range(size)]


@torch.inference_mode()
@pytest.mark.parametrize("size", [1, 2])
def test_merged_columns(size: int) -> None:
    torch.manual_seed(0)
    x, gate, up = torch.randn(3, 8), torch.randn(6, 8), torch.randn(10, 8)
    biases = torch.randn(6), torch.randn(10)
    outputs = []
    for build in ranks(size):
        layer = MergedColumnLinear(8, [6, 10], True, build)
        fill(layer, [gate, biases[0], up, biases[1]])
        outputs.append(layer(x).split(layer.sizes, dim=-1))
    for part, (weight, bias) in enumerate(zip((gate, up), biases, strict=True)):
        whole = torch.cat([output[part] for output in outputs], dim=-1)
        assert torch.allclose(whole, x @ weight.T + bias, atol=1e-5)


@torch.inference_mode()
@pytest.mark.parametrize("size", [1, 2])
def test_heads_go_whole_to_a_rank(size: int) -> None:
    torch.manual_seed(0)
    x, q, k, v = torch.randn(3, 8), torch.randn(4 * 6, 8), torch.randn(2 * 6, 8), torch.randn(2 * 6, 8)
    outputs = []
    for build in ranks(size):
        layer = QKVLinear(8, 6, 4, 2, False, build)
        assert (layer.num_heads, layer.num_kv_heads) == (4 // size, 2 // size)
        fill(layer, [q, k, v])
        outputs.append(layer(x).split(layer.sizes, dim=-1))
    for part, weight in enumerate((q, k, v)):
        whole = torch.cat([output[part] for output in outputs], dim=-1)
        assert torch.allclose(whole, x @ weight.T, atol=1e-5)


@torch.inference_mode()
def test_rows_sum_over_the_group_and_add_the_bias_once() -> None:
    torch.manual_seed(0)
    x, weight, bias = torch.randn(3, 8), torch.randn(5, 8), torch.randn(5)
    total = torch.zeros(3, 5)
    for build in ranks(2):
        layer = RowLinear(8, 5, True, build)
        fill(layer, [weight, bias])
        total += layer(x.chunk(2, dim=-1)[build.tp_rank])
    assert torch.allclose(total, x @ weight.T + bias, atol=1e-5)


@torch.inference_mode()
def test_rows_call_the_groups_sum() -> None:
    layer = RowLinear(8, 5, False, build_context(tp_size=2, all_reduce=lambda partial: partial + 100))
    fill(layer, [torch.zeros(5, 8)])
    assert torch.equal(layer(torch.zeros(1, 4)), torch.full((1, 5), 100.0))


def test_what_can_not_be_split_is_refused() -> None:
    with pytest.raises(ValueError, match="key/value heads"):
        QKVLinear(8, 6, 4, 1, False, build_context(tp_size=2))


def test_an_unknown_activation_is_refused() -> None:
    with pytest.raises(ValueError, match="'gelu_new'"):
        gated_activation("gelu_new", RowLinear(4, 4, False, build_context()), build_context())
