"""What AITER's kernels for experts are documented to do, slowly, in plain torch; as documented.py has the others.

Shapes: T tokens, E experts, H hidden, I intermediate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

HALVES = (torch.bfloat16, torch.float16)
FLOAT8 = (torch.float8_e4m3fn, torch.float8_e4m3fnuz)


def topk_softmax(
    topk_weights: torch.Tensor,
    topk_indices: torch.Tensor,
    token_expert_indices: torch.Tensor,
    gating_output: torch.Tensor,
    need_renorm: bool,
) -> None:
    assert gating_output.is_contiguous() and token_expert_indices.shape == topk_indices.shape
    assert token_expert_indices.dtype == torch.int32 and token_expert_indices.is_contiguous()
    scores = gating_output.float().softmax(-1)
    _write(scores, scores, topk_weights, topk_indices, need_renorm, 1.0)


def grouped_topk(
    gating_output: torch.Tensor,
    topk_weights: torch.Tensor,
    topk_ids: torch.Tensor,
    num_expert_group: int,
    topk_group: int,
    need_renorm: bool,
    is_softmax: bool,
    routed_scaling_factor: float,
) -> None:
    assert gating_output.is_contiguous() and num_expert_group in (1, 2, 4, 8)
    scores = gating_output.float().softmax(-1) if is_softmax else gating_output.float().sigmoid()
    best = scores.view(len(scores), num_expert_group, -1).amax(-1)
    _write_grouped(scores, scores, best, topk_group, topk_weights, topk_ids, need_renorm, routed_scaling_factor)


def biased_grouped_topk(
    gating_output: torch.Tensor,
    correction_bias: torch.Tensor,
    topk_weights: torch.Tensor,
    topk_ids: torch.Tensor,
    num_expert_group: int,
    topk_group: int,
    need_renorm: bool,
    routed_scaling_factor: float,
) -> None:
    assert gating_output.is_contiguous() and correction_bias.is_contiguous()
    assert gating_output.dtype == correction_bias.dtype and num_expert_group in (1, 8)
    assert 0 < len(gating_output) <= 212 * 64, "more take a kernel that leaves the scale out"
    scores = gating_output.float().sigmoid()
    choice = scores + correction_bias.float()
    best = choice.view(len(scores), num_expert_group, -1).topk(2, -1).values.sum(-1)
    _write_grouped(scores, choice, best, topk_group, topk_weights, topk_ids, need_renorm, routed_scaling_factor)


def _write_grouped(
    scores: torch.Tensor,
    choice: torch.Tensor,
    by_group: torch.Tensor,
    top_groups: int,
    topk_weights: torch.Tensor,
    topk_ids: torch.Tensor,
    need_renorm: bool,
    scale: float,
) -> None:
    size = scores.shape[1] // by_group.shape[1]
    assert scores.shape[1] % by_group.shape[1] == 0 and topk_ids.shape[1] <= 64
    run = 4 if scores.shape[1] % 4 == 0 else 2 if scores.shape[1] % 2 == 0 else 1
    assert size % run == 0, "a run of experts would lie in two groups"
    worst_kept = by_group.sort(dim=-1, descending=True).values[:, top_groups - 1]
    hidden = (by_group < worst_kept[:, None]).repeat_interleave(size, 1)
    _write(scores, choice.masked_fill(hidden, float("-inf")), topk_weights, topk_ids, need_renorm, scale)


def _write(
    scores: torch.Tensor,
    choice: torch.Tensor,
    topk_weights: torch.Tensor,
    topk_ids: torch.Tensor,
    need_renorm: bool,
    scale: float,
) -> None:
    assert topk_weights.dtype == torch.float32 and topk_ids.dtype == torch.int32
    assert topk_weights.stride() == topk_ids.stride() and topk_weights.stride(1) == 1
    chosen = choice.argsort(dim=-1, descending=True, stable=True)[:, : topk_ids.shape[1]]
    weights = scores.gather(1, chosen)
    if need_renorm:
        weights = weights / weights.sum(-1, keepdim=True)
    topk_weights.copy_(weights * scale)
    topk_ids.copy_(chosen)


def shuffle_weight(x: torch.Tensor, layout: tuple[int, int], use_int4: bool) -> torch.Tensor:
    """Tiles of 16 outputs by 32 inputs, one behind the other; in a tile, runs of 16 bytes of one output."""
    assert layout == (16, 16) and not use_int4
    assert x.shape[-2] % 16 == 0 and x.shape[-1] % 32 == 0
    run = 16 // x.itemsize
    tiles = x.unflatten(-1, (x.shape[-1] // 32, 32 // run, run)).unflatten(-4, (x.shape[-2] // 16, 16))
    out = tiles.movedim(-4, -2).contiguous().view(x.shape)
    out.is_shuffled = True  # type: ignore[attr-defined]  # a mark that the package leaves on its tensors
    return out


def unshuffled(x: torch.Tensor) -> torch.Tensor:
    run = 16 // x.itemsize
    tiles = x.view(*x.shape[:-2], x.shape[-2] // 16, x.shape[-1] // 32, 32 // run, 16, run)
    return tiles.movedim(-2, -4).reshape(x.shape)


def fused_moe(
    hidden_states: torch.Tensor,
    w1: torch.Tensor,
    w2: torch.Tensor,
    topk_weight: torch.Tensor,
    topk_ids: torch.Tensor,
    quant_type: Any,
    w1_scale: torch.Tensor | None,
    w2_scale: torch.Tensor | None,
    **rest: Any,
) -> torch.Tensor:
    assert hidden_states.is_contiguous() and hidden_states.dtype in HALVES
    assert topk_weight.dtype == torch.float32 and topk_ids.dtype == torch.int32 and topk_ids.is_contiguous()
    assert getattr(w1, "is_shuffled", False) and getattr(w2, "is_shuffled", False)
    num_experts, hidden, intermediate = w2.shape
    assert w1.shape == (num_experts, 2 * intermediate, hidden) and hidden % 128 == 0
    by_block = quant_type.name == "per_128x128"
    assert intermediate % (128 if by_block else 256 // w2.itemsize) == 0, "a tile would be cut short"
    group = 128 if by_block else None if quant_type.name == "per_Token" else 0
    first, second = (_meant(unshuffled(w).float(), scales, by_block) for w, scales in ((w1, w1_scale), (w2, w2_scale)))
    out = torch.zeros(hidden_states.shape)
    for token, expert_ids in enumerate(topk_ids.tolist()):
        for slot, expert in enumerate(expert_ids):
            gate, up = (first[expert] @ _rounded(hidden_states[token].float(), group, w1.dtype)).chunk(2)
            inner = (F.silu(gate) * up).to(hidden_states.dtype)
            out[token] += topk_weight[token, slot] * (second[expert] @ _rounded(inner.float(), group, w1.dtype))
    return out.to(hidden_states.dtype)


def _meant(weights: torch.Tensor, scales: torch.Tensor | None, by_block: bool) -> torch.Tensor:
    if scales is None:
        return weights
    num_experts, outputs, inputs = weights.shape
    assert scales.dtype == torch.float32 and scales.is_contiguous()
    assert scales.shape == ((num_experts, outputs // 128, inputs // 128) if by_block else (num_experts, outputs, 1))
    return weights * (scales.repeat_interleave(128, 1).repeat_interleave(128, 2) if by_block else scales)


def _rounded(x: torch.Tensor, group: int | None, dtype: torch.dtype) -> torch.Tensor:
    """x [K] as fp8 holds it, by groups, or whole (None); as it is (0). Zeros divided by a scale of 0 are no numbers."""
    if group == 0:
        return x
    parts = x.view(-1, group or len(x))
    largest = parts.abs().amax(1, keepdim=True)
    scales = (largest if group is None else largest.clamp_min(1e-10)) / torch.finfo(dtype).max
    return ((parts / scales).to(dtype).float() * scales).flatten()


KERNELS: dict[str, Callable[..., Any]] = {
    "aiter.topk_softmax": topk_softmax,
    "aiter.grouped_topk": grouped_topk,
    "aiter.biased_grouped_topk": biased_grouped_topk,
    "aiter.ops.shuffle.shuffle_weight": shuffle_weight,
    "aiter.fused_moe.fused_moe": fused_moe,
}
