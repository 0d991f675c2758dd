"""The tensors of one step that layers share.

Owns their shapes; knows neither how they were made nor what a backend derives from them.
Shapes: T tokens, B rows, M blocks of the longest row. Decode rows come first in both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class DeviceRows:
    """Prefill rows that only the device knows, as in a captured graph: the host knows how many there may be.

    starts, lens and contexts [Bp] int64: each row's first token among the prefill tokens, its tokens of the step, and
    those in the cache before it. A row of padding has no tokens.
    """

    starts: torch.Tensor
    lens: torch.Tensor
    contexts: torch.Tensor


@dataclass(slots=True)
class StepInputs:
    """One flat batch of tokens.

    token_ids [T] int64, positions [T] int64, slot_mapping [T] int64: where each token's key and value go, counted in
    tokens from the start of the cache. block_tables [B, M] int32, valid up to each row's length. context_lens [B] and
    query_lens [B], on the host: tokens in the cache before the step, and tokens of the step.
    num_decodes: leading rows that are decodes; num_decode_tokens: their tokens, which lead the batch.
    is_even: whether the decode rows have about as many keys each, which a backend may share its work out by.
    device_rows: the prefill rows where context_lens and query_lens do not tell, else None.
    A token of padding has position -1 and slot -1; it belongs to no row, and what is computed for it means nothing.
    plan: what the attention backend made of all this.
    """

    token_ids: torch.Tensor
    positions: torch.Tensor
    slot_mapping: torch.Tensor
    block_tables: torch.Tensor
    context_lens: NDArray[np.int32]
    query_lens: NDArray[np.int32]
    num_decodes: int
    num_decode_tokens: int
    block_size: int
    is_even: bool = True
    device_rows: DeviceRows | None = None
    plan: Any = None

    @property
    def num_tokens(self) -> int:
        """T."""
        return int(self.token_ids.shape[0])
