"""Prefill attention of fresh prompts over their own keys and values, shaped for Hopper.

A program takes a tile of queries, of two heads where they share keys, so that it has half as many tokens and fewer
keys that they do not see; only tiles on the diagonal are masked. The tensor cores are not to wait for a softmax: few
programs compute it while their own next product is under way, of many two share a multiprocessor.
Other GPUs, rows with earlier tokens in the cache, windows, soft caps, sinks, other types and head sizes take
`prefill`'s way.
Shapes: Tp tokens, HQ/HK heads, D head size, M queries and N keys of a tile.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from atom.model_ops.kernels.triton import prefill
from atom.model_ops.kernels.triton.paged import LOG2_E, precision
from atom.model_ops.kernels.triton.plan import Plan, PrefillRows, upload
from atom.model_ops.kernels.triton.steps import product


@dataclass(frozen=True, slots=True)
class Form:
    """What a program is like: queries and keys of its tiles, how many of these are on their way, and its warps.

    heads: that share a tile's queries, where so many share keys. holds_queries: in registers; else products read them
    from shared memory, which takes as long as a product with 64 keys does. looks_ahead: the next scores are under way
    while the softmax of these is computed; else another program is to fill the tensor cores.
    """

    queries: int
    keys: int
    stages: int
    holds_queries: bool
    looks_ahead: bool
    warps: int
    heads: int = 2


ALONE = Form(128, 64, 3, holds_queries=True, looks_ahead=True, warps=8)
# Half the registers and shared memory: two programs a multiprocessor.
IN_TWOS = Form(128, 64, 2, holds_queries=False, looks_ahead=False, warps=4)
# The most programs that are faster alone: two for each of an H200's 132 multiprocessors.
_FEW_PROGRAMS = 264
HEAD_DIMS = (64, 128)
_HOPPER = 90


@triton.jit
def _hidden(scores, base, start, M: tl.constexpr, T: tl.constexpr, N: tl.constexpr):
    """Scores [M, N] of T tokens from `start` and keys from `base` on, -inf where the key is later than the token."""
    is_seen = base + tl.arange(0, N)[None, :] <= start + (tl.arange(0, M) % T)[:, None]
    return tl.where(is_seen, scores, float("-inf"))


@triton.jit
def _softmax(scores, scale, acc, total, largest):
    """Weights [M, N] of one tile's scores; acc [M, D], total and largest [M] brought to the new largest."""
    found = tl.maximum(largest, tl.max(scores, axis=1) * scale)
    weights = tl.exp2(scores * scale - found[:, None])
    decay = tl.exp2(largest - found)
    return weights, acc * decay[:, None], total * decay + tl.sum(weights, axis=1), found


@triton.jit
def _fresh_prefill(
    q, q_stride, k_blocks, v, v_stride, v_blocks, tiles, out, scale,
    HQ: tl.constexpr, HK: tl.constexpr, D: tl.constexpr, M: tl.constexpr, N: tl.constexpr, STAGES: tl.constexpr,
    HOLDS_QUERIES: tl.constexpr, LOOKS_AHEAD: tl.constexpr, PRECISION: tl.constexpr, HEADS: tl.constexpr,
):  # fmt: skip
    """Queries [M, D]: T tokens of a head, then those of the next of HEADS."""
    T: tl.constexpr = M // HEADS
    tile = tiles + tl.program_id(1) * 3
    first, count, start = tl.load(tile), tl.load(tile + 1), tl.load(tile + 2)
    begin, last = first - start, start + count - 1
    head = tl.program_id(0) * HEADS // (HQ // HK)
    members = tl.arange(0, M)
    d = tl.arange(0, D)
    heads = tl.program_id(0) * HEADS + members // T
    tokens = (first + members % T).to(tl.int64)
    is_query = (members % T < count)[:, None]
    query = tl.load(q + (tokens * q_stride + heads * D)[:, None] + d[None, :], mask=is_query, other=0.0)
    acc = tl.zeros((M, D), tl.float32)
    total = tl.zeros((M,), tl.float32)
    largest = tl.full((M,), float("-inf"), tl.float32)
    if LOOKS_AHEAD:
        keys = k_blocks.load([begin, head * D])
    if HOLDS_QUERIES:
        # The compiler leaves in registers what is computed, and puts into shared memory what is only loaded.
        query = tl.where(is_query, query, 0.0)
    if LOOKS_AHEAD:
        scores = _hidden(product(query, tl.trans(keys), PRECISION), 0, start, M, T, N)
    # Whole tiles of keys. What the first query does not see all of is masked, on its own way behind a branch, and with
    # it the tokens of others that loads past the prompt find.
    whole = (last + 1) // N * N
    for base in tl.range(0, whole, N, num_stages=STAGES):
        ahead = base + N if LOOKS_AHEAD else base
        keys = k_blocks.load([begin + ahead, head * D])
        values = v_blocks.load([begin + base, head * D])
        found = product(query, tl.trans(keys), PRECISION)
        if not LOOKS_AHEAD:
            scores = found
            if base + N > start + 1:
                scores = _hidden(scores, base, start, M, T, N)
        weights, acc, total, largest = _softmax(scores, scale, acc, total, largest)
        acc += product(weights.to(values.dtype), values, PRECISION)
        if LOOKS_AHEAD:
            scores = found
            if ahead + N > start + 1:
                scores = _hidden(scores, ahead, start, M, T, N)
    if whole <= last:
        if not LOOKS_AHEAD:
            keys = k_blocks.load([begin + whole, head * D])
            scores = _hidden(product(query, tl.trans(keys), PRECISION), whole, start, M, T, N)
        # A weight of zero does not hide another prompt's NaN: values behind the prompt are zeros.
        rest = tl.arange(0, N)
        where = (begin + whole).to(tl.int64) * v_stride + rest[:, None] * v_stride + head * D + d[None, :]
        values = tl.load(v + where, mask=(rest <= last - whole)[:, None], other=0.0)
        weights, acc, total, largest = _softmax(scores, scale, acc, total, largest)
        acc += product(weights.to(values.dtype), values, PRECISION)
    acc = acc / total[:, None]
    tl.store(out + ((tokens * HQ + heads) * D)[:, None] + d[None, :], acc.to(out.dtype.element_ty), mask=is_query)


def attention_prefill(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    kv_cache: torch.Tensor,
    kv_scales: torch.Tensor | None,
    plan: Plan,
    scale: float,
    window: int | None,
    soft_cap: float,
    sinks: torch.Tensor | None,
) -> torch.Tensor:
    """q [Tp, HQ, D], k and v [Tp, HK, D] of the prefill rows; returns [Tp, HQ * D]."""
    rows = plan.prefill
    is_plain = window is None and soft_cap == 0.0 and sinks is None
    is_known = q.dtype in (torch.bfloat16, torch.float16) and q.shape[2] in HEAD_DIMS
    if isinstance(rows, PrefillRows) and rows.is_fresh and is_plain and is_known and _is_hopper():
        return attend(q, k, v, plan, rows, scale)
    return prefill.attention_prefill(q, k, v, kv_cache, kv_scales, plan, scale, window, soft_cap, sinks)


def attend(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    plan: Plan,
    rows: PrefillRows,
    scale: float,
    form: Form | None = None,
) -> torch.Tensor:
    """As `attention_prefill`, of whole prompts and nothing else; a token's heads lie together, tokens wherever.

    form: by the number of programs where there is none.
    """
    num_tokens, num_heads, head_dim = q.shape
    out = torch.empty((num_tokens, num_heads * head_dim), dtype=q.dtype, device=q.device)
    shape = ALONE if form is None else form
    heads = shape.heads if num_heads // k.shape[1] % shape.heads == 0 else 1
    size = shape.queries // heads
    tiles = plan.keep(("fresh tiles", size), lambda: upload(tiles_by_prompt(rows, size), q.device))
    form = choose_form(num_heads // heads * len(tiles)) if form is None else form
    _fresh_prefill[(num_heads // heads, len(tiles))](
        q, q.stride(0), _blocks(k, form.keys), v, v.stride(0), _blocks(v, form.keys), tiles, out, scale * LOG2_E,
        HQ=num_heads, HK=k.shape[1], D=head_dim, M=form.queries, N=form.keys, STAGES=form.stages,
        HOLDS_QUERIES=form.holds_queries, LOOKS_AHEAD=form.looks_ahead, PRECISION=precision(q.dtype), HEADS=heads,
        num_warps=form.warps,
    )  # fmt: skip
    return out


def choose_form(num_programs: int) -> Form:
    """The faster form for so many programs; both have the same tiles of queries."""
    return ALONE if num_programs <= _FEW_PROGRAMS else IN_TWOS


def tiles_by_prompt(rows: PrefillRows, size: int) -> np.ndarray[tuple[int, int], np.dtype[np.int32]]:
    """[N, 3] int32, the work of up to `size` tokens each: first token, number of tokens, position of the first.

    A prompt after the other, for its keys to stay in the L2 cache; long prompts and late tiles first, so that the last
    programs to run are short.
    """
    order = np.argsort(-rows.lens, kind="stable")
    counts = -(-rows.lens[order] // size)
    row = np.repeat(order, counts)
    positions = (np.repeat(np.cumsum(counts), counts) - 1 - np.arange(len(row))) * size
    starts = (np.cumsum(rows.lens) - rows.lens)[row]
    table = (starts + positions, np.minimum(size, rows.lens[row] - positions), positions)
    return np.ascontiguousarray(np.stack(table, axis=1).astype(np.int32))


def _blocks(x: torch.Tensor, size: int) -> TensorDescriptor:
    """Keys or values [Tp, HK, D] in blocks [size, D]."""
    num_tokens, num_heads, head_dim = x.shape
    return TensorDescriptor(x, [num_tokens, num_heads * head_dim], [x.stride(0), 1], [size, head_dim])


@functools.cache
def _is_hopper() -> bool:
    if triton.knobs.runtime.interpret:
        return True
    target = triton.runtime.driver.active.get_current_target()
    return bool(target.backend == "cuda" and target.arch == _HOPPER)
