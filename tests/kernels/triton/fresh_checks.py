"""Prefill attention of fresh prompts against dense attention in float64, in the forms that a program may have."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch

from atom.model_ops.kernels.triton import prefill
from atom.model_ops.kernels.triton.fresh_prefill import (
    ALONE,
    IN_TWOS,
    Form,
    attend,
    attention_prefill,
    choose_form,
    tiles_by_prompt,
)
from atom.model_ops.kernels.triton.plan import Plan, PrefillRows
from tests.kernels.dense import dense_attention

_FORMS = (ALONE, IN_TWOS, replace(IN_TWOS, heads=1))
# float32 shows what 16 bits round away; only the interpreter has the room for it. Many tiles of few tokens.
_SMALL_FORMS = (
    replace(ALONE, queries=16, keys=8),
    replace(ALONE, queries=16, keys=16, holds_queries=False),
    replace(IN_TWOS, queries=16, keys=8),
)


def prompts(lens: Sequence[int], heads: tuple[int, int], head_dim: int, dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    """q [T, HQ, D], k and v [T, HK, D], with gaps between the tokens as a projection leaves them."""
    fused = torch.randn(sum(lens), heads[0] + 2 * heads[1], head_dim).to(dtype)
    return fused.split((heads[0], heads[1], heads[1]), dim=1)


def plan(rows: PrefillRows, device: torch.device) -> Plan:
    """Of a step that has these rows and no cache."""
    nothing = torch.empty(0, device=device)
    return Plan(nothing, nothing, nothing, 16, None, rows)


def attended(lens: Sequence[int], qkv: tuple[torch.Tensor, ...], form: Form, device: torch.device) -> torch.Tensor:
    """What the kernel makes of it, in memory that was full of NaN."""
    rows = PrefillRows(np.array(lens), np.zeros(len(lens), np.int64), 0, device)
    made = plan(rows, device)
    kept = torch.full((sum(lens), qkv[0][0].numel()), float("nan"), dtype=qkv[0].dtype, device=device)
    moved = torch.cat(qkv, dim=1).to(device).split([x.shape[1] for x in qkv], dim=1)
    del kept
    found: torch.Tensor = attend(*moved, made, rows, qkv[0].shape[2] ** -0.5, form)
    return found.cpu()


def expected(lens: Sequence[int], qkv: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """A prompt after the other, in float64."""
    parts = zip(*(x.split(list(lens)) for x in qkv), strict=True)
    return torch.cat([dense_attention(q, k, v, q.shape[2] ** -0.5) for q, k, v in parts])


def check(
    lens: Sequence[int], heads: tuple[int, int], head_dim: int, form: Form, dtype: torch.dtype, device: torch.device
) -> None:
    """AssertionError beyond what the type rounds to, over all and for each token; NaN never passes."""
    qkv = prompts(lens, heads, head_dim, dtype)
    found, wanted = attended(lens, qkv, form, device).double(), expected(lens, qkv)
    limit = 2e-6 if dtype == torch.float32 else 4e-3
    errors = (found - wanted).norm(dim=1) / wanted.norm(dim=1)
    assert found.shape == wanted.shape
    assert (found - wanted).norm() / wanted.norm() < limit, f"{lens}, {heads}, {head_dim}, {form}: {errors}"
    assert errors.max() < 3 * limit, f"{lens}, {heads}, {head_dim}, {form}: token {errors.argmax()}"


def check_small_tiles(device: torch.device) -> None:
    """Every length around the edges of tiles, every way to share key heads."""
    if device.type != "cpu":
        return
    lengths = torch.tensor([1, 7, 8, 9, 15, 16, 17, 31, 32, 33])
    for form in _SMALL_FORMS:
        for heads, head_dim in (((16, 1), 16), ((4, 2), 32), ((3, 3), 16), ((1, 1), 64)):
            lens = [*lengths[torch.randperm(10)[: 4 // heads[0] + 1]].tolist(), 33]
            check(lens, heads, head_dim, form, torch.float32, device)


def check_16_bits(device: torch.device) -> None:
    """As the operation calls it: lengths below a tile, of whole tiles, of one token more, and of some hundreds."""
    for form in _FORMS:
        check((1, 200), (2, 1), 128, form, torch.bfloat16, device)
    check((129, 5, 128, 192), (1, 1), 64, ALONE, torch.float16, device)
    if device.type != "cpu":
        for head_dim, form in itertools.product((64, 128), _FORMS):
            check((1000, 1, 3000, 255, 256, 257), (16, 2), head_dim, form, torch.bfloat16, device)


def check_neighbours(device: torch.device) -> None:
    """NaN in one prompt stays there."""
    lens = (70, 33, 5)
    q, k, v = prompts(lens, (2, 1), 64, torch.bfloat16)
    k[70:103], v[70:103] = float("nan"), float("nan")
    apart = [*range(70), *range(103, 108)]
    wanted = expected(lens, (q, k, v))[apart]
    for form in _FORMS:
        found = attended(lens, (q, k, v), form, device).double()[apart]
        assert (found - wanted).norm() / wanted.norm() < 4e-3, form


def check_tiles(device: torch.device) -> None:
    """Every token in one tile; long prompts first, and late tiles of each. Few programs go alone."""
    rows = PrefillRows(np.array([5, 40, 16]), np.zeros(3, np.int64), 0, device)
    assert tiles_by_prompt(rows, 16).tolist() == [[37, 8, 32], [21, 16, 16], [5, 16, 0], [45, 16, 0], [0, 5, 0]]
    assert (choose_form(1), choose_form(264), choose_form(265)) == (ALONE, ALONE, IN_TWOS)
    assert (ALONE.queries, ALONE.heads) == (IN_TWOS.queries, IN_TWOS.heads)


@contextlib.contextmanager
def others_calls() -> Iterator[list[tuple[object, ...]]]:
    """What the other kernel is called with; it does nothing."""
    own, calls = prefill.attention_prefill, []
    prefill.attention_prefill = lambda *arguments: calls.append(arguments)
    try:
        yield calls
    finally:
        prefill.attention_prefill = own


def check_ways(device: torch.device) -> None:
    """Which prompts the other kernel gets: with a context, a window, a cap or sinks, and other types and sizes."""
    dtype, none = torch.bfloat16, None
    for context, head_dim, kind, window, cap, sinks, is_ours in (
        (0, 64, dtype, none, 0.0, none, True),
        (0, 128, torch.float16, none, 0.0, none, True),
        (9, 64, dtype, none, 0.0, none, False),
        (0, 64, dtype, 5, 0.0, none, False),
        (0, 64, dtype, none, 0.7, none, False),
        (0, 64, dtype, none, 0.0, torch.zeros(2, device=device), False),
        (0, 64, torch.float32, none, 0.0, none, False),
        (0, 80, dtype, none, 0.0, none, False),
    ):
        rows = PrefillRows(np.array([3]), np.array([context]), 0, device)
        q, k, v = (x.to(device) for x in prompts([3], (2, 1), head_dim, kind))
        made = plan(rows, device)
        with others_calls() as calls:
            attention_prefill(q, k, v, q, None, made, 0.1, window, cap, sinks)
        assert calls == ([] if is_ours else [(q, k, v, q, None, made, 0.1, window, cap, sinks)])


FRESH_CHECKS: dict[str, Callable[[torch.device], None]] = {
    "fresh prompts, small tiles": check_small_tiles,
    "fresh prompts, 16 bits": check_16_bits,
    "fresh prompts, NaN beside": check_neighbours,
    "fresh prompts, tiles": check_tiles,
    "fresh prompts, ways": check_ways,
}
