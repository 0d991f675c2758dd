"""Which tokens the grammar of each slot allows next.

Owns the matchers of the slots and their masks, in one thread of its own: as soon as a step has sampled, it follows the
tokens and computes the masks of the next step, while the device is at that step's forward. The runner waits for it only
before it samples again, so a row with a grammar is launched ahead like any other, and its state is right whatever was
batched with it. Knows no tensors: masks are packed bits in numpy, tokens come by a function that waits for them.
Shapes: S slots, V vocabulary, W = ceil(V / 32) words of a mask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

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
    """One answer as far as it has got. stop_ids: all that end it. left: tokens that must come before these may."""

    compiled: CompiledGrammar
    matcher: llguidance.LLMatcher
    stop_ids: tuple[int, ...]
    left: int
    has_ended: bool = False


@dataclass(frozen=True, slots=True)
class MaskedRows:
    """rows [N] of those that were asked about; masks [N, W] int32, bit 1 is allowed; failures: row to message."""

    rows: Slots
    masks: NDArray[np.int32]
    failures: dict[int, str]


class TokenMasks:
    """The grammars of S slots. Used by the runner's thread alone."""

    def __init__(self, num_slots: int, grammars: Grammars, num_threads: int = 1) -> None:
        self.has_grammar = np.zeros(num_slots, dtype=np.bool_)
        self._grammars = grammars
        self._num_threads = num_threads
        self._num_slots = num_slots
        self._followers: dict[int, Follower] = {}
        self._failures: dict[int, str] = {}
        self._masks: NDArray[np.int32] = np.empty((0, 0), dtype=np.int32)
        self._pool: llguidance.LLExecutor | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="token-masks")
        self._last: Future[None] | None = None
        self._broken: BaseException | None = None

    def admit(self, admission: SlotAdmission) -> None:
        """A sequence enters a slot."""
        slot, grammar = admission.slot, admission.sampling.grammar
        if self.has_grammar[slot] or grammar is not None:
            self._submit(self._begin, slot, admission, grammar)
        self.has_grammar[slot] = grammar is not None

    def rows(self, slots: Slots) -> MaskedRows | None:
        """The masks of these slots' next tokens, once they are known; None when no slot has a grammar."""
        found = np.flatnonzero(self.has_grammar[slots])
        if not len(found):
            return None
        if self._last is not None:
            self._last.result()
        if self._broken is not None:
            raise RuntimeError("the masks of grammars are no longer computed") from self._broken
        chosen = slots[found]
        failures = {}
        if self._failures:
            failures = {
                int(row): self._failures[int(slot)]
                for row, slot in zip(found, chosen, strict=True)
                if int(slot) in self._failures
            }
        return MaskedRows(found, self._masks[chosen], failures)

    def sampled(self, slots: Slots, tokens: Callable[[], Sequence[int]]) -> None:
        """These slots, all with grammars, have sampled; `tokens` waits for the device."""
        self._submit(self._advance, slots.tolist(), tokens)

    def shutdown(self) -> None:
        """End the thread."""
        self._thread.shutdown(cancel_futures=True)

    def _submit(self, function: Callable[..., None], *arguments: object) -> None:
        self._last = self._thread.submit(self._run, function, arguments)

    def _run(self, function: Callable[..., None], arguments: tuple[object, ...]) -> None:
        try:
            function(*arguments)
        except BaseException as error:
            self._broken = error  # masks would be stale from here on; the next step says so

    # ---- in the thread

    def _begin(self, slot: int, admission: SlotAdmission, grammar: AnswerGrammar | None) -> None:
        self._failures.pop(slot, None)
        before = self._followers.pop(slot, None)
        if before is not None:
            self._grammars.give_back(before.compiled, before.matcher)
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
        if outputs and not follower.matcher.consume_tokens(outputs):
            self._fail(slot, follower.matcher.get_error())
            return
        self._fill([slot])

    def _advance(self, slots: list[int], tokens: Callable[[], Sequence[int]]) -> None:
        going = []
        for slot, token in zip(slots, tokens(), strict=True):
            follower = self._followers.get(slot)
            if follower is None or follower.has_ended or slot in self._failures:
                continue
            if token in follower.stop_ids:
                follower.has_ended = True
                self._masks[slot] = _ALL
                continue
            follower.left -= 1
            going.append((slot, token))
        if not going:
            return
        followed = self._workers.consume_token_par([(self._followers[slot].matcher, token) for slot, token in going])
        for (slot, _), is_followed in zip(going, followed, strict=True):
            if not is_followed:
                self._fail(slot, self._followers[slot].matcher.get_error())
        self._fill([slot for slot, _ in going if slot not in self._failures])

    def _fill(self, slots: list[int]) -> None:
        """The next masks of these slots. Whatever can be is done for all at once: the runner waits for this thread."""
        if not slots:
            return
        followers = [self._followers[slot] for slot in slots]
        matchers = [(follower.matcher, slot) for follower, slot in zip(followers, slots, strict=True)]
        fill_next_token_bitmask_par(self._workers, matchers, self._masks)
        masks = self._masks[slots]
        visible = followers[0].compiled.visible
        if any(follower.compiled.visible is not visible for follower in followers):
            visible = np.stack([follower.compiled.visible for follower in followers])
        masks &= visible
        self._masks[slots] = masks
        allowed = np.bitwise_or.reduce(masks, axis=1).tolist()
        for slot, follower, any_allowed in zip(slots, followers, allowed, strict=True):
            if follower.matcher.is_error():
                self._fail(slot, follower.matcher.get_error())
            elif not any_allowed or follower.matcher.is_accepting():
                self._finish_mask(slot, follower, self._masks[slot])

    def _finish_mask(self, slot: int, follower: Follower, mask: NDArray[np.int32]) -> None:
        """What the matcher does not know of: the sequence's own stop tokens, min_tokens, tokens of one byte."""
        may_end = follower.matcher.is_accepting()
        if may_end and len(follower.stop_ids) > len(self._grammars.end_ids):
            _set(mask, follower.stop_ids)
        if may_end and follower.left > 0:
            rest = mask.copy()
            _clear(rest, follower.stop_ids)
            if rest.any():
                mask[:] = rest
        if not mask.any():
            self._spell(slot, follower.matcher, mask)

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
        self._masks[slot] = _ALL

    def _ensure_masks(self) -> None:
        """Made when they are needed first: a mask of a large vocabulary is 20 kB a slot."""
        if not self._masks.size:
            self._masks = np.full((self._num_slots, -(-self._grammars.vocab_size // 32)), _ALL, dtype=np.int32)

    @property
    def _workers(self) -> llguidance.LLExecutor:
        if self._pool is None:
            self._pool = llguidance.LLExecutor(self._num_threads)
        return self._pool


def _set(mask: NDArray[np.int32], token_ids: Iterable[int]) -> None:
    words = mask.view(np.uint32)
    for token_id in token_ids:
        words[token_id // 32] |= np.uint32(1 << token_id % 32)


def _clear(mask: NDArray[np.int32], token_ids: Iterable[int]) -> None:
    words = mask.view(np.uint32)
    for token_id in token_ids:
        words[token_id // 32] &= np.uint32(~(1 << token_id % 32) & 0xFFFFFFFF)
