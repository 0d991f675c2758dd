"""Which tokens the grammar of each slot allows next.

Owns the matchers of the slots and their masks. Beside a GPU it has a thread of its own: as soon as a step has sampled,
it follows the tokens and computes the masks of the next step, while the device is at that step's forward. The runner
waits for it only before it samples again, so a row with a grammar is launched ahead like any other, and its state is
right whatever was batched with it. On a CPU the caller does it itself: a thread would take core and interpreter from
the forward, which costs more than the masks do. Knows no tensors: masks are packed bits in numpy, tokens come by a
function that waits for them.
Shapes: S slots, V vocabulary, W = ceil(V / 32) words of a mask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from threading import Thread

import llguidance
import numpy as np
from llguidance.numpy import fill_next_token_bitmask_par
from numpy.typing import NDArray

from atom.model_engine.batch import SlotAdmission
from atom.model_engine.grammars import CompiledGrammar, GrammarError, Grammars
from atom.sampling_params import AnswerGrammar

Slots = NDArray[np.int64]
_ALL = np.int32(-1)


@dataclass(slots=True)
class Follower:
    """An answer that goes on. stop_ids: all that end it. left: tokens that must come before these may."""

    compiled: CompiledGrammar
    matcher: llguidance.LLMatcher
    stop_ids: tuple[int, ...]
    left: int


@dataclass(frozen=True, slots=True)
class MaskedRows:
    """rows [N] of those that were asked about; masks [N, W] int32, bit 1 is allowed; failures: row to message."""

    rows: Slots
    masks: NDArray[np.int32]
    failures: dict[int, str]


class Background:
    """A thread that does one thing after the other while its owner goes on. Leaner than an executor's futures."""

    def __init__(self, name: str) -> None:
        self._begun: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._ended: SimpleQueue[BaseException | None] = SimpleQueue()
        self._num_open = 0
        self._thread = Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def begin(self, function: Callable[[], None]) -> None:
        """Do this after all that was begun before."""
        self._num_open += 1
        self._begun.put(function)

    def wait(self) -> None:
        """Until everything has ended. RuntimeError when something has failed."""
        while self._num_open:
            error = self._ended.get()
            self._num_open -= 1
            if error is not None:
                raise RuntimeError("the masks of grammars are no longer computed") from error

    def shutdown(self) -> None:
        """End the thread after what it has begun."""
        self._begun.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (function := self._begun.get()) is not None:
            try:
                function()
                self._ended.put(None)
            except BaseException as error:
                self._ended.put(error)


class TokenMasks:
    """The grammars of S slots. Used by the runner's thread alone."""

    def __init__(self, num_slots: int, grammars: Grammars, num_threads: int = 0) -> None:
        """num_threads: how many compute masks while the caller goes on; 0: the caller does it, at once."""
        self.has_grammar = np.zeros(num_slots, dtype=np.bool_)
        self._grammars = grammars
        self._num_slots = num_slots
        self._followers: dict[int, Follower] = {}
        self._failures: dict[int, str] = {}
        self._masks: NDArray[np.int32] = np.empty((0, 0), dtype=np.int32)
        self._visible = self._masks
        self._address = 0
        self._pool = llguidance.LLExecutor(num_threads) if num_threads else None
        self._background = Background("token-masks") if num_threads else None

    def admit(self, admission: SlotAdmission) -> None:
        """A sequence enters a slot."""
        slot, grammar = admission.slot, admission.sampling.grammar
        if self.has_grammar[slot] or grammar is not None:
            self._do(partial(self._begin, slot, admission, grammar))
        self.has_grammar[slot] = grammar is not None

    def rows(self, slots: Slots) -> MaskedRows | None:
        """The masks of these slots' next tokens, once they are known; None when no slot has a grammar."""
        found = np.flatnonzero(self.has_grammar[slots])
        if not len(found):
            return None
        if self._background is not None:
            self._background.wait()
        chosen = slots[found]
        masks = self._finished(chosen)
        failures = {}
        if self._failures:
            failures = {
                row: self._failures[slot]
                for row, slot in zip(found.tolist(), chosen.tolist(), strict=True)
                if slot in self._failures
            }
        return MaskedRows(found, masks, failures)

    def sampled(self, slots: Slots, tokens: Callable[[], Sequence[int]]) -> None:
        """These slots, all with grammars, have sampled; `tokens` waits for the device."""
        self._do(partial(self._advance, slots.tolist(), tokens))

    def shutdown(self) -> None:
        """End the thread."""
        if self._background is not None:
            self._background.shutdown()

    def _do(self, function: Callable[[], None]) -> None:
        if self._background is None:
            function()
        else:
            self._background.begin(function)

    # ---- in the thread, where there is one

    def _begin(self, slot: int, admission: SlotAdmission, grammar: AnswerGrammar | None) -> None:
        self._failures.pop(slot, None)
        self._leave(slot)
        if grammar is None:
            return
        self._ensure_masks()
        try:
            compiled = self._grammars.compiled(grammar)
        except GrammarError as error:
            self._fail(slot, str(error))
            return
        sampling, outputs = admission.sampling, admission.token_ids[admission.num_prompt_tokens :]
        stop_ids = (*self._grammars.end_ids, *sampling.stop_token_ids)
        follower = Follower(compiled, self._grammars.take(compiled), stop_ids, left=sampling.min_tokens - len(outputs))
        self._followers[slot] = follower
        self._visible[slot] = compiled.visible
        follower.matcher.consume_tokens(outputs)
        self._fill(slot, follower.matcher)

    def _advance(self, slots: list[int], tokens: Callable[[], Sequence[int]]) -> None:
        going = []
        for slot, token in zip(slots, tokens(), strict=True):
            follower = self._followers.get(slot)
            if follower is None:
                continue
            if token in follower.stop_ids:
                self._leave(slot)
                continue
            follower.left -= 1
            going.append((slot, follower.matcher, token))
        # A matcher that does not take its token is in error from then on, which its mask shows.
        if self._pool is None:
            for slot, matcher, token in going:
                matcher.consume_token(token)
                self._fill(slot, matcher)
        elif going:
            self._pool.consume_token_par([(matcher, token) for _, matcher, token in going])
            fill_next_token_bitmask_par(self._pool, [(matcher, slot) for slot, matcher, _ in going], self._masks)

    def _fill(self, slot: int, matcher: llguidance.LLMatcher) -> None:
        size = self._masks.strides[0]
        matcher.unsafe_compute_mask_ptr(self._address + slot * size, size)

    # ---- in the caller's thread

    def _finished(self, slots: Slots) -> NDArray[np.int32]:
        """The masks as the matchers made them, with what these do not know of."""
        masks = self._masks[slots]
        masks &= self._visible[slots]
        # A matcher allows an end where its grammar may end, and after a failure.
        end = self._grammars.end_ids[0]
        may_end = masks[:, end // 32] >> end % 32 & 1
        is_empty = np.bitwise_or.reduce(masks, axis=1) == 0
        for row in np.flatnonzero(may_end | is_empty).tolist():
            slot = int(slots[row])
            self._finish(slot, masks[row])
            if slot in self._failures:
                masks[row] = _ALL
        return masks

    def _finish(self, slot: int, mask: NDArray[np.int32]) -> None:
        """The sequence's own stop tokens, min_tokens, tokens of one byte."""
        follower = self._followers.get(slot)
        if follower is None:
            return
        matcher, stop_ids = follower.matcher, follower.stop_ids
        if matcher.is_error():
            self._fail(slot, matcher.get_error())
            return
        may_end = matcher.is_accepting()
        if may_end and len(stop_ids) > len(self._grammars.end_ids):
            _set(mask, stop_ids)
        if may_end and follower.left > 0:
            rest = mask.copy()
            _clear(rest, stop_ids)
            if rest.any():
                mask[:] = rest
        if not mask.any():
            self._spell(slot, matcher, mask)

    def _spell(self, slot: int, matcher: llguidance.LLMatcher, mask: NDArray[np.int32]) -> None:
        """The grammar leaves no choice, and the model's token for it is a hidden one: byte by byte then."""
        forced = matcher.compute_ff_bytes()
        token = self._grammars.single_byte(forced[0]) if forced else None
        if token is None:
            self._fail(slot, "no token can go on as the grammar asks")
        else:
            _set(mask, (token,))

    def _fail(self, slot: int, message: str) -> None:
        self._failures[slot] = f"the grammar can not be followed: {message}"
        self._leave(slot)

    def _leave(self, slot: int) -> None:
        """The slot's answer is followed no further, if one was: it may sample anything."""
        follower = self._followers.pop(slot, None)
        if follower is not None:
            self._masks[slot] = self._visible[slot] = _ALL
            self._grammars.give_back(follower.compiled, follower.matcher)

    def _ensure_masks(self) -> None:
        """Made when they are needed first: a mask of a large vocabulary is 20 kB a slot."""
        if not self._masks.size:
            shape = (self._num_slots, -(-self._grammars.vocab_size // 32))
            self._masks, self._visible = np.full(shape, _ALL), np.full(shape, _ALL)
            self._address = self._masks.ctypes.data


def _set(mask: NDArray[np.int32], token_ids: Iterable[int]) -> None:
    words = mask.view(np.uint32)
    for token_id in token_ids:
        words[token_id // 32] |= np.uint32(1 << token_id % 32)


def _clear(mask: NDArray[np.int32], token_ids: Iterable[int]) -> None:
    words = mask.view(np.uint32)
    for token_id in token_ids:
        words[token_id // 32] &= np.uint32(~(1 << token_id % 32) & 0xFFFFFFFF)
