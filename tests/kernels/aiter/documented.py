"""What AITER's kernels are documented to do, slowly, in plain torch; indices as their sources write them.

Also what they take for granted without looking (dtypes, dense tensors): here it is asserted.
Shapes: T tokens, S rows, HQ/HK heads, D head size, NB blocks, BS block size, x values in 16 bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F

from tests.kernels.aiter import documented_experts, documented_float4, documented_mla
from tests.kernels.aiter.documented_experts import FLOAT8 as _FLOAT8
from tests.kernels.aiter.documented_experts import HALVES as _HALVES


def rms_norm(
    input: torch.Tensor, weight: torch.Tensor, epsilon: float, use_model_sensitive_rmsnorm: int
) -> torch.Tensor:
    assert input.dim() == 2 and input.dtype in _HALVES and input.stride(1) == 1
    assert weight.shape == input.shape[1:] and weight.dtype == input.dtype
    assert type(epsilon) is float
    x = input.float()
    normed = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + epsilon) * weight.float()
    return normed.to(input.dtype)


def rmsnorm2d_fwd_with_add(
    out: torch.Tensor,
    input: torch.Tensor,
    residual_in: torch.Tensor,
    residual_out: torch.Tensor,
    weight: torch.Tensor,
    epsilon: float,
    use_model_sensitive_rmsnorm: int,
) -> None:
    residual_out.copy_((input.float() + residual_in.float()).to(input.dtype))
    out.copy_(rms_norm(residual_out, weight, epsilon, 0))


def silu_and_mul(out: torch.Tensor, input: torch.Tensor) -> None:
    assert input.is_contiguous() and input.dtype in _HALVES and out.shape[-1] * 2 == input.shape[-1]
    assert out.shape[-1] % 8 == 0, "runs of up to 8 values are written, also past a row's end"
    gate, up = input.float().chunk(2, dim=-1)
    out.copy_((F.silu(gate) * up).to(out.dtype))


def mm(inp: torch.Tensor, weights: torch.Tensor, bias: torch.Tensor | None, **rest: Any) -> torch.Tensor:
    assert set(rest.values()) == {None}
    return F.linear(inp, weights, bias)


def rope(
    input_x: torch.Tensor,
    input_y: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    positions: torch.Tensor,
    rotate_style: int,
    reuse_freqs_front_part: bool,
    nope_first: bool,
) -> None:
    assert positions.dtype == torch.int64 and positions.shape == input_x.shape[:2] and positions.stride(1) == 1
    assert cos.is_contiguous() and sin.is_contiguous() and cos.shape[1:3] == sin.shape[1:3] == (1, 1)
    assert cos.dtype == sin.dtype and input_x.dtype == input_y.dtype
    assert cos.dtype in (torch.float32, *_HALVES)
    assert int(positions.min()) >= 0 and int(positions.max()) < cos.shape[0]
    assert (rotate_style, reuse_freqs_front_part, nope_first) == (0, True, False), "the only kind written here"
    half = cos.shape[3]
    c, s = (table.float()[positions, 0] for table in (cos, sin))  # [S, B, 1, R/2]
    for x in (input_x, input_y):
        assert x.shape[1] <= 65535 and x.shape[:2] == positions.shape, "the second axis is that of the grid"
        first, second = x[..., :half].float(), x[..., half : 2 * half].float()
        x[..., :half] = (first * c - second * s).to(x.dtype)
        x[..., half : 2 * half] = (second * c + first * s).to(x.dtype)


def _kept(values: torch.Tensor, cache: torch.Tensor, kind: str, scale: torch.Tensor | None) -> torch.Tensor:
    if kind == "auto":
        assert values.dtype == cache.dtype
        return values
    assert kind == "fp8" and cache.dtype in _FLOAT8
    return (values.float() / (1.0 if scale is None else scale)).to(cache.dtype)


def _put(cache: torch.Tensor, where: torch.Tensor, values: torch.Tensor) -> None:
    """values at flat places of a dense cache."""
    assert cache.is_contiguous()
    if cache.dtype in _FLOAT8:
        cache, values = cache.view(torch.uint8), values.view(torch.uint8)
    cache.view(-1)[where.flatten()] = values.flatten()


def _check_rows(key: torch.Tensor, value: torch.Tensor, slot_mapping: torch.Tensor) -> None:
    """A token's heads are one run, and slots are read as 64 bits."""
    assert slot_mapping.dtype == torch.int64
    for x in (key, value):
        assert x.stride(2) == 1 and x.stride(1) == x.shape[2]


def reshape_and_cache(
    key: torch.Tensor,
    value: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    slot_mapping: torch.Tensor,
    kv_cache_dtype: str,
    k_scale: torch.Tensor | None,
    v_scale: torch.Tensor | None,
    asm_layout: bool,
) -> None:
    _check_rows(key, value, slot_mapping)
    assert asm_layout, "the only layout written here"
    block_size, x = key_cache.shape[3:]
    assert x * key_cache.itemsize == 16
    rows = slot_mapping >= 0
    slots = slot_mapping[rows]
    num_heads, head_size = key.shape[1:]
    block, offset = (slots // block_size)[:, None, None], (slots % block_size)[:, None, None]
    head, place = torch.arange(num_heads)[:, None], torch.arange(head_size)
    start = block * num_heads * head_size * block_size + head * head_size * block_size
    keys = start + place // x * block_size * x + offset * x + place % x
    values = start + offset // x * head_size * x + place * x + offset % x
    _put(key_cache, keys, _kept(key[rows], key_cache, kv_cache_dtype, k_scale))
    _put(value_cache, values, _kept(value[rows], value_cache, kv_cache_dtype, v_scale))


def reshape_and_cache_flash(
    key: torch.Tensor,
    value: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    slot_mapping: torch.Tensor,
    kv_cache_dtype: str,
    k_scale: torch.Tensor,
    v_scale: torch.Tensor,
) -> None:
    _check_rows(key, value, slot_mapping)
    assert k_scale.dtype == v_scale.dtype == torch.float32
    assert key_cache.stride(0) == value_cache.stride(0)
    rows = slot_mapping >= 0
    slots = slot_mapping[rows][:, None, None]
    num_heads, head_size = key.shape[1:]
    where = slots * num_heads * head_size + torch.arange(num_heads)[:, None] * head_size + torch.arange(head_size)
    _put(key_cache, where, _kept(key[rows], key_cache, kv_cache_dtype, k_scale))
    _put(value_cache, where, _kept(value[rows], value_cache, kv_cache_dtype, v_scale))


def attend(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    scale: float,
    before: int = -1,
    soft_cap: float = 0.0,
    sinks: torch.Tensor | None = None,
) -> torch.Tensor:
    """q [Tq, HQ, D] at the end of k and v [L, HK, D], causal; `before` keys before a query are seen, -1 is all."""
    keys, values = (x.double().repeat_interleave(q.shape[1] // k.shape[1], dim=1) for x in (k, v))
    scores = torch.einsum("qhd,khd->hqk", q.double(), keys) * scale
    if soft_cap > 0:
        scores = soft_cap * torch.tanh(scores / soft_cap)
    distance = torch.arange(len(k) - len(q), len(k))[:, None] - torch.arange(len(k))
    hidden = (distance < 0) | ((distance > before) if before >= 0 else torch.zeros_like(distance, dtype=torch.bool))
    scores = scores.masked_fill(hidden, float("-inf"))
    if sinks is not None:
        scores = torch.cat((scores, sinks.double()[:, None, None].expand(-1, len(q), 1)), dim=-1)
    weights = scores.softmax(-1)[..., : len(k)]
    return torch.einsum("hqk,khd->qhd", weights, values).to(q.dtype)


def flash_attn_varlen_func(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    softmax_scale: float,
    causal: bool,
    window_size: tuple[int, int],
    **rest: Any,
) -> torch.Tensor:
    assert q.dtype == k.dtype == v.dtype and q.dtype in _HALVES and causal
    assert q.shape[2] <= 256 and q.shape[2] % 8 == 0 and q.shape[1] % k.shape[1] == 0
    assert cu_seqlens_q.dtype == cu_seqlens_k.dtype == torch.int32
    # With -1 on both sides, rows of one query would be compiled for anew.
    assert (window_size[0] == -1 or window_size[0] > 0) and window_size[1] == 0
    starts_q, starts_k = cu_seqlens_q.tolist(), cu_seqlens_k.tolist()
    assert (starts_q[-1], starts_k[-1]) == (len(q), len(k))
    lens = [max(b - a for a, b in pairwise(x)) for x in (starts_q, starts_k)]
    assert lens == [max_seqlen_q, max_seqlen_k]
    parts = [
        attend(q[a:b], k[c:d], v[c:d], softmax_scale, window_size[0])
        for (a, b), (c, d) in zip(pairwise(starts_q), pairwise(starts_k), strict=True)
    ]
    return torch.cat(parts)


def pa_fwd_asm(
    Q: torch.Tensor,
    K: torch.Tensor,
    V: torch.Tensor,
    block_tables: torch.Tensor,
    context_lens: torch.Tensor,
    block_tables_stride0: int,
    K_QScale: torch.Tensor | None,
    V_QScale: torch.Tensor | None,
    out_: torch.Tensor,
    high_precision: int,
    **rest: Any,
) -> torch.Tensor:
    num_blocks, num_kv_heads, _, block_size, x = K.shape
    head_size = Q.shape[2]
    assert block_size == 16 and head_size == 128 and Q.shape[1] <= 16 * num_kv_heads and high_precision == 0
    assert Q.dtype in _HALVES and K.is_contiguous() and V.is_contiguous() and Q.stride()[1:] == (head_size, 1)
    assert V.shape == (num_blocks, num_kv_heads, block_size // x, head_size, x)
    assert block_tables.dtype == context_lens.dtype == torch.int32 and block_tables.stride(1) == 1
    assert block_tables_stride0 == block_tables.stride(0) and int(context_lens.min()) > 0
    keys = K.float().permute(0, 3, 1, 2, 4).reshape(-1, num_kv_heads, head_size)
    values = V.float().permute(0, 2, 4, 1, 3).reshape(-1, num_kv_heads, head_size)
    if K.dtype in _FLOAT8:
        assert K_QScale is not None and V_QScale is not None
        shape = (num_blocks, num_kv_heads, block_size)
        for_keys, for_values = (
            s.view(shape).permute(0, 2, 1).reshape(-1, num_kv_heads, 1) for s in (K_QScale, V_QScale)
        )
        keys, values = keys * for_keys, values * for_values
    else:
        assert K.dtype == Q.dtype and K_QScale is None
    for row, length in enumerate(context_lens.tolist()):
        tokens = torch.arange(length)
        slots = block_tables[row].long()[tokens // block_size] * block_size + tokens % block_size
        out_[row] = attend(Q[row : row + 1], keys[slots], values[slots], head_size**-0.5)[0]
    return out_


def unified_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    max_seqlen_q: int,
    seqused_k: torch.Tensor,
    max_seqlen_k: int,
    softmax_scale: float,
    causal: bool,
    window_size: tuple[int, int],
    block_table: torch.Tensor,
    softcap: float,
    q_descale: None,
    k_descale: torch.Tensor,
    v_descale: torch.Tensor,
    sinks: torch.Tensor | None,
    **rest: Any,
) -> None:
    block_size = k.shape[1]
    assert causal and q_descale is None and block_size >= 16 and not block_size & (block_size - 1)
    assert cu_seqlens_q.dtype == seqused_k.dtype == block_table.dtype == torch.int32
    assert q.dtype in _HALVES and (k.dtype == q.dtype or k.dtype in _FLOAT8) and q.stride(2) == out.stride(2) == 1
    assert k_descale.numel() == v_descale.numel() == 1
    starts = cu_seqlens_q.tolist()
    assert starts[-1] == len(q) and max(b - a for a, b in pairwise(starts)) == max_seqlen_q
    is_scaled = k.dtype in _FLOAT8
    # Keys of more than so many may be split, by their number; what joins them is for powers of two alone.
    may_split = max_seqlen_k > 512
    assert not may_split or not q.shape[2] & (q.shape[2] - 1)
    for row, length in enumerate(seqused_k.tolist()):
        assert length > 0 and (length <= max_seqlen_k or not may_split)
        tokens = torch.arange(length)
        blocks, places = block_table[row].long()[tokens // block_size], tokens % block_size
        keys, values = k.float()[blocks, places], v.float()[blocks, places]
        if is_scaled:
            keys, values = keys * k_descale, values * v_descale
        part = slice(starts[row], starts[row + 1])
        out[part] = attend(q[part], keys, values, softmax_scale, window_size[0], softcap, sinks)


def per_token_quant_hip(x: torch.Tensor, quant_dtype: torch.dtype, **rest: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """A row of zeros is divided by its scale of 0."""
    assert x.is_contiguous() and x.dtype in _HALVES and quant_dtype in _FLOAT8
    scales = x.float().abs().amax(-1, keepdim=True) / torch.finfo(quant_dtype).max
    return (x.float() / scales).to(quant_dtype), scales


def per_group_quant_hip(
    x: torch.Tensor, quant_dtype: torch.dtype, group_size: int, transpose_scale: bool, **rest: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    assert x.is_contiguous() and x.dtype in _HALVES and quant_dtype in _FLOAT8 and not transpose_scale
    assert group_size in (32, 64, 128) and x.shape[-1] % group_size == 0
    groups = x.float().view(*x.shape[:-1], -1, group_size)
    scales = groups.abs().amax(-1, keepdim=True).clamp_min(1e-10) / torch.finfo(quant_dtype).max
    return (groups / scales).to(quant_dtype).view(x.shape), scales.squeeze(-1)


def gemm_a8w8(
    XQ: torch.Tensor,
    WQ: torch.Tensor,
    x_scale: torch.Tensor,
    w_scale: torch.Tensor,
    bias: torch.Tensor | None,
    dtype: torch.dtype,
    splitK: None,
) -> torch.Tensor:
    """Scales are read as runs of T and N values."""
    _check_product(XQ, WQ, x_scale, w_scale, dtype)
    assert x_scale.numel() == len(XQ) and w_scale.numel() == len(WQ) and (bias is None or bias.dtype == dtype)
    out = (XQ.float() @ WQ.float().t()) * x_scale.view(-1, 1) * w_scale.view(1, -1)
    return (out if bias is None else out + bias.float()).to(dtype)


def gemm_a8w8_blockscale(
    XQ: torch.Tensor,
    WQ: torch.Tensor,
    x_scale: torch.Tensor,
    w_scale: torch.Tensor,
    dtype: torch.dtype,
    isBpreshuffled: bool,
) -> torch.Tensor:
    _check_product(XQ, WQ, x_scale, w_scale, dtype)
    groups = XQ.shape[1] // 128
    assert x_scale.shape == (len(XQ), groups) and w_scale.shape == (-(-len(WQ) // 128), groups) and not isBpreshuffled
    by_output = w_scale.repeat_interleave(128, 0)[: len(WQ)].repeat_interleave(128, 1)
    return ((XQ.float() * x_scale.repeat_interleave(128, 1)) @ (WQ.float() * by_output).t()).to(dtype)


def _check_product(
    XQ: torch.Tensor, WQ: torch.Tensor, x_scale: torch.Tensor, w_scale: torch.Tensor, dtype: torch.dtype
) -> None:
    assert XQ.dtype == WQ.dtype and WQ.dtype in _FLOAT8 and dtype in _HALVES
    assert x_scale.dtype == w_scale.dtype == torch.float32
    assert all(x.is_contiguous() for x in (XQ, WQ, x_scale, w_scale))
    assert XQ.shape[1] % 16 == WQ.shape[0] % 16 == 0


KERNELS: dict[str, Callable[..., Any]] = {
    **documented_experts.KERNELS,
    **documented_float4.KERNELS,
    **documented_mla.KERNELS,
    "aiter.rms_norm": rms_norm,
    "aiter.rmsnorm2d_fwd_with_add": rmsnorm2d_fwd_with_add,
    "aiter.silu_and_mul": silu_and_mul,
    "aiter.tuned_gemm.tgemm.mm": mm,
    "aiter.per_token_quant_hip": per_token_quant_hip,
    "aiter.per_group_quant_hip": per_group_quant_hip,
    "aiter.gemm_a8w8": gemm_a8w8,
    "aiter.gemm_a8w8_blockscale": gemm_a8w8_blockscale,
    "aiter.rope_cached_positions_2c_fwd_inplace": rope,
    "aiter.reshape_and_cache": reshape_and_cache,
    "aiter.reshape_and_cache_flash": reshape_and_cache_flash,
    "aiter.flash_attn_varlen_func": flash_attn_varlen_func,
    "aiter.pa_fwd_asm": pa_fwd_asm,
    "aiter.ops.triton.unified_attention.unified_attention": unified_attention,
}
