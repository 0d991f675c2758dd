"""What runs in the next step, and what a step's result means for the sequences.

One step mixes decodes and prefill chunks under a token budget, decodes first. Numbers of running sequences live in
numpy arrays indexed by slot, so that a decode costs next to no Python of its own; lists of sequences are rebuilt only
when one joins or leaves (`make bench PART=scheduler`: 0.8 to 1.5 us a sequence and step at 256). Knows neither the
device nor processes: `schedule` may run ahead of `apply`, as all lengths that it needs follow from what it scheduled.

`decode_len` is 1, or 1 + k when a drafter proposes k tokens: a decode row then takes so many tokens, and `apply` gives
back what was not accepted.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from random import Random

import numpy as np

from atom.model_engine.batch import Int32Array, ScheduledBatch, SlotAdmission, StepResult
from atom.model_engine.batch_assembly import NO_TOKENS, Chunk, DecodeRows, assemble, slots_of
from atom.model_engine.block_manager import BlockManager
from atom.model_engine.messages import EngineRequest, EngineStats, TokenDelta
from atom.model_engine.prefill_pace import BurstPatience, PrefillPace
from atom.model_engine.results import ending_delta, take_tokens
from atom.model_engine.scheduler_limits import Counters, SchedulerLimits
from atom.model_engine.sequence import Sequence, SequenceStatus, stop_ids_for
from atom.model_engine.slots import SlotTable
from atom.model_engine.waiting_queue import WaitingQueue


class UnservableRequest(ValueError):
    """The request can never run here; the message says why, for its sender."""


class Scheduler:
    """Owns every sequence from `add` until the delta that ends it."""

    def __init__(
        self,
        limits: SchedulerLimits,
        blocks: BlockManager,
        clock: Callable[[], float] = time.monotonic,
        random: Random | None = None,
    ) -> None:
        self.limits = limits
        self.blocks = blocks
        self.counters = Counters()
        self.sequences: dict[str, Sequence] = {}
        self._clock = clock
        self._random = random or Random()
        self._length_limit = min(limits.max_model_len, blocks.num_blocks * blocks.block_size)
        self._num_added = 0
        self._waiting = WaitingQueue()
        self._slots = SlotTable(limits.max_num_seqs)
        self._prefills: list[Sequence] = []
        self._decodes: list[Sequence] = []
        self._decode_slots: Int32Array = NO_TOKENS
        self._decodes_changed = False
        self._in_flight: deque[tuple[ScheduledBatch, list[Sequence]]] = deque()
        self._applied_step = -1
        self._ones = np.ones(limits.max_num_seqs, dtype=np.int32)
        self._all_sample = np.ones(limits.max_num_seqs, dtype=np.bool_)
        self._pace = PrefillPace(limits.delay_factor, clock)
        self._burst = BurstPatience(clock)

    # ---- requests come and go

    def add(self, request: EngineRequest) -> Sequence:
        """Queue a request. UnservableRequest when it can never run, ValueError when its id is taken."""
        if request.request_id in self.sequences:
            raise ValueError(f"request id {request.request_id!r} is already in use")
        self.check_length(request)
        sampling = request.sampling
        seed = self._random.getrandbits(63) if sampling.seed is None else sampling.seed
        stop_ids = stop_ids_for(sampling, self.limits.eos_token_ids)
        sequence = Sequence(request, self._num_added, stop_ids, self._length_limit, seed)
        sequence.arrival_time = sequence.arrival_time or self._clock()
        self._num_added += 1
        self.sequences[request.request_id] = sequence
        self._waiting.push(sequence)
        return sequence

    def check_length(self, request: EngineRequest) -> None:
        """UnservableRequest when the prompt has no tokens or more than can ever be held."""
        length, limits = len(request.prompt_token_ids), self.limits
        if not length:
            raise UnservableRequest("the prompt is empty")
        needed = length + min(request.sampling.max_tokens, 1)
        if needed > limits.max_model_len:
            raise UnservableRequest(
                f"the prompt has {length} tokens, the model's context holds {limits.max_model_len} (max_model_len)"
                + (" and needs room for a new token" if length == limits.max_model_len else "")
            )
        if needed > self._length_limit:
            raise UnservableRequest(
                f"the prompt has {length} tokens, the KV cache holds {self._length_limit} "
                f"({self.blocks.num_blocks} blocks of {self.blocks.block_size})"
            )

    def abort(self, request_id: str) -> TokenDelta | None:
        """End a sequence at once and free its blocks; None when the id is unknown or already ended."""
        sequence = self.sequences.get(request_id)
        if sequence is None:
            return None
        sequence.finish_reason = "abort"
        self._finish(sequence)
        return ending_delta(sequence)

    def _finish(self, sequence: Sequence) -> None:
        was_waiting = sequence.status is SequenceStatus.WAITING
        if not was_waiting:
            self._leave_slot(sequence)
        sequence.status = SequenceStatus.FINISHED
        if was_waiting:
            self._waiting.leave(sequence)
        del self.sequences[sequence.request_id]
        if sequence.finish_reason == "abort":
            self.counters.requests_aborted += 1
        else:
            self.counters.requests_finished += 1

    def _leave_slot(self, sequence: Sequence) -> None:
        self.blocks.release(sequence)
        self._slots.give_back(sequence)
        if sequence.is_decoding:
            self._stop_decoding(sequence)
        elif sequence in self._prefills:
            self._prefills.remove(sequence)

    def _preempt_newest(self) -> Sequence:
        """Take slot and blocks from the running sequence that came last; it computes its tokens again later."""
        running = [sequence for sequence in self._slots.sequences if sequence is not None]
        victim = max(running, key=lambda sequence: (sequence.priority, sequence.order))
        self._leave_slot(victim)
        victim.status = SequenceStatus.WAITING
        victim.resume_step = self.counters.steps - 1
        self._waiting.push(victim)
        self.counters.preemptions += 1
        return victim

    # ---- the next step

    def schedule(self) -> ScheduledBatch | None:
        """The next batch; None when nothing can run before a result is applied or a request comes."""
        num_preempted = self.counters.preemptions
        decodes, slots, new_blocks = self._reserve_decodes()
        context_lens, query_lens = self._take_decodes(decodes, slots)
        num_decode_tokens = int(query_lens.sum()) if self.limits.decode_len > 1 else len(slots)
        budget = self.limits.max_num_batched_tokens - num_decode_tokens
        admissions: list[SlotAdmission] = []
        may_admit = num_preempted == self.counters.preemptions
        chunks = self._take_prefills(budget, admissions, may_admit)
        self._pace.step_begins(has_prefill=bool(chunks))
        if chunks:
            self._burst.prompts_begin(self.counters.steps, sum([chunk.length for chunk in chunks]))
        if not decodes and not chunks:
            return None
        rows = DecodeRows(slots, query_lens, context_lens, self._all_sample[: len(slots)])
        batch = assemble(self.counters.steps, rows, chunks, new_blocks, admissions)
        self.counters.steps += 1
        self._in_flight.append((batch, decodes + [chunk.sequence for chunk in chunks] if chunks else decodes))
        return batch

    def _reserve_decodes(self) -> tuple[list[Sequence], Int32Array, list[tuple[int, int, int]]]:
        """The decodes of this step, their slots, and the blocks appended for them as (slot, index, block)."""
        self._refresh_decodes()
        table, decode_len, size = self._slots, self.limits.decode_len, self.blocks.block_size
        num_rows = min(len(self._decodes), self.limits.max_num_batched_tokens // decode_len)
        decodes = self._decodes if num_rows == len(self._decodes) else self._decodes[:num_rows]
        slots = self._decode_slots[:num_rows]
        ends = np.minimum(table.num_computed[slots] + decode_len, table.max_length[slots])
        grown: list[tuple[Sequence, int, int]] = []
        is_preempting = False
        for row in np.flatnonzero(ends > table.capacity[slots]).tolist():
            sequence = decodes[row]
            while sequence.slot >= 0:
                first = len(sequence.block_ids)
                blocks = self.blocks.grow(sequence, self.blocks.blocks_for(int(ends[row])) - first)
                if blocks is not None:
                    grown.extend((sequence, first + index, block) for index, block in enumerate(blocks))
                    table.capacity[sequence.slot] = len(sequence.block_ids) * size
                    break
                self._preempt_newest()
                is_preempting = True
        if is_preempting:
            decodes = [sequence for sequence in decodes if sequence.slot >= 0]
            slots = slots_of(decodes)
        return decodes, slots, [(seq.slot, index, block) for seq, index, block in grown if seq.slot >= 0]

    def _take_decodes(self, decodes: list[Sequence], slots: Int32Array) -> tuple[Int32Array, Int32Array]:
        """Count the decodes of this step as scheduled; returns their context_lens and query_lens."""
        table = self._slots
        context_lens = table.num_computed[slots]
        query_lens = self._ones[: len(slots)]
        if self.limits.decode_len > 1:
            # Steps in flight count with all their tokens, so that context_lens may be above the true ones.
            query_lens = np.clip(table.max_length[slots] - context_lens, 1, self.limits.decode_len)
        table.num_computed[slots] += query_lens
        samples_left = table.samples_left[slots] - 1
        table.samples_left[slots] = samples_left
        for row in np.flatnonzero(samples_left <= 0).tolist():
            self._stop_decoding(decodes[row])
        return context_lens, query_lens

    def _take_prefills(self, budget: int, admissions: list[SlotAdmission], may_admit: bool) -> list[Chunk]:
        chunks: list[Chunk] = []
        for sequence in list(self._prefills):
            if budget <= 0:
                return chunks
            chunks.append(self._take_chunk(sequence, budget))
            budget -= chunks[-1].length
        if not may_admit or not self._pace.may_start(self._waiting, self._slots.num_taken):
            return chunks
        while budget > 0 and self._slots.num_free:
            admitted = self._admit_first(admissions)
            if admitted is None:
                break
            chunks.append(self._take_chunk(admitted, budget))
            budget -= chunks[-1].length
        return chunks

    def _admit_first(self, admissions: list[SlotAdmission]) -> Sequence | None:
        """Give the first waiting sequence a slot and blocks; None when there is none or it must still wait."""
        sequence = self._waiting.first()
        if sequence is None or sequence.resume_step > self._applied_step:
            return None
        # A few blocks stay free for the decodes to grow into, so that a new prompt is not preempted at once.
        reserve = 1 + self.blocks.num_blocks // 100 if self._slots.num_taken else 0
        num_cached = self.blocks.admit(sequence, reserve)
        if num_cached is None:
            return None
        self._waiting.pop()
        slot = self._slots.take(sequence, num_cached, len(sequence.block_ids) * self.blocks.block_size)
        sequence.status = SequenceStatus.RUNNING
        self._prefills.append(sequence)
        if sequence.queue_time is None:
            sequence.queue_time = max(0.0, self._clock() - sequence.arrival_time)
            sequence.num_cached_tokens = num_cached
            self.counters.prompt_tokens += sequence.num_prompt_tokens
            self.counters.cached_prompt_tokens += num_cached
        admissions.append(
            SlotAdmission(
                slot=slot,
                token_ids=list(sequence.token_ids),
                num_prompt_tokens=sequence.num_prompt_tokens,
                block_ids=list(sequence.block_ids),
                sampling=sequence.sampling,
                seed=sequence.seed,
            )
        )
        return sequence

    def _take_chunk(self, sequence: Sequence, budget: int) -> Chunk:
        """Count up to `budget` of the sequence's tokens as scheduled; at the last of them it becomes a decode."""
        table, slot = self._slots, sequence.slot
        start = int(table.num_computed[slot])
        remaining = len(sequence.token_ids) - start
        length = min(remaining, budget)
        table.num_computed[slot] = start + length
        samples = length == remaining and bool(table.samples_left[slot] > 0)
        if length == remaining:
            self._prefills.remove(sequence)
        if samples:
            table.samples_left[slot] -= 1
            if table.samples_left[slot] > 0:
                sequence.is_decoding = True
                self._decodes = [*self._decodes, sequence]
                self._decodes_changed = True
        return Chunk(sequence, start, length, samples)

    def _stop_decoding(self, sequence: Sequence) -> None:
        if sequence.is_decoding:
            sequence.is_decoding = False
            self._decodes_changed = True

    def _refresh_decodes(self) -> None:
        if self._decodes_changed:
            self._decodes = [sequence for sequence in self._decodes if sequence.is_decoding]
            self._decode_slots = slots_of(self._decodes)
            self._decodes_changed = False

    # ---- a step's result

    def apply(self, result: StepResult) -> list[TokenDelta]:
        """Take the result of the oldest step in flight; returns its deltas."""
        batch, sequences = self._in_flight.popleft()
        if batch.step != result.step:
            raise RuntimeError(f"the executor returned step {result.step} where step {batch.step} was due")
        self._applied_step = batch.step
        self._burst.step_ends(batch.step)
        deltas, ended = take_tokens(batch, sequences, result)
        if self.limits.decode_len > 1:
            self._give_back_drafts(batch, sequences, result)
        self._publish(batch, sequences)
        for sequence in ended:
            self._finish(sequence)
        self.counters.generation_tokens += sum([len(delta.token_ids) for delta in deltas])
        return deltas

    def _publish(self, batch: ScheduledBatch, sequences: list[Sequence]) -> None:
        """Publish the blocks that this step filled, unless their sequence has lost them since."""
        size = self.blocks.block_size
        ends = batch.context_lens + batch.query_lens
        for row in np.flatnonzero(ends // size > batch.context_lens // size).tolist():
            if sequences[row].slot >= 0:
                self.blocks.publish(sequences[row], int(ends[row]))

    def _give_back_drafts(self, batch: ScheduledBatch, sequences: list[Sequence], result: StepResult) -> None:
        """Correct what `schedule` assumed: all tokens of a decode row computed, one sampled."""
        table, rows = self._slots, slice(batch.num_decodes)
        proposed = (batch.query_lens[rows] - 1).tolist()
        accepted = (result.num_tokens[rows] - 1).tolist()
        for sequence, num_proposed, num_accepted in zip(sequences, proposed, accepted, strict=False):
            if sequence.slot < 0:
                continue
            self.counters.draft_tokens += num_proposed
            self.counters.accepted_tokens += num_accepted
            table.num_computed[sequence.slot] -= num_proposed - num_accepted
            table.samples_left[sequence.slot] -= num_accepted
            if table.samples_left[sequence.slot] <= 0:
                self._stop_decoding(sequence)

    # ---- what others may know

    def patience(self) -> float:
        """Seconds that the next step had better wait for another request; 0 when it should begin, as it mostly should.

        It waits only where it would have prompts alone, and room for more.
        """
        waiting, limits = self._waiting, self.limits
        if self._slots.num_taken or self._in_flight or not 0 < len(waiting) < limits.max_num_seqs:
            return 0.0
        num_tokens = waiting.num_tokens()
        if num_tokens >= limits.max_num_batched_tokens:
            return 0.0
        return self._burst.seconds(num_tokens, waiting.oldest_arrival())

    @property
    def num_in_flight(self) -> int:
        """Steps that are scheduled and whose result is not applied."""
        return len(self._in_flight)

    @property
    def has_unfinished(self) -> bool:
        """Whether any sequence waits or runs."""
        return bool(self.sequences)

    def stats(self) -> EngineStats:
        """Gauges and counters as they stand."""
        blocks, counters = self.blocks, self.counters
        return EngineStats(
            num_running=self._slots.num_taken,
            num_waiting=len(self._waiting),
            num_partial_prefills=len(self._prefills),
            num_blocks_total=blocks.num_blocks,
            num_blocks_used=blocks.num_used,
            num_blocks_cached=len(blocks.cache),
            prompt_tokens=counters.prompt_tokens,
            cached_prompt_tokens=counters.cached_prompt_tokens,
            generation_tokens=counters.generation_tokens,
            preemptions=counters.preemptions,
            steps=counters.steps,
            requests_finished=counters.requests_finished,
            requests_aborted=counters.requests_aborted,
            draft_tokens=counters.draft_tokens,
            accepted_tokens=counters.accepted_tokens,
        )
