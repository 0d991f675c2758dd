"""Projections in plain torch, and the form of a weight that this processor multiplies fastest.

bf16 on a CPU: weights are laid out once for oneDNN. All linears of a 0.5B decode step took 46 / 40 / 58 ms at batch
1 / 4 / 16 against 58 / 63 / 88 ms with F.linear, and a row's result does not depend on the other rows. The two
operations are private to torch, so they are probed. A processor without bf16 instructions gets its weights in float32,
twice the memory, since torch's loops for bf16 are tens of times slower there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch
import torch.nn.functional as F

from atom.model_ops.kernels.unrounded import unrounded_linear

# Batch size that the layout is chosen for; oneDNN's choice of blocking hardly depends on it.
_PACK_ROWS = 16
# oneDNN reads a large weight faster for four rows than for fewer: all linears of a 0.6B decode step on one thread took
# 69 ms with one row and 60 with four. Fewer are filled up, so that a row's bits are the same at any batch size too. A
# weight that fits into the second-level cache is not worth the two operations that this costs.
_FILLED_ROWS = 4
_LARGE_WEIGHT = 1 << 19


@dataclass(frozen=True, slots=True)
class PackedLinear:
    """A weight [N, K] ready for use. prepacked: oneDNN's operation, which alone can read the weight then.

    min_rows: the fewest rows that it is called with.
    """

    weight: torch.Tensor
    bias: torch.Tensor | None
    prepacked: Callable[..., torch.Tensor] | None = None
    min_rows: int = 1


@cache
def can_prepack() -> bool:
    """Whether this torch has oneDNN's prepacked bf16 linear, and gets a small product right on this processor."""
    try:
        x = torch.arange(8, dtype=torch.bfloat16).view(1, 8)
        weight = torch.eye(8, dtype=torch.bfloat16)
        packed = torch.ops.mkldnn._reorder_linear_weight(weight, _PACK_ROWS)
        return torch.equal(torch.ops.mkldnn._linear_pointwise(x, packed, None, "none", [], ""), x)
    except (AttributeError, RuntimeError, NotImplementedError):
        return False


@cache
def has_fast_bf16() -> bool:
    """Whether F.linear in bf16 uses the processor's own instructions."""
    try:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    except (AttributeError, RuntimeError, NotImplementedError):
        return False


def linear_pack(weight: torch.Tensor, bias: torch.Tensor | None) -> PackedLinear:
    """The fastest form of a weight; off the CPU and in float32 that is the weight itself."""
    if weight.device.type != "cpu" or weight.dtype != torch.bfloat16:
        return PackedLinear(weight, bias)
    if can_prepack():
        packed = torch.ops.mkldnn._reorder_linear_weight(weight.detach(), _PACK_ROWS)
        min_rows = _FILLED_ROWS if weight.numel() >= _LARGE_WEIGHT else 1
        return PackedLinear(packed, bias, torch.ops.mkldnn._linear_pointwise.default, min_rows)
    if has_fast_bf16():
        return PackedLinear(weight, bias)
    return PackedLinear(weight.float(), None if bias is None else bias.float())


def linear(x: torch.Tensor, packed: PackedLinear) -> torch.Tensor:
    """x [T, K] to [T, N]."""
    if packed.prepacked is not None:
        rows = x.shape[0]
        if rows >= packed.min_rows:
            return packed.prepacked(x, packed.weight, packed.bias, "none", [], "")
        return packed.prepacked(_filled(x, packed.min_rows), packed.weight, packed.bias, "none", [], "")[:rows]
    if packed.weight.dtype != x.dtype:
        return F.linear(x.to(packed.weight.dtype), packed.weight, packed.bias).to(x.dtype)
    return F.linear(x, packed.weight, packed.bias)


def logits(x: torch.Tensor, packed: PackedLinear) -> torch.Tensor:
    """As `linear`; in float32 on a GPU. oneDNN's products round to the type of x."""
    return unrounded_linear(x, packed.weight, packed.bias) if x.is_cuda else linear(x, packed)


def _filled(x: torch.Tensor, rows: int) -> torch.Tensor:
    """x repeated until it has `rows` rows."""
    if x.shape[0] == 1:
        return x.expand(rows, -1).contiguous()
    return torch.cat((x,) * -(-rows // max(1, x.shape[0])))[:rows]
