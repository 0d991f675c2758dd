"""The steps that a runner runs before its first request, so that no request waits for what is made at first use.

On a GPU a kernel is compiled anew for some sizes, which takes up to a second: the batches here have every size that
steps without a graph can have, every way of sampling, chunks with and without a prefix. They go through slots and
blocks as those of requests do, and leave the slots as they were. Knows no tensors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from atom.config import Config
from atom.model_engine.batch import ScheduledBatch, SlotAdmission
from atom.sampling_params import SamplingParams

# Numbers of decodes at which kernels change their form: powers of two, and what is one more than each.
_DECODES = (1, 2, 3, 5, 9, 17, 33, 65, 129, 257)
# Tokens of prompts, of one that is planned in another way for being much longer, and of its two chunks.
_PROMPT, _LONG, _CHUNK = 2, 64, 32
_GREEDY = SamplingParams(temperature=0.0)
_WAYS = (
    _GREEDY,
    SamplingParams(top_k=20, top_p=0.9, seed=1),
    SamplingParams(min_p=0.1, presence_penalty=0.5, logit_bias={0: 1.0}),
    SamplingParams(temperature=0.0, logprobs=2),
)


def first_batches(config: Config) -> Iterator[ScheduledBatch]:
    """A prompt, and a token after it, on every device: what libraries prepare lazily."""
    steps = _Steps(config, num_blocks=1)
    length = min(8, config.max_model_len - 1, config.block_size - 1)
    if length > 0:
        yield steps.prompts([0], length, [_GREEDY])
        yield steps.decodes([0])


def gpu_batches(config: Config, num_blocks: int) -> Iterator[ScheduledBatch]:
    """For a GPU, and to be run without graphs; the last ones leave the slots as they were.

    Prompts, few and many decodes of like and unlike lengths, chunks with decodes beside.
    """
    steps = _Steps(config, num_blocks)
    longest = min(config.max_model_len - 1, config.max_num_batched_tokens)
    counts = [count for count in _DECODES if count <= min(config.max_num_seqs, config.max_num_batched_tokens)]
    slots = range(min(counts[-1] + 1, config.max_num_seqs))
    if longest < _PROMPT:
        return
    yield steps.prompts(slots[:1], min(_LONG, longest), [_GREEDY])
    for some in steps.that_fit(slots[1:], _PROMPT):
        yield steps.prompts(some, _PROMPT, [_WAYS[slot % len(_WAYS)] for slot in some])
    for count in counts:
        yield steps.decodes(slots[-count:])
        yield steps.decodes(slots[:count])
    chunk = min(_CHUNK, longest // 2)
    scored = SamplingParams(temperature=0.0, prompt_logprobs=1)
    yield steps.prompts(slots[:1], chunk, [scored], total=2 * chunk)
    yield steps.rest(0, chunk, beside=slots[1 : config.max_num_batched_tokens - chunk + 1][-2:])
    for some in steps.that_fit(slots, 1):
        yield steps.prompts(some, 1, [_GREEDY] * len(some))


class _Steps:
    """Makes batches of token 0. No result is looked at: blocks belong to several sequences where there are few, and
    every decode of a sequence is the first.
    """

    def __init__(self, config: Config, num_blocks: int) -> None:
        self._config = config
        self._num_blocks = num_blocks
        self._lens: dict[int, int] = {}
        self._step = 0

    def that_fit(self, slots: Sequence[int], length: int) -> Iterator[Sequence[int]]:
        """The slots in parts whose prompts of so many tokens fit into a step."""
        count = max(1, self._config.max_num_batched_tokens // length)
        return (slots[first : first + count] for first in range(0, len(slots), count))

    def prompts(
        self, slots: Sequence[int], length: int, ways: Sequence[SamplingParams], total: int | None = None
    ) -> ScheduledBatch:
        """New sequences, `length` tokens of their prompts of `total`, by default all."""
        whole = length if total is None else total
        blocks = [block % self._num_blocks for block in range(-(-(whole + 1) // self._config.block_size))]
        admissions = [
            SlotAdmission(slot, [0] * whole, whole, blocks, way, seed=0) for slot, way in zip(slots, ways, strict=True)
        ]
        self._lens.update(dict.fromkeys(slots, length))
        return self._batch([], slots, length, 0, whole == length, admissions)

    def rest(self, slot: int, length: int, beside: Sequence[int]) -> ScheduledBatch:
        """The last `length` tokens of a prompt, and a token for each of those beside."""
        return self._batch(beside, [slot], length, self._lens[slot], True, [])

    def decodes(self, slots: Sequence[int]) -> ScheduledBatch:
        """A token for each of the slots."""
        return self._batch(slots, [], 0, 0, True, [])

    def _batch(
        self,
        decodes: Sequence[int],
        prefills: Sequence[int],
        length: int,
        before: int,
        samples: bool,
        admissions: list[SlotAdmission],
    ) -> ScheduledBatch:
        self._step += 1
        return ScheduledBatch(
            self._step,
            np.array([*decodes, *prefills], dtype=np.int32),
            np.array([1] * len(decodes) + [length] * len(prefills), dtype=np.int32),
            np.array([self._lens[slot] for slot in decodes] + [before] * len(prefills), dtype=np.int32),
            np.full(len(decodes) + len(prefills), samples),
            len(decodes),
            np.zeros(length * len(prefills), dtype=np.int32),
            np.empty((0, 3), dtype=np.int32),
            admissions,
        )
