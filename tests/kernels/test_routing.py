"""The reference's routing against the definition, a token at a time in float64."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from atom.model_ops.kernels.select import select_kernels

KERNELS = select_kernels("cpu")


def defined(
    logits: list[float],
    bias: list[float] | None,
    num_groups: int,
    top_groups: int,
    top_k: int,
    sigmoid: bool,
    renormalize: bool,
    scale: float,
) -> dict[int, float]:
    """Weight by expert of one token; of equal ones the lowest."""
    x = torch.tensor(logits, dtype=torch.float64)
    scores = (x.sigmoid() if sigmoid else x.softmax(0)).float().tolist()
    choice = scores if bias is None else [float(torch.tensor(s) + b) for s, b in zip(scores, bias, strict=True)]
    size = len(logits) // num_groups
    by_group = []
    for group in range(num_groups):
        best = sorted(choice[group * size : (group + 1) * size], reverse=True)
        by_group.append(best[0] if bias is None else sum(best[:2]))
    groups = sorted(range(num_groups), key=lambda g: (-by_group[g], g))[:top_groups]
    candidates = itertools.chain.from_iterable(range(g * size, (g + 1) * size) for g in groups)
    chosen = sorted(candidates, key=lambda e: (-choice[e], e))[:top_k]
    total = sum(scores[e] for e in chosen) if renormalize else 1.0
    return {e: scores[e] / total * scale for e in chosen}


def check(found: tuple[torch.Tensor, torch.Tensor], wanted: list[dict[int, float]]) -> None:
    weights, experts = found
    assert weights.dtype == torch.float32 and experts.dtype == torch.int32
    assert weights.shape == experts.shape
    for row, by_expert in enumerate(wanted):
        assert sorted(experts[row].tolist()) == sorted(by_expert)
        expected = torch.tensor([by_expert[e] for e in experts[row].tolist()])
        torch.testing.assert_close(weights[row], expected, atol=1e-6, rtol=1e-5)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_against_the_definition(data: st.DataObject) -> None:
    num_groups, size = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 5))
    top_groups = data.draw(st.integers(1, num_groups))
    top_k = data.draw(st.integers(1, top_groups * size))
    # Steps of a half: equal logits are common, other scores are far apart.
    level = st.integers(-6, 6).map(lambda n: n / 2)
    rows = data.draw(st.lists(st.lists(level, min_size=num_groups * size, max_size=num_groups * size), max_size=4))
    sigmoid, renormalize = data.draw(st.booleans()), data.draw(st.booleans())
    scale = data.draw(st.sampled_from([1.0, 2.5]))
    bias = data.draw(st.none() | st.lists(level, min_size=num_groups * size, max_size=num_groups * size))
    logits = torch.tensor(rows).reshape(len(rows), num_groups * size)
    arguments = (num_groups, top_groups, top_k, sigmoid, renormalize, scale)
    found = KERNELS["route_grouped"](logits, None if bias is None else torch.tensor(bias), *arguments)
    check(found, [defined(row, bias, *arguments) for row in rows])
    if top_k <= size:
        found = KERNELS["route_softmax"](logits, top_k, renormalize)
        check(found, [defined(row, None, 1, 1, top_k, False, renormalize, 1.0) for row in rows])
        assert (found[0].diff(dim=1) <= 0).all(), "largest first"


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_shapes_of_models(dtype: torch.dtype) -> None:
    torch.manual_seed(7)
    logits, bias = torch.randn(9, 256).to(dtype), torch.randn(256) * 0.1
    found = KERNELS["route_grouped"](logits, bias, 8, 4, 8, True, True, 2.5)
    check(found, [defined(row, bias.tolist(), 8, 4, 8, True, True, 2.5) for row in logits.double().tolist()])
    torch.testing.assert_close(found[0].sum(1), torch.full((9,), 2.5))
    found = KERNELS["route_softmax"](logits[:, :128], 8, True)
    check(found, [defined(row, None, 1, 1, 8, False, True, 1.0) for row in logits[:, :128].double().tolist()])


def test_of_equal_experts_the_lowest() -> None:
    _, experts = KERNELS["route_softmax"](torch.zeros(3, 60), 4, True)
    assert experts.tolist() == [[0, 1, 2, 3]] * 3
    weights, experts = KERNELS["route_grouped"](torch.zeros(2, 8), torch.zeros(8), 4, 2, 3, True, False, 1.0)
    assert experts.tolist() == [[0, 1, 2]] * 2
    assert weights.tolist() == [[0.5] * 3] * 2


def test_the_bias_chooses_groups_and_experts_and_is_in_no_weight() -> None:
    bias = torch.tensor([0.0, 0.0, -9.0, 9.0, 4.0, 4.0])
    weights, experts = KERNELS["route_grouped"](torch.zeros(1, 6), bias, 3, 1, 2, True, False, 1.0)
    assert experts.tolist() == [[4, 5]], "a group counts by its best two, not by its best"
    assert weights.tolist() == [[0.5, 0.5]]


def test_an_expert_outside_the_groups_is_not_taken_whatever_the_bias() -> None:
    _, experts = KERNELS["route_grouped"](torch.zeros(1, 4), torch.full((4,), -5.0), 2, 1, 2, True, True, 1.0)
    assert experts.tolist() == [[0, 1]]


def test_scores_of_zero_have_weights() -> None:
    weights, _ = KERNELS["route_grouped"](torch.full((1, 4), -200.0), None, 1, 1, 2, True, True, 1.0)
    assert weights.tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ((3, 1, 1), "8 experts are not 3 equal groups"),
        ((4, 1, 3), "3 experts of 1 groups can not be had"),
        ((4, 5, 1), "1 experts of 5 groups can not be had"),
        ((4, 0, 1), "can not be had"),
    ],
)
def test_sizes_that_do_not_fit(sizes: tuple[int, int, int], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        KERNELS["route_grouped"](torch.zeros(1, 8), None, *sizes, True, True, 1.0)
