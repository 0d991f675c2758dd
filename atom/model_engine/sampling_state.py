"""Sampling parameters of every slot, and those of some rows on the device.

Owns which slots need what, so that a step of plain greedy rows pays for nothing else. Knows no batch.
Shapes: S slots, V vocabulary, N slots with penalties, R rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from atom.model_engine.batch import SlotAdmission
from atom.model_engine.device_copies import upload
from atom.model_ops.sampler import RandomRows
from atom.sampling_params import SamplingParams

OFF = -1
# Logits divided by less may be no finite numbers any more; by this, all but the largest are out of reach already.
_LEAST_TEMPERATURE = 1e-6


class SamplingState:
    """Parameters by slot, on the host: those of a step's rows go to the device in one copy. Penalties live there."""

    def __init__(self, num_slots: int, vocab_size: int, eos_token_ids: Iterable[int], device: torch.device) -> None:
        self.vocab_size = vocab_size
        self.device = device
        self.eos_token_ids = tuple(eos_token_ids)
        self.is_random = np.zeros(num_slots, dtype=np.bool_)
        self.num_logprobs = np.full(num_slots, OFF, dtype=np.int32)
        self.num_prompt_logprobs = np.full(num_slots, OFF, dtype=np.int32)
        self.min_tokens = np.zeros(num_slots, dtype=np.int32)
        self.has_bias = np.zeros(num_slots, dtype=np.bool_)
        self.penalty_rows = np.full(num_slots, OFF, dtype=np.int32)
        self.temperature = np.ones(num_slots, dtype=np.float32)
        self.top_k = np.zeros(num_slots, dtype=np.int32)
        self.top_p = np.ones(num_slots, dtype=np.float32)
        self.min_p = np.zeros(num_slots, dtype=np.float32)
        self.seeds = np.zeros(num_slots, dtype=np.int64)
        self.biases: dict[int, tuple[NDArray[np.int64], NDArray[np.float32]]] = {}
        self.stop_ids: dict[int, NDArray[np.int64]] = {}
        self.penalties = Penalties(vocab_size, device)

    def admit(self, admission: SlotAdmission) -> None:
        """Reset a slot to a sequence's parameters."""
        slot, params = admission.slot, admission.sampling
        self.is_random[slot] = not params.is_greedy
        self.num_logprobs[slot] = OFF if params.logprobs is None else params.logprobs
        self.num_prompt_logprobs[slot] = OFF if params.prompt_logprobs is None else params.prompt_logprobs
        # A greedy row may be drawn with others, so its parameters are those that cost least.
        is_random = not params.is_greedy
        self.temperature[slot] = max(params.temperature, _LEAST_TEMPERATURE) if is_random else 1.0
        self.top_k[slot] = max(params.top_k, 0) if is_random and params.top_k < self.vocab_size else 0
        self.top_p[slot] = params.top_p if is_random else 1.0
        self.min_p[slot] = params.min_p if is_random else 0.0
        self.seeds[slot] = admission.seed
        self._admit_edits(slot, params)
        if self.penalty_rows[slot] != OFF:
            self.penalties.release(int(self.penalty_rows[slot]))
            self.penalty_rows[slot] = OFF
        if has_penalties(params):
            output = admission.token_ids[admission.num_prompt_tokens :]
            prompt = admission.token_ids[: admission.num_prompt_tokens]
            self.penalty_rows[slot] = self.penalties.take(params, prompt, output)

    def _admit_edits(self, slot: int, params: SamplingParams) -> None:
        bias = {token: value for token, value in (params.logit_bias or {}).items() if token < self.vocab_size}
        self.has_bias[slot] = bool(bias)
        if bias:
            self.biases[slot] = (np.array(list(bias), np.int64), np.array(list(bias.values()), np.float32))
        stops = {*params.stop_token_ids, *(() if params.ignore_eos else self.eos_token_ids)}
        stops = {token for token in stops if 0 <= token < self.vocab_size}
        # A grammar knows better when a stop token may come: its masks keep to min_tokens as far as they can.
        self.min_tokens[slot] = params.min_tokens if stops and params.grammar is None else 0
        if self.min_tokens[slot]:
            self.stop_ids[slot] = np.array(sorted(stops), np.int64)

    def rows(self, slots: NDArray[np.int64], num_outputs: NDArray[np.int64]) -> tuple[torch.Tensor, RandomRows | None]:
        """slots [R] on the device, and how those of the rows that are drawn are drawn.

        Every tensor begins at 16 bytes, whatever R is: kernels have another form for those that do not.
        """
        found = np.flatnonzero(self.is_random[slots])
        if not len(found):
            return upload(slots, self.device), None
        count, width = len(found), -(-len(slots) // 4) * 4
        packed = np.zeros((2, width), dtype=np.int64)
        packed[0, : len(slots)] = slots
        packed[1, :count] = found
        packed = np.concatenate((packed, self.pack(slots[found], num_outputs[found], width)))
        on_device = upload(packed, self.device)
        _, random = unpack_draws(on_device[2:], count)
        if count < len(slots):
            random = replace(random, rows=on_device[1, :count])
        return on_device[0, : len(slots)], random

    def pack(self, slots: NDArray[np.int64], num_outputs: NDArray[np.int64], size: int) -> NDArray[np.int64]:
        """What unpack_draws takes: how slots are drawn, and harmless parameters up to `size` rows."""
        count, width = len(slots), -(-size // 4) * 4
        packed = np.zeros((5, width), dtype=np.int64)
        for row, values in zip(packed, (self.is_random[slots], self.seeds[slots], num_outputs), strict=False):
            row[:count] = values
        # Two rows of 64 bits are four of 32.
        temperature, top_k, top_p, min_p = packed[3:].view(np.int32).reshape(4, width)
        temperature.view(np.float32)[:] = top_p.view(np.float32)[:] = 1
        columns = ((temperature, self.temperature), (top_k, self.top_k), (top_p, self.top_p), (min_p, self.min_p))
        for bits, column in columns:
            bits[:count] = column[slots].view(np.int32)
        return packed

    def needs_edits(self, slots: NDArray[np.int64], num_outputs: NDArray[np.int64]) -> bool:
        """Whether any of the rows has its logits changed before it is sampled."""
        return bool(
            (self.penalty_rows[slots] != OFF).any()
            or self.has_bias[slots].any()
            or (self.min_tokens[slots] > num_outputs).any()
        )


def unpack_draws(packed: torch.Tensor, count: int) -> tuple[torch.Tensor, RandomRows]:
    """Of what SamplingState.pack made, which of the first `count` rows are drawn, and the parameters of all."""
    is_drawn, seeds, offsets = packed[:3, :count]
    filters = packed[3:].view(torch.int32).view(4, -1)[:, :count]
    temperature, _, top_p, min_p = filters.view(torch.float32)
    return is_drawn != 0, RandomRows(None, temperature, filters[1], top_p, min_p, seeds, offsets)


def has_penalties(params: SamplingParams) -> bool:
    """Whether tokens that occurred count."""
    return bool(params.presence_penalty or params.frequency_penalty) or params.repetition_penalty != 1.0


class Penalties:
    """Which tokens occurred, a row a slot with penalties; rows are made as they are needed, since one is V wide."""

    def __init__(self, vocab_size: int, device: torch.device) -> None:
        self.counts = torch.zeros(0, vocab_size, dtype=torch.int32, device=device)
        self.in_prompt = torch.zeros(0, vocab_size, dtype=torch.bool, device=device)
        self.weights = torch.zeros(0, 3, dtype=torch.float32, device=device)
        self._free: list[int] = []

    def take(self, params: SamplingParams, prompt: list[int], output: list[int]) -> int:
        """A row for a sequence; `output` are tokens that it generated before a preemption."""
        if not self._free:
            self._grow()
        row = self._free.pop()
        device, vocab = self.counts.device, self.counts.shape[1]
        self.counts[row] = 0
        if output:
            counts = np.bincount(np.array(output, np.int64), minlength=vocab)[:vocab].astype(np.int32)
            self.counts[row] = upload(counts, device)
        self.in_prompt[row] = False
        self.in_prompt[row].index_fill_(0, upload(np.array(prompt, np.int64), device), True)
        weights = (params.repetition_penalty, params.presence_penalty, params.frequency_penalty)
        self.weights[row] = upload(np.array(weights, np.float32), device)
        return row

    def release(self, row: int) -> None:
        """Give a row back."""
        self._free.append(row)

    def _grow(self) -> None:
        old = self.counts.shape[0]
        more = max(4, old)
        self._free.extend(range(old + more - 1, old - 1, -1))
        self.counts, self.in_prompt, self.weights = (
            torch.cat((whole, whole.new_zeros(more, whole.shape[1])))
            for whole in (self.counts, self.in_prompt, self.weights)
        )
