"""What the scheduler hands to the executor for one step, and what comes back.

A running sequence owns a `slot`, a row of the runner's persistent per-sequence state (last sampled token, number of
computed tokens, block table, sampling parameters). A batch therefore carries only what changed: nothing is rebuilt per
sequence between two steps. Pure data: numpy arrays and msgspec structs, no torch.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from atom.model_engine.messages import TokenLogprobs
from atom.sampling_params import SamplingParams

Int32Array = NDArray[np.int32]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class SlotAdmission:
    """A sequence enters `slot`: the runner resets the slot's state to this before the step.

    `token_ids` are the prompt and, after a preemption, the tokens generated so far (`num_prompt_tokens` tells them
    apart); penalties and min_tokens count from them. `seed` is resolved: the request's or a fresh one.
    """

    slot: int
    token_ids: list[int]
    num_prompt_tokens: int
    block_ids: list[int]
    sampling: SamplingParams
    seed: int


@dataclass(frozen=True, slots=True)
class ScheduledBatch:
    """One step. Rows [0, num_decodes) are decodes, the rest are prefill chunks.

    slots [B]: the row's slot. query_lens [B]: tokens computed for the row in this step. context_lens [B]: tokens of the
    row already in the KV cache before this step. samples [B]: whether the row's last position is sampled (a decode
    always is; a prefill row when its chunk ends the known tokens and it wants any new token).
    A decode row's input token is the one that the previous step sampled for its slot; it may still be on the device.
    prefill_token_ids: inputs of the prefill rows, flat, sum(query_lens[num_decodes:]).
    new_blocks [N, 3]: (slot, index in the block table, block id), appended before the step; admissions carry theirs.
    prompt_logprobs rows: see SamplingParams of the slot; the runner returns them per chunk.
    draft slots: a decode row with query_len 1 + k carries k draft tokens that the runner's drafter left on the device.
    Its context_len then counts steps in flight with all their drafts, and the row may be past the sequence's end, which
    the host learns a step late: positions beyond the slot's blocks are not written, and the result is not read.
    """

    step: int
    slots: Int32Array
    query_lens: Int32Array
    context_lens: Int32Array
    samples: BoolArray
    num_decodes: int
    prefill_token_ids: Int32Array
    new_blocks: Int32Array
    admissions: list[SlotAdmission] = field(default_factory=list)

    @property
    def num_rows(self) -> int:
        """B."""
        return len(self.slots)

    @property
    def num_tokens(self) -> int:
        """Tokens computed in this step."""
        return int(self.query_lens.sum())


@dataclass(frozen=True, slots=True)
class StepResult:
    """What one step produced, one entry per batch row.

    token_ids [B, 1 + k] and num_tokens [B]: row r sampled token_ids[r, :num_tokens[r]]; 0 for rows that do not sample.
    logprobs[r]: one entry a sampled token, for rows that asked. prompt_logprobs[r]: the entries for the prompt
    positions that this chunk predicts, i.e. tokens context_len + 1 ... context_len + query_len, without the (unknown)
    one after the prompt's end. errors[r]: why the row's sequence can not go on; what it sampled is not to be used.
    """

    step: int
    token_ids: Int32Array
    num_tokens: Int32Array
    logprobs: dict[int, list[TokenLogprobs]] = field(default_factory=dict)
    prompt_logprobs: dict[int, list[TokenLogprobs]] = field(default_factory=dict)
    errors: dict[int, str] = field(default_factory=dict)
