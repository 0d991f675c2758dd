"""What AITER's kernels for latent attention are documented to do, slowly, in plain torch; as documented.py's.

Shapes: T tokens, S rows, HQ heads, C compressed size, R rotary size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def concat_and_cache_mla(
    kv_c: torch.Tensor,
    k_pe: torch.Tensor,
    kv_cache: torch.Tensor,
    slot_mapping: torch.Tensor,
    kv_cache_dtype: str,
    scale: torch.Tensor,
) -> None:
    assert kv_cache_dtype == "auto" and kv_c.dtype == k_pe.dtype == kv_cache.dtype and scale.dtype == torch.float32
    assert slot_mapping.dtype == torch.int64 and kv_c.stride(1) == k_pe.stride(1) == kv_cache.stride(2) == 1
    assert kv_cache.shape[2] == kv_c.shape[1] + k_pe.shape[1]
    size = kv_cache.shape[1]
    for token, slot in enumerate(slot_mapping.tolist()):
        if slot >= 0:
            kv_cache[slot // size, slot % size, : kv_c.shape[1]] = kv_c[token]
            kv_cache[slot // size, slot % size, kv_c.shape[1] :] = k_pe[token]


def mla_decode_fwd(
    q: torch.Tensor,
    kv_buffer: torch.Tensor,
    o: torch.Tensor,
    qo_indptr: torch.Tensor,
    kv_indptr: torch.Tensor,
    kv_indices: torch.Tensor,
    kv_last_page_lens: torch.Tensor,
    max_seqlen_q: int,
    sm_scale: float,
    logit_cap: float,
    **rest: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    assert set(rest.values()) == {None} and logit_cap == 0.0 and max_seqlen_q == 1
    assert q.dtype == kv_buffer.dtype == o.dtype == torch.bfloat16
    assert q.is_contiguous() and kv_buffer.is_contiguous() and o.is_contiguous()
    assert q.shape[1] in (16, 128) and q.shape[2] == 576 and o.shape == (*q.shape[:2], 512)
    assert kv_buffer.shape[1:] == (1, 1, 576)
    lists = (qo_indptr, kv_indptr, kv_indices, kv_last_page_lens)
    assert all(x.dtype == torch.int32 and x.is_contiguous() for x in lists)
    num_rows = len(qo_indptr) - 1
    assert qo_indptr.tolist() == list(range(len(q) + 1))
    assert kv_indptr.shape == (num_rows + 1,) and kv_last_page_lens.tolist() == [1] * num_rows
    for row in range(num_rows):
        pages = kv_indices[int(kv_indptr[row]) : int(kv_indptr[row + 1])].long()
        assert len(pages) > 0
        latents = kv_buffer[pages, 0, 0].double()
        weights = (q[row].double() @ latents.t() * sm_scale).softmax(-1)
        o[row] = (weights @ latents[:, :512]).to(o.dtype)
    return q.new_empty(0), q.new_empty(0)


KERNELS: dict[str, Callable[..., Any]] = {
    "aiter.concat_and_cache_mla": concat_and_cache_mla,
    "aiter.mla.mla_decode_fwd": mla_decode_fwd,
}
