"""Padded steps, as graphs run them, against the same rows in a plain step: equal results, nothing else is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from atom.model_engine.batch import ScheduledBatch, SlotAdmission
from atom.model_engine.input_batch import InputBatch
from atom.model_engine.padded_steps import StepShape
from atom.model_engine.sampling_state import SamplingState
from atom.model_ops.kernels.triton import decode, kv_cache, plan, prefill
from atom.model_ops.step import StepInputs
from atom.sampling_params import SamplingParams
from tests.kernels.triton.splits import cut_into

_HEADS, _KV_HEADS, _HEAD_DIM, _BLOCK_SIZE = 2, 1, 16, 4
_NUM_BLOCKS = 30


def make_batch(contexts: list[int], queries: list[int], num_decodes: int) -> ScheduledBatch:
    """Row r in slot 5 - r, with blocks of its own that are in no order."""
    ids = np.random.default_rng(2).permutation(_NUM_BLOCKS).tolist()
    admissions = []
    for row, (context, count) in enumerate(zip(contexts, queries, strict=True)):
        blocks = [ids.pop() for _ in range(-(-(context + count) // _BLOCK_SIZE))]
        sampling = SamplingParams(temperature=0.0)
        admissions.append(SlotAdmission(5 - row, [1] * (context + count), context + count, blocks, sampling, 0))
    lens, cached = np.array(queries, np.int32), np.array(contexts, np.int32)
    slots = 5 - np.arange(len(lens), dtype=np.int32)
    tokens = np.arange(sum(queries[num_decodes:]), dtype=np.int32)
    every = np.ones(len(lens), np.bool_)
    return ScheduledBatch(0, slots, lens, cached, every, num_decodes, tokens, np.empty((0, 3), np.int32), admissions)


def attend(step: StepInputs, qkv: torch.Tensor, cache: torch.Tensor, parts: int, **given: Any) -> torch.Tensor:
    """A layer's attention of a step; the cache is written."""
    made = plan.attention_plan(step)
    table = torch.cat((torch.ones(70, 4), torch.zeros(70, 4)), dim=-1).to(qkv.device, qkv.dtype)
    scales = given["scales"]
    q, k, v = kv_cache.qkv_rope_write(qkv.clone(), None, 0.0, table, cache, scales, made, _HEADS, _KV_HEADS)
    softmax = (0.2, given["window"], 0.0, given["sinks"])
    first, outputs = step.num_decode_tokens, []
    if first:
        with cut_into(parts):
            outputs.append(decode.attention_decode(q[:first], cache, scales, made, *softmax))
    outputs.append(prefill.attention_prefill(q[first:], k[first:], v[first:], cache, scales, made, *softmax))
    return torch.cat(outputs)


def check(
    device: torch.device, contexts: list[int], queries: list[int], num_decodes: int, shape: StepShape,
    dtype: torch.dtype = torch.float32, window: int | None = None, has_sinks: bool = False, is_fp8: bool = False,
    parts: int = 2,
) -> None:  # fmt: skip
    """One batch in one shape. Qkv of padding is NaN, and so is memory that has not been written."""
    inputs = InputBatch(6, 16, _BLOCK_SIZE, SamplingState(6, 50, (), device), device)
    batch = make_batch(contexts, queries, num_decodes)
    inputs.apply(batch)
    packed = torch.from_numpy(shape.pack(batch, inputs.sampled_rows(batch), inputs.padding_slot)).to(device)
    fields = shape.cut(packed)
    padded, plain = shape.step(fields, inputs), inputs.inputs(batch)
    qkv = torch.randn(plain.num_tokens, (_HEADS + 2 * _KV_HEADS) * _HEAD_DIM, device=device).to(dtype)
    real = torch.cat((torch.arange(num_decodes), shape.num_decodes + torch.arange(len(batch.prefill_token_ids))))
    wide = torch.full((padded.num_tokens, qkv.shape[1]), float("nan"), dtype=dtype, device=device)
    wide[real] = qkv
    before = torch.randn(kv_cache.kv_cache_shape(_NUM_BLOCKS, _BLOCK_SIZE, _KV_HEADS, _HEAD_DIM), device=device)
    before = before.to(torch.float8_e4m3fn if is_fp8 else dtype)
    mine, theirs = before.clone(), before.clone()
    given = {
        "window": window, "scales": torch.tensor([[0.5], [2.0]], device=device) if is_fp8 else None,
        "sinks": torch.linspace(-1, 2, _HEADS, device=device) if has_sinks else None,
    }  # fmt: skip
    found = attend(padded, wide, mine, parts, **given)[real]
    wanted = attend(plain, qkv, theirs, parts, **given)
    limit = 2e-5 if dtype == torch.float32 else 1e-2
    torch.testing.assert_close(found, wanted, rtol=limit, atol=limit)
    assert torch.equal(mine.view(torch.uint8), theirs.view(torch.uint8))
    ends = np.cumsum(queries) - 1
    assert real[ends].tolist() == fields.sampled[: len(ends)].tolist()


MIXED = ([21, 3, 9, 0], [1, 1, 34, 5], 2)

PADDED_CHECKS: dict[str, Callable[[torch.device], None]] = {
    "padded, mixed": lambda device: check(device, *MIXED, StepShape(3, 3, 44)),
    "padded, no place left": lambda device: check(device, *MIXED, StepShape(2, 2, 39), window=7, has_sinks=True),
    "padded, prompts alone": lambda device: check(device, [0, 6], [33, 3], 0, StepShape(0, 3, 38), is_fp8=True),
    "padded, decodes unused": lambda device: check(device, [0], [3], 0, StepShape(2, 2, 4), dtype=torch.bfloat16),
    "padded, large batch": lambda device: check(device, [50, 3, 0], [1, 1, 4], 2, StepShape(4, 2, 6), parts=1),
}
