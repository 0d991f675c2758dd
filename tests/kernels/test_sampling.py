"""The reference's random numbers, sampling, norms and projections, each against a slow independent version."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from atom.model_ops.kernels.reference.activation import silu_and_mul
from atom.model_ops.kernels.reference.linear import can_prepack, linear, linear_pack
from atom.model_ops.kernels.reference.norm import add_rms_norm, rms_norm
from atom.model_ops.kernels.reference.random import philox_uniform
from atom.model_ops.kernels.reference.sampling import greedy_sample, mask_logits, sample
from atom.model_ops.kernels.reference.verification import verify_greedy

INT64 = st.integers(-(2**63), 2**63 - 1)


def philox(counter: list[int], key: list[int]) -> list[int]:
    """Philox4x32-10 in Python's integers."""
    for _ in range(10):
        product0, product1 = counter[0] * 0xD2511F53, counter[2] * 0xCD9E8D57
        counter = [
            (product1 >> 32) ^ counter[1] ^ key[0],
            product1 & 0xFFFFFFFF,
            (product0 >> 32) ^ counter[3] ^ key[1],
            product0 & 0xFFFFFFFF,
        ]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return counter


def test_the_slow_philox_gives_the_published_answers() -> None:
    ones = 0xFFFFFFFF
    assert philox([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert philox([ones] * 4, [ones] * 2) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]


@given(seed=INT64, offset=INT64)
@settings(max_examples=200, deadline=None)
def test_philox(seed: int, offset: int) -> None:
    halves = [value & 0xFFFFFFFF for value in (offset, offset >> 32, seed, seed >> 32)]
    wanted = (philox([*halves[:2], 0, 0], halves[2:])[0] >> 8) * 2.0**-24
    assert philox_uniform(torch.tensor([seed]), torch.tensor([offset])).item() == wanted


def parameters(count: int, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0, min_p: float = 0.0) -> list:
    values = ((temperature, torch.float32), (top_k, torch.int32), (top_p, torch.float32), (min_p, torch.float32))
    return [torch.full((count,), value, dtype=dtype) for value, dtype in values]


def allowed(logits: np.ndarray, temperature: float, top_k: int, top_p: float, min_p: float) -> np.ndarray:
    """Probabilities after the filters, in float64, one step after the other."""
    scaled = logits.astype(np.float64) / temperature
    order = np.argsort(-scaled, kind="stable")
    if top_k:
        scaled = np.where(scaled >= scaled[order[min(top_k, len(order)) - 1]], scaled, -np.inf)
    weights = np.exp(scaled - scaled.max())
    weights /= weights.sum()
    if top_p < 1:
        mass = np.cumsum(weights[order])
        last = order[min(int((mass < top_p * (1 - 1e-9)).sum()), len(order) - 1)]
        weights = np.where(scaled >= scaled[last], weights, 0.0)
    weights = np.where(weights >= min_p * weights.max() * (1 - 1e-6), weights, 0.0)
    return weights / weights.sum()


@given(
    seed=st.integers(0, 2**31),
    temperature=st.sampled_from([0.3, 1.0, 2.5]),
    top_k=st.sampled_from([0, 1, 3, 40, 5000]),
    top_p=st.sampled_from([1.0, 0.95, 0.5, 0.01]),
    min_p=st.sampled_from([0.0, 0.2, 1.0]),
    spread=st.sampled_from([0.05, 1.0, 4.0]),
)
@settings(max_examples=60, deadline=None)
def test_draws_invert_the_filtered_distribution(
    seed: int, temperature: float, top_k: int, top_p: float, min_p: float, spread: float
) -> None:
    random = np.random.default_rng(seed)
    logits = (random.standard_normal(3000) * spread).astype(np.float32)
    uniforms = random.random(64).astype(np.float32)
    found = sample(
        torch.from_numpy(np.tile(logits, (64, 1))),
        *parameters(64, temperature, top_k, top_p, min_p),
        torch.from_numpy(uniforms),
    ).numpy()
    wanted = allowed(logits, temperature, top_k, top_p, min_p)
    cumulative = np.cumsum(wanted)
    # The draw lies where the cumulative distribution passes the uniform, up to float32's rounding.
    assert (wanted[found] > 0).mean() > 0.98
    assert (cumulative[found] >= uniforms - 1e-4).all()
    assert (cumulative[found] - wanted[found] <= uniforms + 1e-4).all()


def test_a_row_does_not_depend_on_the_others() -> None:
    torch.manual_seed(0)
    logits = torch.randn(5, 5000) * 3
    columns = [
        torch.tensor([0.7, 1.0, 1.3, 0.2, 1.0]),
        torch.tensor([0, 50, 0, 2000, 0], dtype=torch.int32),
        torch.tensor([1.0, 0.9, 0.999999, 1.0, 0.3]),
        torch.tensor([0.0, 0.0, 0.1, 0.0, 0.0]),
        torch.rand(5),
    ]
    together = sample(logits, *columns)
    for row in range(5):
        alone = sample(logits[row : row + 1], *(column[row : row + 1] for column in columns))
        assert alone.item() == together[row].item()


def test_frequencies_follow_the_probabilities() -> None:
    torch.manual_seed(0)
    logits = torch.randn(1, 20).expand(20_000, 20)
    uniform = philox_uniform(torch.full((20_000,), 42), torch.arange(20_000))
    drawn = sample(logits.clone(), *parameters(20_000), uniform)
    counts = torch.bincount(drawn, minlength=20) / 20_000
    assert (counts - logits[0].softmax(-1)).abs().max() < 0.01
    assert uniform.min() >= 0 and uniform.max() < 1


def test_impossible_tokens_are_never_drawn() -> None:
    logits = torch.full((3, 10), float("-inf"))
    logits[:, [2, 7]] = torch.tensor([0.0, 1.0])
    uniform = torch.tensor([0.0, 0.5, 1 - 2**-24])
    assert sample(logits, *parameters(3), uniform).tolist() == [2, 7, 7]


def test_ties_at_a_filter_stay_together() -> None:
    logits = torch.tensor([[1.0, 0.0, 1.0, 1.0]]).expand(3, 4).clone()
    uniform = torch.tensor([0.1, 0.5, 0.9])
    assert sample(logits, *parameters(3, top_k=1), uniform).tolist() == [0, 2, 3]


def test_greedy_takes_the_lowest_index_of_the_largest() -> None:
    assert greedy_sample(torch.tensor([[0.0, 3.0, 3.0], [5.0, 1.0, 5.0]])).tolist() == [1, 0]


def test_greedy_of_bf16_orders_every_number_as_float32_does() -> None:
    torch.manual_seed(0)
    logits = torch.randn(64, 999).to(torch.bfloat16)
    logits[1] = -logits[1].abs()
    logits[2] = torch.tensor([-0.0, 0.0, -1.0]).repeat(333)
    logits[3, 5:] = float("-inf")
    logits[4] = float("-inf")
    logits[5, 700] = float("inf")
    assert torch.equal(greedy_sample(logits), logits.float().argmax(-1))
    rows = torch.tensor([0, 1, 3])
    assert torch.equal(greedy_sample(logits[rows]), logits[rows].float().argmax(-1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_norms(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x, residual = torch.randn(2, 5, 96).to(dtype)
    weight = torch.randn(96).to(dtype)

    def slow(value: torch.Tensor) -> torch.Tensor:
        wide = value.double()
        return wide / (wide.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt() * weight.double()

    tolerance = {"atol": 1e-5} if dtype == torch.float32 else {"rtol": 2e-2, "atol": 2e-2}
    assert torch.allclose(rms_norm(x, weight, 1e-6).double(), slow(x), **tolerance)
    total = x + residual
    normed = add_rms_norm(x, residual, weight, 1e-6)
    assert torch.equal(residual, total)
    assert torch.allclose(normed.double(), slow(total), **tolerance)
    assert normed.dtype == dtype


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("has_bias", [False, True])
def test_linear(dtype: torch.dtype, has_bias: bool) -> None:
    torch.manual_seed(0)
    weight = torch.randn(70, 48).to(dtype)
    bias = torch.randn(70).to(dtype) if has_bias else None
    packed = linear_pack(weight, bias)
    for rows in (1, 3, 130):
        x = torch.randn(rows, 48).to(dtype)
        wanted = x.double() @ weight.double().T + (0 if bias is None else bias.double())
        assert torch.allclose(
            linear(x, packed).double(), wanted, rtol=2e-2, atol=0.1 if dtype == torch.bfloat16 else 1e-4
        )


@pytest.mark.skipif(not can_prepack(), reason="this torch has no prepacked linear")
def test_a_row_of_a_large_product_is_the_same_in_any_batch() -> None:
    torch.manual_seed(0)
    packed = linear_pack(torch.randn(1024, 512).to(torch.bfloat16), torch.randn(1024).to(torch.bfloat16))
    x = torch.randn(5, 512).to(torch.bfloat16)
    whole = linear(x, packed)
    for rows in (0, 1, 2, 3, 4):
        assert torch.equal(linear(x[:rows], packed), whole[:rows])


def test_prepacking_is_used_where_torch_has_it() -> None:
    assert (linear_pack(torch.eye(16, dtype=torch.bfloat16), None).prepacked is not None) == can_prepack()
    assert linear_pack(torch.eye(16), None).prepacked is None


@pytest.mark.parametrize("is_fast", [False, True])
def test_bf16_without_prepacking(is_fast: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A processor that knows bf16 takes the weight as it is; for another it is widened."""
    monkeypatch.setattr("atom.model_ops.kernels.reference.linear.can_prepack", lambda: False)
    monkeypatch.setattr("atom.model_ops.kernels.reference.linear.has_fast_bf16", lambda: is_fast)
    torch.manual_seed(0)
    x, weight, bias = (torch.randn(shape).to(torch.bfloat16) for shape in ((3, 16), (5, 16), (5,)))
    packed = linear_pack(weight, bias)
    assert packed.weight.dtype == (torch.bfloat16 if is_fast else torch.float32)
    found = linear(x, packed)
    assert found.dtype == torch.bfloat16
    assert torch.allclose(found.double(), x.double() @ weight.double().T + bias.double(), rtol=2e-2, atol=2e-2)


def test_silu_and_mul() -> None:
    x = torch.randn(3, 10)
    gate, up = x[:, :5].double(), x[:, 5:].double()
    assert torch.allclose(silu_and_mul(x).double(), gate / (1 + (-gate).exp()) * up, atol=1e-6)


@given(st.integers(1, 70), st.data())
@settings(max_examples=30, deadline=None)
def test_mask_logits_leaves_what_the_bits_allow(vocab: int, data: st.DataObject) -> None:
    allowed = np.array(
        data.draw(st.lists(st.lists(st.booleans(), min_size=vocab, max_size=vocab), min_size=2, max_size=2))
    )
    words = -(-vocab // 32)
    padded = np.zeros((2, words * 32), dtype=np.bool_)
    padded[:, :vocab] = allowed
    masks = torch.from_numpy(np.packbits(padded, axis=1, bitorder="little").view(np.int32))
    dtype, rows = data.draw(st.sampled_from((torch.float32, torch.bfloat16))), data.draw(st.permutations(range(4)))[:2]
    logits = torch.randn(4, vocab).to(dtype)
    before = logits.clone()
    result = mask_logits(logits, torch.tensor(rows), masks)
    assert result.data_ptr() == logits.data_ptr()
    for row, bits in zip(rows, allowed, strict=True):
        expected = np.where(bits, before[row].float().numpy(), -np.inf)
        assert np.array_equal(logits[row].float().numpy(), expected)
    others = [row for row in range(4) if row not in rows]
    assert torch.equal(logits[others], before[others])
    for order in ([0, 1], [1, 0]):
        both = mask_logits(torch.zeros(2, vocab), torch.tensor(order), masks)
        assert np.array_equal(both.numpy() == 0, allowed[order])


def test_drafts_count_up_to_the_first_that_the_model_would_not_have_chosen() -> None:
    drafts = torch.tensor([[5, 6, 7], [5, 0, 7], [5, 6, 7], [5, 6, 7]])
    targets = torch.tensor([[5, 6, 7, 8], [5, 6, 7, 8], [5, 6, 7, 8], [4, 6, 7, 8]])
    tokens, lengths = verify_greedy(drafts, torch.tensor([3, 3, 1, 0]), targets)
    assert lengths.tolist() == [4, 2, 2, 1]
    assert tokens.tolist() == [[5, 6, 7, 8], [5, 6, -1, -1], [5, 6, -1, -1], [4, -1, -1, -1]]
