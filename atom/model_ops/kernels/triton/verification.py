"""Draft tokens against the model's own greedy choices, in Triton."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from atom.model_ops.kernels.triton.sizes import next_power_of_2


@triton.jit
def _verify(drafts, num_drafts, targets, tokens, lengths, longest, WIDTH: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    places = tl.arange(0, WIDTH)
    is_draft = places < tl.load(num_drafts + row)
    draft = tl.load(drafts + row * longest + places, mask=is_draft, other=-1)
    target = tl.load(targets + row * (longest + 1) + places, mask=places <= longest, other=-1)
    # The first place that is no accepted draft takes the model's own token.
    accepted = tl.min(tl.where(is_draft & (draft == target), WIDTH, places))
    tl.store(lengths + row, accepted + 1)
    kept = tl.where(places <= accepted, target, -1)
    tl.store(tokens + row * (longest + 1) + places, kept, mask=places <= longest)


def verify_greedy(
    drafts: torch.Tensor, num_drafts: torch.Tensor, targets: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """drafts [B, S], num_drafts [B] and the model's choices [B, S + 1] to tokens [B, S + 1] and lengths [B] int32.

    A row's tokens are its accepted drafts and the model's own next token; -1 fills the rest. All are contiguous.
    """
    num_rows, longest = drafts.shape
    tokens = torch.empty_like(targets)
    lengths = torch.empty(num_rows, dtype=torch.int32, device=targets.device)
    if num_rows:
        width = next_power_of_2(longest + 1)
        _verify[(num_rows,)](drafts, num_drafts, targets, tokens, lengths, longest, width, num_warps=1)
    return tokens, lengths
