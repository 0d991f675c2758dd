"""From the names of a checkpoint to the places in a model.

Owns the packed names (q_proj, k_proj and v_proj become parts of qkv_proj) and which tensors may be left over. Knows no
file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from torch import nn

from atom.model_ops.weights import HasWeights, WeightSlot

# Left over by design: frequencies that old checkpoints carry, buffers that are computed anew, and scales of queries and
# weights of attention in fp8, which is not computed in.
_IGNORED = re.compile(
    r"(^|\.)(rotary_emb\.inv_freq|masked_bias|attn\.bias|(attn\.)?(q|prob)_scale|q_proj\.output_scale)$"
)


def checkpoint_slots(model: nn.Module, packed: Mapping[str, tuple[str, ...]]) -> dict[str, WeightSlot]:
    """Every tensor that the model needs, by its name in the checkpoint."""
    slots: dict[str, WeightSlot] = {}
    for path, module in model.named_modules():
        if not isinstance(module, HasWeights):
            continue
        for slot in module.weight_slots():
            name = f"{_checkpoint_module(path, slot.part, packed)}.{slot.parameter}"
            assert name not in slots, f"two layers want {name}"
            slots[name] = slot
    return slots


def _checkpoint_module(path: str, part: int | None, packed: Mapping[str, tuple[str, ...]]) -> str:
    if part is None:
        return path
    parent, _, last = path.rpartition(".")
    name = packed[last][part]
    return f"{parent}.{name}" if parent else name


def may_be_left_over(name: str, is_head_tied: bool) -> bool:
    """Whether a tensor that no layer wants is no mistake: a copy of a tied head, or something computed anew."""
    return bool(_IGNORED.search(name)) or (is_head_tied and name == "lm_head.weight")
