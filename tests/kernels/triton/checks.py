"""Every Triton kernel against the reference or dense attention in float64: fresh random inputs, poisoned outputs.

`python -m tests.kernels.triton.checks DEVICE NAME...` runs checks by name (the keys of CHECKS); on a CPU, set
TRITON_INTERPRET=1. Sizes are small: the interpreter runs a program at a time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from unittest.mock import patch

import torch
import triton

from atom.hf_config import RopeConfig
from atom.model_ops.float8 import to_float8
from atom.model_ops.kernels.reference import activation as plain_activation
from atom.model_ops.kernels.reference.plan import attention_plan as plain_plan
from atom.model_ops.kernels.select import select_kernels
from atom.model_ops.kernels.triton import (
    activation,
    decode,
    fresh_prefill,
    kv_cache,
    norm,
    paged,
    plan,
    prefill,
    sampling,
)
from atom.model_ops.rope import rope_table
from atom.model_ops.step import StepInputs
from tests.kernels.dense import dense_attention, make_step
from tests.kernels.triton import interpreted
from tests.kernels.triton.fp8_checks import FP8_CHECKS
from tests.kernels.triton.fresh_checks import FRESH_CHECKS
from tests.kernels.triton.linear_checks import LINEAR_CHECKS
from tests.kernels.triton.padded_checks import PADDED_CHECKS
from tests.kernels.triton.sampling_checks import SAMPLING_CHECKS
from tests.kernels.triton.shares_checks import SHARES_CHECKS
from tests.kernels.triton.splits import cut_into

_CPU = torch.device("cpu")
_FLOAT8 = torch.float8_e4m3fn
_LIMITS = {torch.float32: 2e-5, torch.bfloat16: 1.5e-2}


def error(found: torch.Tensor, wanted: torch.Tensor) -> float:
    """Relative distance; poison that was left in `found` makes it large, or no number."""
    found, wanted = found.cpu().double(), wanted.cpu().double()
    assert found.shape == wanted.shape
    return float((found - wanted).norm() / wanted.norm().clamp_min(1e-30))


def close(found: torch.Tensor, wanted: torch.Tensor, dtype: torch.dtype) -> None:
    """AssertionError beyond what the type rounds to; NaN never passes."""
    difference = error(found, wanted)
    assert difference < _LIMITS[dtype], f"{difference:.2e} in {dtype}"


def rounded_once(found: torch.Tensor, exact: torch.Tensor) -> None:
    """AssertionError where 16 bits are not nearly all the nearest to the `exact` [float64 or float32]: values that were
    rounded on the way too are often their neighbours.
    """
    if found.dtype == torch.bfloat16:
        others = (found.cpu() != exact.cpu().to(torch.bfloat16)).double().mean()
        assert others < 0.01, f"{others:.1%} are not the nearest"


def poison(device: torch.device, size: int = 1 << 16) -> None:
    """Leave NaN in memory that the allocator hands out next."""
    for kept in [torch.full((size >> shift,), float("nan"), device=device) for shift in range(8)]:
        del kept


def check_norms(device: torch.device) -> None:
    for dtype in _LIMITS:
        for rows, width in ((1, 48), (5, 128), (3, 1000)):
            x, residual = (torch.randn(rows, width + 8, dtype=dtype, device=device)[:, :width] for _ in range(2))
            weight = torch.randn(width, dtype=dtype, device=device)
            poison(device)
            exact = normed(x, weight)
            close(norm.rms_norm(x, weight, 1e-6), exact, dtype)
            rounded_once(norm.rms_norm(x, weight, 1e-6), exact)
            kept = residual.clone()
            found = norm.add_rms_norm(x, kept, weight, 1e-6)
            close(kept, residual + x, dtype)
            exact = normed(residual.double() + x.double(), weight)
            close(found, exact, dtype)
            rounded_once(found, exact)
    assert norm.rms_norm(torch.empty(0, 8, device=device), torch.ones(8, device=device), 1e-6).shape == (0, 8)


def normed(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """In float64."""
    x = x.double()
    return x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * weight.double()


def check_activation(device: torch.device) -> None:
    for dtype in _LIMITS:
        for rows, size in ((1, 40), (3, 1100)):
            x = 3 * torch.randn(rows, 2 * size, dtype=dtype, device=device)
            poison(device)
            exact = plain_activation.silu_and_mul(x.double())
            close(activation.silu_and_mul(x), exact, dtype)
            rounded_once(activation.silu_and_mul(x), exact)


def check_greedy(device: torch.device) -> None:
    for dtype in _LIMITS:
        for rows, vocab in ((1, 7), (3, 4096), (2, 9001)):
            logits = torch.randn(rows, vocab, device=device).to(dtype)
            top = logits.max()
            for row in range(rows):
                logits[row, torch.randint(vocab, (3,))] = top
            first = (logits == logits.amax(-1, keepdim=True)).to(torch.int8).argmax(-1)
            assert torch.equal(sampling.greedy_sample(logits), first)
    assert int(sampling.greedy_sample(torch.full((1, 9), float("nan"), device=device))[0]) < 9


def check_rope_write(device: torch.device) -> None:
    """Against the reference in float32, layouts being equal; slots that are negative are not written."""
    plain = select_kernels("cpu")
    for dtype, norm_heads, partial, head_dim in (
        (torch.float32, True, 0.5, 16),
        (torch.float32, False, 1.0, 80),
        (torch.bfloat16, True, 1.0, 64),
    ):
        heads, kv_heads = 6, 2
        longest = 62 if head_dim == 16 else 6  # more than 64 tokens: a program a token
        step = make_step([5, 0, 9], [1, 3, longest], [[3, 1], [2], [*range(4, 24)]], 4, 1)
        table = rope_table(RopeConfig(partial_rotary_factor=partial), head_dim, 90)
        weight = torch.randn(heads + kv_heads, head_dim).to(dtype).float() if norm_heads else None
        qkv = torch.randn(step.num_tokens, (heads + 2 * kv_heads) * head_dim).to(dtype)
        wanted_cache = torch.zeros(plain["kv_cache_shape"](24, 4, kv_heads, head_dim))
        wanted = plain["qkv_rope_write"](
            qkv.float().clone(), weight, 1e-6, table, wanted_cache, None, plain_plan(step), heads, kv_heads
        )
        step.slot_mapping[2] = -1
        made = plan.attention_plan(on(step, device))
        cache = torch.zeros(kv_cache.kv_cache_shape(24, 4, kv_heads, head_dim), dtype=dtype, device=device)
        given = None if weight is None else weight.to(device, dtype)
        poison(device)
        found = kv_cache.qkv_rope_write(
            qkv.to(device), given, 1e-6, table.to(device), cache, None, made, heads, kv_heads
        )
        wanted_cache[2, :, :, 1] = 0  # the token without a slot
        for mine, theirs in zip((*found, cache), (*wanted, wanted_cache), strict=True):
            close(mine, theirs, dtype)
            rounded_once(mine, theirs)


def on(step: StepInputs, device: torch.device) -> StepInputs:
    """The step with its tensors on a device."""
    names = ("token_ids", "positions", "slot_mapping", "block_tables")
    return replace(step, **{name: getattr(step, name).to(device) for name in names})


@dataclass(frozen=True)
class Case:
    """Sequences with `contexts` tokens in the cache, then `queries` more each; the first num_decodes are decodes."""

    contexts: tuple[int, ...]
    queries: tuple[int, ...]
    num_decodes: int
    heads: tuple[int, int] = (4, 2)
    head_dim: int = 64
    block_size: int = 16
    window: int | None = None
    dtype: torch.dtype = torch.float32
    first_block: int = 0
    parts: int | None = 4
    soft_cap: float = 0.0
    has_sinks: bool = False
    float8: torch.dtype | None = None


CASES = {
    "decodes of different length": Case((130, 0, 15, 16, 47), (1,) * 5, 5, parts=None),
    "decodes, one part": Case((40, 3), (1, 1), 2, parts=1),
    "drafts": Case((30, 2), (3, 3), 2),
    "fresh prompts": Case((0, 0, 0), (33, 1, 70), 0),
    "chunks after contexts": Case((64, 3), (40, 33), 0),
    "mixed": Case((100, 33, 0), (1, 9, 35), 1),
    "multi-query, block size 1": Case((37, 5), (1, 8), 1, heads=(16, 1), block_size=1),
    "no groups, block size 64": Case((70, 0), (1, 66), 1, heads=(3, 3), block_size=64),
    "window": Case((90, 12, 0), (1, 36, 50), 1, window=7),
    "head size 80": Case((40, 4), (1, 34), 1, heads=(2, 1), head_dim=80),
    "head size 96": Case((40, 4), (1, 34), 1, heads=(2, 1), head_dim=96),
    "head size 256": Case((40, 4), (1, 34), 1, heads=(2, 1), head_dim=256),
    "bf16": Case((130, 60), (1, 40), 1, heads=(2, 1), head_dim=128, dtype=torch.bfloat16),
    "bf16, fresh": Case((0, 0), (33, 130), 0, heads=(2, 1), dtype=torch.bfloat16),
    "bf16, fresh, window": Case((0,), (130,), 0, heads=(2, 2), window=20, dtype=torch.bfloat16),
    "cap": Case((90, 12, 0), (1, 9, 40), 1, soft_cap=1.5),
    "sinks": Case((90, 12, 0), (1, 9, 40), 1, heads=(6, 1), block_size=1, has_sinks=True),
    "sinks, one part": Case((40, 0), (1, 1), 2, heads=(3, 1), head_dim=80, block_size=64, parts=1, has_sinks=True),
    "sinks and window": Case((90, 12, 0), (1, 9, 40), 1, heads=(4, 1), window=7, has_sinks=True),
    "cap, sinks, window, drafts": Case((60, 2), (3, 3), 2, head_dim=96, window=20, soft_cap=0.7, has_sinks=True),
    "bf16, cap, sinks": Case(
        (130, 0), (1, 70), 1, heads=(2, 1), head_dim=128, soft_cap=2.0, has_sinks=True, dtype=torch.bfloat16
    ),
    "one long": Case((300, 0, 15, 130, 16), (1,) * 5, 5, heads=(8, 2), parts=2),
    "one long in a large batch": Case((700, 3, 15, 40), (1,) * 4, 4, heads=(16, 1), head_dim=80, block_size=1, parts=1),
    "large batch, all": Case((170, 2), (3, 3), 2, window=100, soft_cap=0.7, has_sinks=True, parts=1, float8=_FLOAT8),
    "large batch, bf16, mixed": Case(
        (300, 10, 0), (1, 1, 9), 2, heads=(4, 4), head_dim=128, parts=1, dtype=torch.bfloat16
    ),
    "fp8": Case((90, 12, 0), (1, 9, 40), 1, heads=(4, 2), float8=_FLOAT8),
    "fp8, fresh": Case((0, 0), (33, 5), 0, head_dim=80, block_size=1, float8=_FLOAT8),
    "fp8, one part, window": Case((60, 20), (1, 1), 2, block_size=64, window=30, parts=1, float8=_FLOAT8),
    "fp8, cap, sinks": Case((60, 2), (3, 3), 2, heads=(4, 1), soft_cap=0.7, has_sinks=True, float8=_FLOAT8),
    "fp8, bf16": Case((130, 0), (1, 70), 1, heads=(2, 1), head_dim=128, dtype=torch.bfloat16, float8=_FLOAT8),
    "fp8, bf16, window, sinks": Case(
        (90, 12, 0), (1, 1, 9), 2, (4, 1), 80, 1, 30, torch.bfloat16, has_sinks=True, float8=_FLOAT8
    ),
    "fp8, bf16, cap, drafts": Case(
        (60, 2), (3, 3), 2, (6, 2), 64, 64, None, torch.bfloat16, parts=1, soft_cap=0.7, float8=_FLOAT8
    ),
    "fp8, bf16, head size 16": Case((40, 0), (1, 1), 2, (2, 1), 16, dtype=torch.bfloat16, parts=2, float8=_FLOAT8),
    "fp8, bf16, far": Case(
        (40, 0), (1, 1), 2, (2, 2), 256, 32, None, torch.bfloat16, first_block=70_000, float8=_FLOAT8
    ),
    "fp8, bf16, fresh": Case((0,), (70,), 0, heads=(2, 2), dtype=torch.bfloat16, float8=_FLOAT8),
    "offsets beyond 31 bits": Case((40, 0), (1, 20), 1, heads=(2, 2), head_dim=256, block_size=32, first_block=70_000),
}


FRESH_CASES = {
    "fresh way, beside decodes": Case((5, 0, 0), (1, 65, 9), 1, (2, 1), dtype=torch.bfloat16),
    "fresh way, fp8 cache": Case((0, 0), (20, 3), 0, (2, 2), dtype=torch.bfloat16, float8=_FLOAT8),
}


def check_attention(
    case: Case, device: torch.device, prefill_way: Callable[..., torch.Tensor] = prefill.attention_prefill
) -> None:
    """A step over a cache that already holds the contexts, with stale values everywhere else."""
    generator = torch.Generator().manual_seed(hash(case.contexts) % 1000)
    num_heads, kv_heads = case.heads
    lens = [c + n for c, n in zip(case.contexts, case.queries, strict=True)]
    counts = [-(-length // case.block_size) for length in lens]
    ids = iter((torch.randperm(sum(counts) + 2, generator=generator) + case.first_block).tolist())
    tables = [[next(ids) for _ in range(count)] for count in counts]
    num_blocks = case.first_block + sum(counts) + 2
    shape = kv_cache.kv_cache_shape(num_blocks, case.block_size, kv_heads, case.head_dim)
    cache = make_cache(shape, case, device)
    scales = None if case.float8 is None else 2.0 ** torch.arange(-kv_heads, kv_heads).view(2, kv_heads)
    whole = [torch.randn(n, num_heads + 2 * kv_heads, case.head_dim, generator=generator).to(case.dtype) for n in lens]
    for tokens, table, context in zip(whole, tables, case.contexts, strict=True):
        for position in range(context):
            block, offset = table[position // case.block_size], position % case.block_size
            kept = tokens[position, num_heads:].unflatten(0, (2, kv_heads))
            cache[block, :, :, offset] = in_cache(kept, scales, case).to(device)
    step = on(make_step(list(case.contexts), list(case.queries), tables, case.block_size, case.num_decodes), device)
    made = plan.attention_plan(step)
    qkv = torch.cat([x[c:].flatten(1) for x, c in zip(whole, case.contexts, strict=True)]).to(device)
    cos_sin = torch.cat((torch.ones(max(lens), 4), torch.zeros(max(lens), 4)), dim=-1).to(device, case.dtype)
    given = None if scales is None else scales.to(device)
    q, k, v = kv_cache.qkv_rope_write(qkv, None, 0.0, cos_sin, cache, given, made, num_heads, kv_heads)
    sinks = torch.linspace(-2, 4, num_heads, device=device) if case.has_sinks else None
    softmax = (case.head_dim**-0.5, case.window, case.soft_cap, sinks)
    first, parts = step.num_decode_tokens, []
    poison(device)
    if first:
        with cut_into(case.parts):
            parts.append(decode.attention_decode(q[:first], cache, given, made, *softmax))
            # As the other way has it, whichever the lengths are for.
            other = replace(made, is_even=not made.is_even)
            poison(device)
            close(decode.attention_decode(q[:first], cache, given, other, *softmax), parts[0], case.dtype)
    if first < len(q):
        rest = (x[first:] for x in (q, k, v))
        parts.append(prefill_way(*rest, cache, given, made, *softmax))
    wanted = []
    for tokens, num_queries in zip(whole, case.queries, strict=True):
        query, kept = tokens.split((num_heads, 2 * kv_heads), dim=1)
        held = in_cache(kept.unflatten(1, (2, kv_heads)), scales, case).float()
        key, value = (held if scales is None else held * scales.unsqueeze(-1)).unbind(1)
        expected = (*softmax[:3], None if sinks is None else sinks.cpu())
        wanted.append(dense_attention(query[-num_queries:], key, value, *expected))
    close(torch.cat(parts), torch.cat(wanted), case.dtype)


def in_cache(kept: torch.Tensor, scales: torch.Tensor | None, case: Case) -> torch.Tensor:
    """Keys and values [..., 2, HK, D] as the case's cache holds them."""
    if scales is None or case.float8 is None:
        return kept
    return to_float8(kept.float() / scales.unsqueeze(-1), case.float8)


def make_cache(shape: tuple[int, ...], case: Case, device: torch.device) -> torch.Tensor:
    """A cache full of poison; one for high block ids takes memory only where it is written."""
    if not case.first_block:
        return torch.full(shape, 100.0, device=device).to(case.float8 or case.dtype)
    dtype = case.float8 or case.dtype
    if device.type == "cpu":
        from atom.model_engine.kv_cache import lazy_zeros

        return lazy_zeros(shape, dtype, device)
    return torch.zeros(shape, dtype=dtype, device=device)


def check_value_by_value(device: torch.device) -> None:
    """An fp8 cache as AMD's GPUs read it; elsewhere only the interpreter can be told to."""
    case = Case((130, 300), (1, 1), 2, (4, 2), 128, dtype=torch.bfloat16, parts=2, float8=_FLOAT8)
    with patch.object(paged, "pairs_way", lambda *given: "") if device.type == "cpu" else nullcontext():
        check_attention(case, device)


def check_padding(device: torch.device) -> None:
    """A row of a graph that is no sequence: it disturbs no other, and what comes out for it is finite."""
    step = make_step([40, 9, 0], [1, 1, 1], [[0, 1, 2], [3], [4]], 16, 3)
    cache = torch.randn(kv_cache.kv_cache_shape(5, 16, 2, 16), device=device)
    q = torch.randn(3, 4, 16, device=device)
    step.positions[1] = -1
    sinks = torch.zeros(4, device=device)
    for given in (None, sinks):
        found = []
        for parts, is_even in ((2, True), (2, False), (1, True), (1, False)):
            made = replace(plan.attention_plan(on(step, device)), is_even=is_even)
            poison(device)
            with cut_into(parts):
                found.append(decode.attention_decode(q, cache, None, made, 0.25, None, 0.0, given))
            assert found[-1].isfinite().all()
            close(found[-1][[0, 2]], found[0][[0, 2]], torch.float32)


def check_float8_write(device: torch.device) -> None:
    """To the byte: x / scale rounded to nearest and saturated; k and v of a prompt come back as the cache has them."""
    scales = torch.tensor([[0.5, 2.0], [1.0, 0.25]])
    cos_sin = torch.cat((torch.ones(80, 4), torch.zeros(80, 4)), dim=-1)
    combinations = [(torch.float32, _FLOAT8), (torch.bfloat16, _FLOAT8), (torch.float32, torch.float8_e4m3fnuz)]
    for dtype, float8 in combinations if device.type == "cpu" else combinations[:2]:
        whole = torch.randn(9, 8, 16) * torch.logspace(-3, 3, 9).view(-1, 1, 1)  # from subnormal to too large
        whole = whole.to(dtype)
        cache = torch.zeros(kv_cache.kv_cache_shape(2, 8, 2, 16), device=device).to(float8)
        step = make_step([0], [9], [[1, 0]], 8, 0)
        made = plan.attention_plan(on(step, device))
        qkv, table = whole.flatten(1).to(device), cos_sin.to(device, dtype)
        q, k, v = kv_cache.qkv_rope_write(qkv, None, 0.0, table, cache, scales.to(device), made, 4, 2)
        wanted = to_float8(whole[:, 4:].unflatten(1, (2, 2)).float() / scales.unsqueeze(-1), float8)
        held = cache.cpu().permute(0, 3, 1, 2, 4)[[1, 0]].flatten(0, 1)
        assert torch.equal(held[:9].view(torch.uint8), wanted.view(torch.uint8))
        assert not held[9:].float().any()
        back = (wanted.float() * scales.unsqueeze(-1)).to(dtype)
        assert torch.equal(torch.stack((k, v), 1).cpu(), back)
        assert torch.equal(q.cpu(), whole[:, :4])


def check_writes_by_token(device: torch.device) -> None:
    """A program a token, as steps of many tokens have it."""
    with patch.object(kv_cache, "_FEW_TOKENS", 0):
        check_rope_write(device)
        check_float8_write(device)


CHECKS: dict[str, Callable[[torch.device], None]] = {
    "norms": check_norms,
    "activation": check_activation,
    "greedy": check_greedy,
    **SAMPLING_CHECKS,
    **FP8_CHECKS,
    **LINEAR_CHECKS,
    "rope and write": check_rope_write,
    "fp8 write": check_float8_write,
    "writes, a program a token": check_writes_by_token,
    "padding": check_padding,
    "fp8, value by value": check_value_by_value,
    **PADDED_CHECKS,
    **SHARES_CHECKS,
    **{name: lambda device, case=case: check_attention(case, device) for name, case in CASES.items()},
    **FRESH_CHECKS,
    **{
        name: lambda device, case=case: check_attention(case, device, fresh_prefill.attention_prefill)
        for name, case in FRESH_CASES.items()
    },
}


def main() -> None:
    """Run the checks named on the command line."""
    device = torch.device(sys.argv[1])
    torch.set_num_threads(1)
    torch.manual_seed(7)
    if triton.knobs.runtime.interpret:
        interpreted.round_as_a_device_does()
    for name in sys.argv[2:]:
        CHECKS[name](device)
        print(f"passed: {name}", flush=True)


if __name__ == "__main__":
    main()
