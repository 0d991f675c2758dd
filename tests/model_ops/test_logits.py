"""Penalties, bias, forbidden tokens and log probabilities against their definitions."""

from __future__ import annotations

import pytest
import torch

from atom.model_ops.kernels.select import select_kernels
from atom.model_ops.logits_edits import add_bias, apply_penalties, forbid
from atom.model_ops.logprobs import token_logprobs
from atom.model_ops.sampler import RandomRows, Sampler


def test_penalties() -> None:
    logits = torch.tensor([[1.0, -1.0, 2.0, 0.5], [1.0, -1.0, 2.0, 0.5], [9.0, 9.0, 9.0, 9.0]])
    counts = torch.tensor([[0, 2, 1, 0], [0, 0, 3, 0]], dtype=torch.int32)
    in_prompt = torch.tensor([[True, False, False, False], [False, False, False, False]])
    weights = torch.tensor([[2.0, 0.0, 0.0], [1.0, 0.5, 0.25]])
    apply_penalties(logits, torch.tensor([0, 1]), counts, in_prompt, weights)
    wanted = [[0.5, -2.0, 1.0, 0.5], [1.0, -1.0, 2.0 - 0.5 - 0.75, 0.5], [9.0] * 4]
    assert torch.allclose(logits, torch.tensor(wanted))


def test_bias_and_forbidden_tokens() -> None:
    logits = torch.zeros(2, 4)
    add_bias(logits, torch.tensor([1, 0, 1]), torch.tensor([0, 2, 2]), torch.tensor([5.0, 1.0, -100.0]))
    forbid(logits, torch.tensor([0, 1]), torch.tensor([3, 1]))
    least = float("-inf")
    assert logits.tolist() == [[0.0, 0.0, 1.0, least], [5.0, least, -100.0, 0.0]]


@pytest.mark.parametrize("num_top", [0, 3])
def test_logprobs(num_top: int) -> None:
    torch.manual_seed(0)
    logits = torch.randn(4, 11)
    tokens = torch.tensor([0, 10, 5, 3])
    found = token_logprobs(logits, tokens, num_top)
    values = logits.double().log_softmax(-1)
    for row, token in enumerate(tokens.tolist()):
        assert found.logprobs[row].item() == pytest.approx(values[row, token].item(), abs=1e-5)
        assert found.ranks[row].item() == 1 + int((values[row] > values[row, token]).sum())
    order = values.argsort(-1, descending=True)[:, :num_top]
    assert torch.equal(found.top_ids, order)
    assert torch.allclose(found.top_logprobs.double(), values.gather(1, order), atol=1e-5)


def test_greedy_and_random_rows_in_one_batch() -> None:
    torch.manual_seed(0)
    sampler = Sampler(select_kernels("cpu"))
    logits = torch.randn(5, 50)
    rows = torch.tensor([1, 3])
    ones = torch.ones(2)
    columns = (
        ones,
        torch.zeros(2, dtype=torch.int32),
        ones,
        torch.zeros(2),
        torch.tensor([7, 8]),
        torch.tensor([0, 5]),
    )
    mixed = sampler(logits, RandomRows(rows, *columns))
    assert torch.equal(mixed[[0, 2, 4]], logits[[0, 2, 4]].argmax(-1))
    assert torch.equal(mixed[rows], sampler(logits[rows], RandomRows(None, *columns)))
    assert torch.equal(sampler(logits, None), logits.argmax(-1))
