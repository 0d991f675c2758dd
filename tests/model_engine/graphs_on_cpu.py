"""A runner with captured graphs where there is no GPU: captures are kept as functions, kernels are plain torch.

The kernels do what Triton's do, from the plan that Triton's have, and leave NaN in everything that is padding, so that
whatever reads it shows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from atom.model_engine.model_runner import ModelRunner
from atom.model_ops.kernels.reference import kv_cache
from atom.model_ops.kernels.reference.plan import Plan as ReferencePlan
from atom.model_ops.kernels.select import Kernels, select_kernels
from atom.model_ops.kernels.triton.plan import Plan, attention_plan
from atom.model_ops.step import StepInputs
from tests.kernels.dense import dense_attention
from tests.models.drive import make_runner

# Queries of a tile: fewer than any kernel takes, so that short rows have several.
_TILE = 7


class Replayed:
    """Stands for a graph: a replay calls the function again and overwrites what the capture returned."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call
        self.result = call()

    def replay(self) -> None:
        """As a graph's."""
        for kept, new in zip(self.result or (), self._call() or (), strict=True):
            kept.copy_(new)


def capture(call: Callable[[], Any], pool: Any) -> tuple[Replayed, Any]:
    """In place of graph_capture.capture."""
    graph = Replayed(call)
    return graph, graph.result


def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs are captured all the same, as functions."""
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: None)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device=None: (1 << 30, 8 << 30))
    for module in ("decode_graphs", "prefill_graphs", "draw_graphs"):
        monkeypatch.setattr(f"atom.model_engine.{module}.capture", capture)
    monkeypatch.setattr("atom.model_engine.step_graphs.why_no_graphs", lambda *given: None)


def runner_with_graphs(folder: Any, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> ModelRunner:
    """A runner over a checkpoint whose steps run in what stands for graphs."""
    no_gpu(monkeypatch)
    monkeypatch.setattr("atom.model_engine.model_runner.select_kernels", lambda *given: torch_kernels())
    return make_runner(folder, **settings)


def torch_kernels() -> Kernels:
    """The reference, with attention by Triton's plan."""
    plain = select_kernels("cpu")
    ours = {
        "attention_plan": attention_plan, "qkv_rope_write": qkv_rope_write, "attention_decode": attention_decode,
        "attention_prefill": attention_prefill,
    }  # fmt: skip
    choice = {**plain.choice, **dict.fromkeys((*ours, "philox_uniform", "sample"), "triton")}
    return replace(plain, choice=choice, functions={**plain.functions, **ours})


def qkv_rope_write(qkv: torch.Tensor, *given: Any) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The reference's, of the tokens that have a slot."""
    *before, plan, num_heads, num_kv_heads = given
    wanted = (num_heads, num_kv_heads, num_kv_heads)
    outs = [qkv.new_full((len(qkv), heads, qkv.shape[1] // sum(wanted)), float("nan")) for heads in wanted]
    real = plan.slot_mapping >= 0
    if not real.any():
        return outs[0], outs[1], outs[2]
    nothing: Any = None
    step = StepInputs(
        nothing, plan.positions[real], plan.slot_mapping[real], nothing, nothing, nothing, 0, 0, plan.block_size
    )
    own = ReferencePlan(step, [], [], [])
    found = kv_cache.qkv_rope_write(qkv[real], *before, own, num_heads, num_kv_heads)
    for out, values in zip(outs, found, strict=True):
        out[real] = values
    return outs[0], outs[1], outs[2]


def attention_decode(q: torch.Tensor, cache: torch.Tensor, scales: Any, plan: Plan, *softmax: Any) -> torch.Tensor:
    """Token by token; a token is the row of its own index."""
    out = q.new_full((len(q), q.shape[1] * q.shape[2]), float("nan"))
    for token, position in enumerate(plan.positions[: len(q)].tolist()):
        if position >= 0:
            keys, values = _cached(cache, plan, token, position + 1)
            out[token] = dense_attention(q[token : token + 1], keys, values, *softmax)[0]
    return out


def attention_prefill(
    q: torch.Tensor, k: Any, v: Any, cache: torch.Tensor, scales: Any, plan: Plan, *softmax: Any
) -> torch.Tensor:
    """Tile by tile."""
    out = q.new_full((len(q), q.shape[1] * q.shape[2]), float("nan"))
    assert plan.prefill is not None
    for first, count, row, position in plan.prefill.tiles(_TILE).tolist():
        assert count or not position, "a tile without queries has no keys to read"
        if count:
            keys, values = _cached(cache, plan, row, position + count)
            out[first : first + count] = dense_attention(q[first : first + count], keys, values, *softmax)
    return out


def _cached(cache: torch.Tensor, plan: Plan, row: int, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Keys and values [length, HK, D] of a row."""
    positions = torch.arange(length)
    blocks = plan.block_tables[row, positions // plan.block_size].to(torch.int64)
    found = cache[blocks, :, :, positions % plan.block_size]
    return found[:, 0], found[:, 1]
